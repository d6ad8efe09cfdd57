"""``bindscope export-hf``: checkpoints for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bindscope.runs.locate import find_run


def export_hf(
    run: str,
    directory: Path,
    /,
    *,
    steps: Annotated[str, Parameter(name=["--steps", "--step"])] = "last",
    context: int | None = None,
) -> None:
    """Write checkpoints as Hugging Face model directories.

    Models with RMSNorm and gated MLPs become Llama, others with rotary
    positions GPT-NeoX, those with learned positions GPT-2. What these cannot
    express, such as identity scaling or a model without a norm, is refused. Each directory has a model card, README.md,
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
        The directory to write, which must not exist yet; for several checkpoints the one that gets step1000/ and so on.
    steps
        Which checkpoints: all, last, or steps with commas between.
    context
        The longest sequence the model promises to take; what it was trained for when left out.
    """
    from bindscope.model.convert import export_hugging_face
    from bindscope.model.convert.hugging_face import refuse_to_overwrite
    from bindscope.questions.opened import Opened
    from bindscope.questions.question import to_steps
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.card import read_verdicts, render_card

    opened, chosen = Run.open(find_run(run)), to_steps(steps)
    found = Opened.of(opened).find_steps(chosen)
    several = chosen == "all" or isinstance(chosen, tuple)
    wanted = {step: directory / f"step{step}" if several else directory for step in found}
    for target in wanted.values():
        refuse_to_overwrite(target)
    verdicts = read_verdicts(opened)
    for step, target in wanted.items():
        card = render_card(opened, step, verdicts)
        export = export_hugging_face(opened.checkpoint(step), target, opened.config.task.vocabulary, context, card)
        print(f"{opened.name} at step {step:,} is now {export.architecture} in {export.directory}.", flush=True)
    for note in export.notes:
        print(f"Note: {note}")
