"""``bindscope export-hf``: checkpoints for other tools."""

from __future__ import annotations

from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run


def export_hf(
    run: str,
    directory: Path,
    /,
    *,
    step: str | None = None,
    steps: str | None = None,
    context: int | None = None,
) -> None:
    """Write checkpoints as Hugging Face model directories.

    Models with rotary positions become GPT-NeoX, those with learned positions
    GPT-2. What these cannot express, such as identity scaling or a model
    without LayerNorm, is refused. Each directory has a model card, README.md,
    with the run's settings, its accuracy at that step and the saved verdicts.

    Examples:
        bindscope export-hf binding-plain exported/
        bindscope export-hf runs/mine exported-early/ --step 1000
        bindscope export-hf binding-plain series/ --steps all

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    directory
        The directory to write, which must not exist yet; with --steps the one that gets step1000/ and so on.
    step
        Which checkpoint: a step, first or last; the last when left out.
    steps
        Several checkpoints, each in a directory of its own: all, or steps with commas between.
    context
        The longest sequence the model promises to take; what it was trained for when left out.
    """
    from bindscope.model.convert import export_hugging_face
    from bindscope.model.convert.hugging_face import refuse_to_overwrite
    from bindscope.questions.opened import Opened
    from bindscope.questions.question import to_steps
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.card import read_verdicts, render_card

    if step is not None and steps is not None:
        raise BindscopeError(
            "--step and --steps: give one of them, --step for DIRECTORY itself, --steps for a series in it."
        )
    opened = Run.open(find_run(run))
    if steps is None:
        wanted = {opened.find_step(step or "last"): directory}
    else:
        wanted = {found: directory / f"step{found}" for found in Opened.of(opened).find_steps(to_steps(steps))}
    for target in wanted.values():
        refuse_to_overwrite(target)
    verdicts = read_verdicts(opened)
    for found, target in wanted.items():
        card = render_card(opened, found, verdicts)
        export = export_hugging_face(opened.checkpoint(found), target, opened.config.task.vocabulary, context, card)
        print(f"{opened.name} at step {found:,} is now {export.architecture} in {export.directory}.", flush=True)
    for note in export.notes:
        print(f"Note: {note}")
