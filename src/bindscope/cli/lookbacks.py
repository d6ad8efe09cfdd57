"""``bindscope lookbacks``: where the address, the pointer and the payload of a lookup are."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.questions.lookbacks import Lookbacks
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr


@asking(Lookbacks)
def lookbacks(question: Lookbacks, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Tell where the address, the pointer and the payload of a lookup are, layer by layer.

    A value stands beside its name (payload and address), the end of the program
    holds a pointer, finds the address that equals it and takes the payload over.
    Every patch has several possible answers that say what came along; names are
    also exchanged with the addresses frozen (arXiv 2505.14685; docs/mixture.md).

    Examples:
        bindscope lookbacks binding-plain
        bindscope lookbacks binding-laptop --step 1000
        bindscope lookbacks binding-plain --out lookbacks.svg
        bindscope figure binding-plain lookbacks

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
    about = {"run": opened.name, "step": dataset.attrs["step"], "n": dataset.attrs["n"]}
    if json:
        rows = [
            {"patched": patched, "brings": label, "fractions": values} for patched, label, values in list_rows(dataset)
        ]
        print(json_format.dumps({**about, "rows": rows}))
    else:
        head = ["patched", "so that the answer is", *(f"L{layer}" for layer in dataset.layer.values)]
        table = [
            [patched, label, *(f"{value:.2f}" for value in values)] for patched, label, values in list_rows(dataset)
        ]
        print(f"{about['run']} at step {about['step']:,}: fractions of {about['n']} answers\n\n"
              f"{format_table(head, table, numbers=list(range(2, len(head))))}")  # fmt: skip
    if out is not None:
        from bindscope.studies.binding.lookbacks.draw import draw_checkpoint

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_checkpoint(dataset))
        if not json:
            print(f"\nwritten  {path}")


def list_rows(dataset: xr.Dataset) -> Iterator[tuple[str, str, list[float]]]:
    """What was patched, what the answer says came along, and its fractions by layer."""

    def numbers(values: xr.DataArray) -> list[float]:
        return [round(float(value), 4) for value in values]

    for moved in dataset.moved.values:
        yield "right-hand sides", str(moved), numbers(dataset.binding.sel(moved=moved))
    for frozen in dataset.frozen.values:
        words = "names" if frozen == "none" else f"names, {frozen} frozen"
        yield words, "exchanged", numbers(dataset.source.sel(frozen=frozen))
    for position in dataset.position.values:
        for came in dataset.came.values:
            yield str(position), str(came), numbers(dataset.end.sel(position=position, came=came))
