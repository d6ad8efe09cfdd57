"""``bindscope identifiers`` and ``bindscope lookbacks``: how a binding is looked up, layer by layer."""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table
from bindscope.questions.lookups import Identifiers, Lookbacks, LookupQuestion
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
    _tell(question, place, out, json, list_fractions, format_identifiers)


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
    _tell(question, place, out, json, list_lookbacks, format_lookbacks)


def _tell(
    question: LookupQuestion,
    place: Place,
    out: Path | None,
    json: bool,
    list_rows: Callable[[xr.Dataset], list[dict[str, Any]]],
    format_text: Callable[[xr.Dataset], str],
) -> None:
    """Ask, then print a table or JSON, and write what was asked for."""
    check_out(out)
    dataset = question.answer(Opened.at(question.run, place))
    if json:
        about = {name: dataset.attrs[name] for name in ("run", "step", "n")}
        accuracy = {"accuracy": float(dataset.accuracy)} if "accuracy" in dataset else {}
        print(json_format.dumps({**about, **accuracy, "rows": list_rows(dataset)}))
    else:
        print(format_text(dataset))
    if out is not None:
        draw = import_module(f"bindscope.studies.binding.{question.command_name}.draw").draw_checkpoint
        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_identifiers(dataset: xr.Dataset) -> str:
    """What swaps bindings, and how much of the variance the line's number explains."""
    about = dataset.attrs
    return (
        f"{about['run']} at step {about['step']:,}: {about['n']} programs for each intervention, "
        f"{float(dataset.accuracy):.0%} answered correctly unchanged\n\n{format_fractions(dataset)}\n\n{format_order(dataset)}"
    )


def format_lookbacks(dataset: xr.Dataset) -> str:
    """What each patch brought along, in each layer."""
    about = dataset.attrs
    head = ["patched", "so that the answer is", *(f"L{layer}" for layer in dataset.layer.values)]
    table = [
        [patched, label, *(f"{value:.2f}" for value in values)] for patched, label, values in list_patched(dataset)
    ]
    return (
        f"{about['run']} at step {about['step']:,}: fractions of {about['n']} answers\n\n"
        f"{format_table(head, table, numbers=list(range(2, len(head))))}"
    )


def list_lookbacks(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """One entry for each patch and what came along, with its fractions by layer."""
    return [
        {"patched": patched, "brings": label, "fractions": values} for patched, label, values in list_patched(dataset)
    ]


def list_patched(dataset: xr.Dataset) -> Iterator[tuple[str, str, list[float]]]:
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


def list_fractions(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """One entry for each part and intervention that was done, with its fractions by layer."""
    rows: list[dict[str, Any]] = []
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
            rows.append([str(each["part"]), str(each["intervention"]), read, *(f"{value:.2f}" for value in each[read])])
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
