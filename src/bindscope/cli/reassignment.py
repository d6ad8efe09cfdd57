"""``bindscope reassignment``: what becomes of a variable that is assigned again."""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.questions.opened import Opened
from bindscope.questions.reassignment import Reassignment

if TYPE_CHECKING:
    import xarray as xr

Row = tuple[str, str, str, list[float | None]]  # measure, case, what it says, numbers by layer


@asking(Reassignment)
def reassignment(
    question: Reassignment, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False
) -> None:
    """Tell which write of a variable wins, what holds the overwrite, and whether state is kept.

    For runs whose programs assign variables again (task.reassign above 0). Both
    writes are patched in from a program with other digits; the overwriting line
    from one in which it assigns a fresh variable; and probes read the value of
    this line, of other variables and of the asked one (arXiv 2605.30233;
    docs/reassignment.md).

    Examples:
        bindscope reassignment runs/again
        bindscope reassignment runs/again --step 1000 --n 40
        bindscope reassignment runs/again --out reassignment.svg
        bindscope figure runs/again reassignment

    Parameters
    ----------
    out
        Also write the figure (.svg, .pdf, .png) or the numbers (.nc).
    json
        Print the fractions as JSON instead of tables.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    dataset = question.answer(opened)
    if json:
        print(json_format.dumps(to_mapping(dataset)))
    else:
        print(format_reassignment(dataset))
    if out is not None:
        from bindscope.studies.binding.reassignment.draw import draw_checkpoint

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_checkpoint(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_reassignment(dataset: xr.Dataset) -> str:
    """What was found in words, the answers, and a row for each patch and probe."""
    about = {name: dataset.attrs[name] for name in ("run", "step", "n", "n_asked", "n_test")}
    head = f"{about['run']} at step {about['step']:,}: {about['n_asked']} questions, {about['n']} pairs and {about['n_test']} probed programs of each kind"
    outcomes = [str(outcome) for outcome in dataset.outcome.values]
    answers = [
        [str(name), *(f"{float(value):.2f}" for value in dataset.answered.sel(situation=name))]
        for name in dataset.situation.values
    ]
    last = int(dataset.layer.max())
    layers = [*(f"L{layer}" for layer in range(last)), "end"]
    rows = [[*words, *("" if value is None else f"{value:.2f}" for value in values)] for *words, values in list_rows(dataset)]  # fmt: skip
    return "\n\n".join(
        [
            head,
            dataset.attrs["finding"],
            format_table(["overwritten", *outcomes], answers, numbers=list(range(1, len(outcomes) + 1))),
            format_table(["measure", "where", "", *layers], rows, numbers=list(range(3, 4 + last))),
        ]
    )


def to_mapping(dataset: xr.Dataset) -> dict[str, object]:
    """Everything as plain values."""
    answered = {
        str(name): {str(outcome): round(float(dataset.answered.sel(situation=name, outcome=outcome)), 4) for outcome in dataset.outcome.values}
        for name in dataset.situation.values
    }  # fmt: skip
    rows = [dict(zip(("measure", "where", "what", "fractions"), row)) for row in list_rows(dataset)]
    return {
        **{name: dataset.attrs[name] for name in ("run", "step", "n", "finding")},
        "answered": answered,
        "rows": rows,
    }


def list_rows(dataset: xr.Dataset) -> Iterator[Row]:
    """What was patched or probed, and its fractions by layer."""

    def numbers(values: xr.DataArray) -> list[float | None]:
        return [None if math.isnan(value) else round(float(value), 4) for value in values.values]

    for situation in dataset.situation.values:
        for position in dataset.position.values:
            cell = dataset.write.sel(situation=situation, position=position)
            if cell.notnull().all():
                for came in ("first", "last"):
                    yield "write patched in", f"{situation}: {position}", came, numbers(cell.sel(came=came))
    for operation in dataset.operation.values:
        for part in dataset.part.values:
            values = dataset.undone.sel(operation=operation, part=part)
            yield "overwrite undone", f"{operation}: {part}", "undone", numbers(values)
    for state in dataset.state.values:
        for place in dataset.place.values:
            cell = dataset.sel(state=state, place=place)
            if cell.excess.notnull().all():
                for condition in dataset.condition.values:
                    yield "probe", f"{state}: {place}", str(condition), numbers(cell.accuracy.sel(condition=condition))
