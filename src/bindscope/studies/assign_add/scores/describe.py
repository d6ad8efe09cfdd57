"""The score terms in words and as a table: the variable of a spike, as either operand, before it and after."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from bindscope.measures.arithmetic.by_variable import OPERANDS
from bindscope.measures.arithmetic.spikes import Spike


def describe_scores_around(spike: xr.Dataset, scores: xr.Dataset) -> str:
    """What the score of the spike's variable was and became in layer 2, and P₁₅·QK1·v of it, as a sentence."""
    variable = str(spike.focus_variable.values)
    steps = [int(spike[name]) for name in ("before_step", "after_step")]
    cells = scores.sel(variable=variable)
    sums = cells.term.sum(("query_part", "key_part"))
    matches = cells.term.sel(query_part="layer 1", key_part="layer 1")
    sides = [
        f"{_from_to(sums.sel(operand=operand), steps)} as {operand} operand "
        f"({_from_to(matches.sel(operand=operand), steps)} of it the match of what layer 1 brought)"
        for operand in OPERANDS
    ]
    row = _from_to(cells.last_position_to_variable, steps)
    return (
        f"Across spike {int(spike.spike)} the score of the value of {variable} in layer 2 goes {' and '.join(sides)}; "
        f"P₁₅·QK1·{variable} in layer 1 goes {row}."
    )


def _from_to(values: xr.DataArray, steps: list[int]) -> str:
    before, after = (float(values.sel(step=step)) for step in steps)
    return f"from {before:.1f} to {after:.1f}"


def tabulate_terms(scores: xr.Dataset, variable: str, steps: tuple[int, int]) -> list[list[str]]:
    """A row for each operand and query part: the three terms at both steps, before → after."""
    cells = scores.term.sel(variable=variable)
    return [
        [
            f"{variable} {operand}",
            str(query),
            *(
                " → ".join(
                    f"{float(cells.sel(operand=operand, query_part=query, key_part=key, step=step)):.2f}"
                    for step in steps
                )
                for key in scores.key_part.values
            ),
        ]
        for operand in OPERANDS
        for query in scores.query_part.values
    ]


def steps_around(scores: xr.Dataset, spikes: Sequence[Spike]) -> tuple[int, int]:
    """The saved checkpoints next to the last spike, before and after; the first and the last where there is none."""
    saved = [int(step) for step in scores.step.values]
    if not spikes:
        return saved[0], saved[-1]
    before = [step for step in saved if step <= spikes[-1].before_step]
    after = [step for step in saved if step >= spikes[-1].after_step]
    return max(before, default=saved[0]), min(after, default=saved[-1])


def find_riser(scores: xr.Dataset, steps: tuple[int, int]) -> str:
    """The variable whose score, as one operand or the other, rises most between two steps."""
    before, after = (scores.term.sel(step=step).sum(("query_part", "key_part")) for step in steps)
    return str((after - before).max("operand").idxmax("variable").item())
