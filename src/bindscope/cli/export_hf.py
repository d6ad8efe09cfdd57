"""``bindscope export-hf``: a checkpoint for other tools."""

from __future__ import annotations

from pathlib import Path

from bindscope.runs.locate import find_run


def export_hf(run: str, directory: Path, /, *, step: str = "last", context: int | None = None) -> None:
    """Write a checkpoint as a Hugging Face model directory.

    Models with rotary positions become GPT-NeoX, those with learned positions
    GPT-2. What these cannot express, such as identity scaling or a model
    without LayerNorm, is refused.

    Examples:
        bindscope export-hf binding-plain exported/
        bindscope export-hf runs/mine exported-early/ --step 1000

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    directory
        The directory to write, which must not exist yet.
    step
        Which checkpoint: a step, or 'last'.
    context
        The longest sequence the model promises to take; what it was trained for when left out.
    """
    from bindscope.model.convert import export_hugging_face
    from bindscope.runs.directory import Run

    opened = Run.open(find_run(run))
    found = opened.find_step(step)
    export = export_hugging_face(opened.checkpoint(found), directory, opened.config.task.vocabulary, context)
    print(f"{opened.name} at step {found:,} is now {export.architecture} in {export.directory}.")
    for note in export.notes:
        print(f"Note: {note}")
