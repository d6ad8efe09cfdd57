"""``bindscope retrain``: give a checkpoint on the plateau parts of a later one, train on, and see how soon it leaves."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.opened import Opened
from bindscope.questions.transplants import Retrain

if TYPE_CHECKING:
    import xarray as xr


@asking(Retrain)
def retrain(question: Retrain, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Give a checkpoint on the plateau parts of a later one, train on, and count the steps until it leaves.

    Every cell has a fresh optimizer, the run's rate at that step and the same
    batches. The part is given and trained on, given and frozen, changed at random
    by as much, or held as it is while all else is trained; beside them the
    checkpoint as it is. It takes minutes: each cell trains for up to --most-steps.
    What a shipped run has saved is drawn by 'bindscope figure RUN retraining'.

    Examples:
        bindscope retrain binding-plain --part "L0.QK + L0.OV" --seeds 1 --most-steps 100
        bindscope retrain binding-plain --to 300 --from last --part L1-5.QK
        bindscope figure binding-plain retraining

    Parameters
    ----------
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the numbers as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("cells") as on_progress:
        dataset = question.answer(opened, on_progress)
    print(json_format.dumps(dataset_to_mapping(dataset)) if json else format_cells(dataset))
    if out is not None:
        from bindscope.studies.binding.transplants.draw import draw_cells

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_cells(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_cells(dataset: xr.Dataset) -> str:
    """A row for each part, a column for each condition: the steps of every seed until the plateau is left."""
    from bindscope.studies.binding.transplants.tell import tell_retraining

    a = dataset.attrs
    most = int(a["most_steps"])

    def show(steps: xr.DataArray) -> str:
        return ", ".join(f"> {most}" if step != step else f"{step:.0f}" for step in steps.values.tolist())

    rows = [
        [str(part), *(show(dataset.left.sel(part=part, condition=each)) for each in dataset.condition.values)]
        for part in dataset.part.values
    ]
    head = (
        f"{a['run']}: step {int(a['receiver']):,} with parts of step {int(a['donor']):,}, trained on at a rate of {a['lr']:.2g}\n"
        f"steps until {a['target']:.0%} of {int(a['n_misleading'])} misleading programs are answered by the chain, for each order "
        f"of the data; without any part: {show(dataset.baseline_left)}"
    )
    table = format_table(["part", "given", "given, frozen", "random change", "held as it is"], rows)
    return f"{head}\n\n{table}\n\n{tell_retraining(dataset)}"
