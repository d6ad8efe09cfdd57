"""Are names and values kept apart? Swap each subspace on the pairs of each kind.

Apart means a diagonal: the subspace of names changes the answer when the name differs and not when the value does, and
the other way round. Where a value has already been fetched, a pair that differs in its name differs in its value too,
so look early for names and late for values.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.intervals import wilson_interval
from bindscope.model.transformer import Transformer
from bindscope.subspaces.positions import find_columns
from bindscope.subspaces.stream import keep_base, read_stream, run_changed
from bindscope.subspaces.subspace import Subspace, principal_angles
from bindscope.tasks.binding import CounterfactualPairs


def cross_swaps(
    model: Transformer,
    subspaces: Mapping[str, Subspace],
    pairs: Mapping[str, CounterfactualPairs],
    *,
    layer: int,
    position: str,
) -> xr.Dataset:
    """Swap success of every subspace on every kind of pairs at one layer and position: dims (subspace, pairs).

    ``overlap`` over (subspace, other) is the mean squared cosine between two subspaces: 1 when the smaller lies in the
    larger, rank/d_model for random ones.

    >>> cross_swaps(model, {"values": v, "names": w}, {"values": roots, "names": queries}, layer=2, position="question")
    """
    names, kinds = list(subspaces), list(pairs)
    hits = np.zeros((len(names), len(kinds)))
    for column, kind in enumerate(kinds):
        columns = find_columns(pairs[kind], position)
        source = read_stream(model, pairs[kind].counterfactual_tokens, layer, columns)
        kept = keep_base(model, pairs[kind], layer)
        for row, name in enumerate(names):
            logits = run_changed(model, pairs[kind], layer, columns, source, subspaces[name].swap, kept)
            hits[row, column] = (logits.argmax(-1).numpy() == pairs[kind].counterfactual_answers).sum()
    counts = np.array([len(pairs[kind]) for kind in kinds])
    low, high = wilson_interval(hits, np.broadcast_to(counts, hits.shape))
    overlap = [
        [float(principal_angles(subspaces[one], subspaces[other]).cos().square().mean()) for other in names]
        for one in names
    ]
    fractions = {"success_fraction": hits / counts, "success_low": low, "success_high": high}
    return xr.Dataset(
        {name: (("subspace", "pairs"), values, {"units": "fraction"}) for name, values in fractions.items()}
        | {"overlap": (("subspace", "other"), np.array(overlap), {"units": "1"}), "n": ("pairs", counts)},
        {"subspace": names, "pairs": kinds, "other": names},
        {"layer": layer, "position": position, "interval": "95 % Wilson"},
    )
