"""``bindscope path``: what one part of the model tells another directly."""

from __future__ import annotations

import json as json_format
from pathlib import Path as File

from bindscope.cli.asking import asking
from bindscope.cli.effects import format_summary, summarise, summary_to_json
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import check_out, figure_or_none, write_out
from bindscope.questions.opened import Opened
from bindscope.questions.patch import Path


@asking(Path)
def patch_paths(
    question: Path,
    /,
    *,
    place: Place = HERE,
    out: File | None = None,
    json: Flag = False,
) -> None:
    """Measure what one part of the model tells another directly (path patching).

    The sender takes its value from the counterfactual run; every head and MLP
    between it and the receiver is held at its value in the base run; only the
    receiver hears the change.

    Examples:
        bindscope path binding-laptop --sender L1.H0 --receiver L3.H1.k
        bindscope path binding-laptop --sender "L2.H1@rhs 2" --receiver logits --receiver L4.H0.v
        bindscope path binding-plain --sender L2.mlp_out --receiver L4.H0.q --depth 3

    Parameters
    ----------
    out
        Also write a figure (.svg, .pdf, .png) or the numbers pair by pair (.nc).
    json
        Print the means as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    dataset = question.answer(opened)
    shown, summary = question.shown, summarise(dataset, question.seed)
    title = f"{opened.name} at step {dataset.attrs['step']:,}, from {question.sender}"
    if json:
        print(json_format.dumps(summary_to_json(summary, shown, dataset.attrs)))
    else:
        print(f"{title}; {question.direction}\n{dataset.attrs['pairs']}\n\n{format_summary(summary, shown)}")
    if out is not None:
        path = write_out(dataset, out, figure_or_none(out, summary, shown, title))
        if not json:
            print(f"\nwritten  {path}")
