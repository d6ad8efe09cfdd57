"""What the numbers on reassignment of one checkpoint say, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

LEAST_SOLVED = 0.5  # pairs of which both programs are answered correctly: below that there is nothing to undo
HOLDS = 0.5  # a position holds the overwrite where patching it undoes at least so many
WHOLE = 0.5  # of what the controls miss: a state that is read to this extent is kept
WORDS = {
    "name": "the name on its line",
    "equals": "the = on its line",
    "value": "its right-hand side",
    "line break": "its line break",
    "lines after": "later lines",
    "query": "the query",
    "colon": "the colon",
}


def describe_reassignment(dataset: xr.Dataset) -> str:
    """Which write is answered with, what holds the overwrite, and whether state is kept; of a dataset without steps."""
    solved = float(dataset.solved.mean())
    if solved < LEAST_SOLVED:
        held = f"With {_percent(solved)} of the pairs answered correctly on both sides, nothing can be said of what holds the overwrite."
    else:
        held = describe_path(dataset)
    return f"{describe_answers(dataset)} {held} {describe_state(dataset)}"


def describe_answers(dataset: xr.Dataset) -> str:
    """How often the write that is in force is answered with."""
    right, rival = (dataset.answered.sel(outcome=outcome) for outcome in ("right", "rival"))
    query, earlier, later = (_percent(float(right.sel(situation=name))) for name in ("query", "earlier", "later"))
    return (
        f"A queried variable that was overwritten is answered with its last write in {query} of programs "
        f"(with its first in {_percent(float(rival.sel(situation='query')))}), one overwritten inside the chain in {earlier}; a "
        f"reference made before the overwrite keeps the first in {later}."
    )


def describe_path(dataset: xr.Dataset) -> str:
    """Which position holds the overwrite of a variable by a constant, layer by layer."""
    holds = dataset.undone.sel(operation="constant") >= HOLDS
    alone = {words: holds.sel(part=part).values for part, words in WORDS.items()}
    alone["its whole line"] = holds.sel(part="line").values & ~np.any(list(alone.values()), axis=0)
    parts = [
        f"{words} {_name_layers(dataset.layer.values[held], int(dataset.layer.max()))}"
        for words, held in sorted(alone.items(), key=lambda item: int(item[1].argmax()))
        if held.any()
    ]
    after = dataset.undone.sel(part="lines after")
    where = "; ".join(parts) if parts else "no single position"
    return f"The overwrite is held by {where}; taking later lines alone undoes at most {_percent(float(after.max()))}."


def describe_state(dataset: xr.Dataset) -> str:
    """Whether other variables' values can be read at the ends of lines, beyond what the controls give."""
    at = dataset.sel(state="global", place="line end")
    layer = best_layer(at.excess)
    excess, low, high = (float(at[f"excess{end}"].sel(layer=layer)) for end in ("", "_low", "_high"))
    accuracy = float(at.accuracy.sel(condition="trained", layer=layer))
    control = accuracy - excess
    if low <= 0:
        verdict = "no running state is found"
    elif excess >= WHOLE * (1 - control):
        verdict = "a running state is kept"
    else:
        verdict = "a running state is kept only in part"
    return (
        f"Probes at the ends of lines read {_percent(accuracy)} of what other variables hold, {100 * excess:+.0f} points "
        f"[{100 * low:+.0f} to {100 * high:+.0f}] from the better control, entering L{layer}, where that is most: {verdict}."
    )


def best_layer(excess: xr.DataArray) -> int:
    """The layer, beyond what enters the first, which holds the token alone, where probes are most above their controls."""
    return int(excess.layer[1:][int(excess.isel(layer=slice(1, None)).argmax("layer"))])


def _name_layers(layers: Iterable[int], last: int) -> str:
    """``entering L2 to L4``; what leaves the model is its end."""
    found = [int(layer) for layer in layers]
    names = ["the end" if layer == last else f"L{layer}" for layer in found]
    if len(found) == 1:
        return f"entering {names[0]}" if found[0] < last else "at the end"
    whole = np.array_equal(found, range(found[0], found[-1] + 1))
    return f"entering {names[0]} to {names[-1]}" if whole else f"entering {', '.join(names)}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"
