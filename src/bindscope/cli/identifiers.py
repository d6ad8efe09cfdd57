"""``bindscope identifiers``: whether names and values are tied by binding identifiers."""

from __future__ import annotations

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.questions.identifiers import Identifiers
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr


@asking(Identifiers)
def identifiers(question: Identifiers, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Tell what swaps two bindings of a program: are names and values tied by identifiers of their line?

    Names, values or whole lines of two direct bindings are taken from another
    program (factorised), moved to each other's positions (exchanged), shifted by
    the mean difference of their lines (mean), or exchanged inside the subspace of
    line means (order), with controls of equal size (arXiv 2310.17191 and
    2409.05448; docs/mixture.md).

    Examples:
        bindscope identifiers binding-plain
        bindscope identifiers binding-laptop --step 1000 --n 100
        bindscope identifiers binding-plain --out identifiers.svg
        bindscope figure binding-plain identifiers

    Parameters
    ----------
    out
        Also write the figure (.svg, .pdf, .png) or the numbers (.nc).
    json
        Print the fractions as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    dataset = question.answer(opened)
    rows = list_fractions(dataset)
    if json:
        about = {
            "run": opened.name,
            "step": dataset.attrs["step"],
            "n": dataset.attrs["n"],
            "accuracy": float(dataset.accuracy),
        }
        print(json_format.dumps({**about, "rows": rows}))
    else:
        print(f"{opened.name} at step {dataset.attrs['step']:,}: {dataset.attrs['n']} programs for each intervention, "
              f"{float(dataset.accuracy):.0%} answered correctly unchanged\n\n{format_fractions(dataset)}\n\n"
              f"{format_order(dataset)}")  # fmt: skip
    if out is not None:
        from bindscope.studies.binding.identifiers.draw import draw_checkpoint

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_checkpoint(dataset))
        if not json:
            print(f"\nwritten  {path}")


def list_fractions(dataset: xr.Dataset) -> list[dict[str, object]]:
    """One entry for each part and intervention that was done, with its fractions by layer."""
    rows: list[dict[str, object]] = []
    for part in dataset.part.values:
        for name in dataset.intervention.values:
            cell = dataset.sel(part=part, intervention=name)
            if not math.isnan(float(cell.swapped[0])):
                fractions = {read: [round(float(value), 4) for value in cell[read]] for read in ("swapped", "kept")}
                rows.append({"part": str(part), "intervention": str(name), **fractions})
    return rows


def format_fractions(dataset: xr.Dataset) -> str:
    """A row for each part and intervention: swapped and kept in each layer."""
    layers = [f"L{layer}" for layer in dataset.layer.values]
    rows = []
    for each in list_fractions(dataset):
        for read in ("swapped", "kept"):
            rows.append([str(each["part"]), str(each["intervention"]), read, *(f"{value:.2f}" for value in each[read])])  # type: ignore[attr-defined]
    head = ["part", "intervention", "answers", *layers]
    return format_table(head, rows, numbers=list(range(3, len(head))))


def format_order(dataset: xr.Dataset) -> str:
    """How much of the variance the line's number explains."""
    rows = []
    for part in dataset.part.values:
        for read, words in (
            ("explained", "variance explained by the line"),
            ("in_two", "… of the means, in two directions"),
        ):
            rows.append([str(part), words, *(f"{float(value):.2f}" for value in dataset[read].sel(part=part))])
    head = ["part", "", *(f"L{layer}" for layer in dataset.layer.values)]
    return format_table(head, rows, numbers=list(range(2, len(head))))
