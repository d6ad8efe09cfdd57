"""``bindscope moves``: which heads bring a value, or a pointer, from which position of the chain to which."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import fill_lines, format_table
from bindscope.questions.moves import Moves
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    from bindscope.measures.binding.moves.reading import Move


@asking(Moves)
def moves(question: Moves, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Name the heads that move a value along its chain, or a pointer to it: from where to where, in which layer.

    Every head is patched at every position of the chain: with a program whose
    constant differs, to see the value move, and for each reference with one that
    names another variable there, to see the name move. A row is a layer whose
    heads bring something to a position (the effect of all of them together) with
    the heads that do most of it by themselves; the source is where these attend
    to, of the positions that held it. --out writes the effect of every head at
    every position, ablations (the part of the answer's margin that is lost) too.

    Examples:
        bindscope moves binding-neutral "a=2;o=9;e=4;r=e;#r:" "a=2;o=9;e=3;r=e;#r:"
        bindscope moves binding-neutral --depth 3 --n 24
        bindscope moves binding-plain --depth 2 --step 600 --json

    Parameters
    ----------
    out
        Also write a figure of heads by position (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the moves as JSON instead of a table.
    """
    from bindscope.measures.binding.moves.reading import read_moves

    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("patches") as on_progress:
        dataset = question.answer(opened, on_progress)
    found = read_moves(dataset)
    if json:
        about = {name: dataset.attrs[name] for name in ("run", "step", "pairs", "finding")}
        print(json_format.dumps({**about, "moves": [asdict(move) for move in found]}))
    else:
        head = fill_lines(f"{opened.name} at step {dataset.attrs['step']:,}; {dataset.attrs['pairs']}")
        print(f"{head}\n\n{fill_lines(dataset.attrs['finding'])}\n\n{format_moves(found)}")
    if out is not None:
        from bindscope.studies.plots.moves import draw_moves

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_moves(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_moves(found: list[Move]) -> str:
    """A row for each move, from the first layer on."""
    if not found:
        return "no layer's heads move anything by themselves"
    rows = [
        [
            f"L{move.layer}",
            "value" if move.what == "value" else f"name at {move.what}",
            move.source,
            move.target,
            f"{move.effect:.2f}",
            ", ".join(f"H{head} {effect:.2f}" for head, effect in move.heads) or "none alone",
        ]
        for move in found
    ]
    return format_table(["layer", "what", "from", "to", "effect", "of these heads"], rows, numbers=[4])
