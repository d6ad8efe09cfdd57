"""``bindscope algorithm``: how a checkpoint follows a chain, hop by hop."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.algorithm import Algorithm
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    from bindscope.measures.binding.algorithm.reading import Reading


@asking(Algorithm)
def algorithm(question: Algorithm, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Tell by which algorithm a checkpoint follows chains: does the value come forward, or a pointer go back?

    Each hop of a chain is made by value (the value comes to the position that
    refers to it), by pointer (a later position takes the name over and looks it up
    itself), by both, or only by several positions jointly. Values and pointers
    are told apart by pairs in which one patch has three possible answers.

    Examples:
        bindscope algorithm binding-laptop
        bindscope algorithm binding-plain --step 3700 --n 24
        bindscope algorithm binding-laptop --out algorithm.svg

    Parameters
    ----------
    out
        Also write the arrow diagram (.svg, .pdf, .png) or all patches (.nc).
    json
        Print hops and arrows as JSON instead of a table.
    """
    from bindscope.measures.binding.algorithm.reading import read_algorithm, summarise_algorithm

    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("depths") as on_progress:
        dataset = question.answer(opened, on_progress)
    readings = read_algorithm(dataset)
    if json:
        about = {"run": opened.name, "step": dataset.attrs["step"], "summary": summarise_algorithm(readings)}
        print(json_format.dumps({**about, "depths": [asdict(reading) for reading in readings]}))
    else:
        title = f"{opened.name} at step {dataset.attrs['step']:,}: {summarise_algorithm(readings)}"
        left_out = f"\nleft out: {dataset.attrs['left_out']}" if dataset.attrs["left_out"] else ""
        print(f"{title}{left_out}\n\n{format_hops(readings)}\n\n{format_arrows(readings)}")
    if out is not None:
        from bindscope.studies.binding.algorithm.draw import draw_algorithm

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_algorithm(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_hops(readings: tuple[Reading, ...]) -> str:
    """One row for each hop of each depth: in which fraction of the pairs it is made in which way."""
    from bindscope.measures.binding.algorithm.patches import WAYS

    rows = [
        [str(reading.depth), hop.reference, *(f"{hop.fractions[way]:.2f}" for way in WAYS), str(hop.n), hop.way]
        for reading in readings
        for hop in reading.hops
    ]
    if not rows:
        return "no depth is learned"
    return format_table(["depth", "reference", *WAYS, "n", "so it is followed by"], rows, numbers=[0, 2, 3, 4, 5, 6, 7])


def format_arrows(readings: tuple[Reading, ...]) -> str:
    """One line for each depth."""
    return "\n".join(map(str, readings))
