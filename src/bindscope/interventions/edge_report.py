"""Attributed edges with what they are worth: exact patches of some, and how faithful circuits of the strongest ones are.

Edges are attributed on the first half of the pairs; exact patches are made on those too, circuits are tried on the other
half, which chose nothing.

    >>> report = report_edges(model, contrast, positions, n_points=8, n_checked=16, n_random=4, rng=rng)
    >>> report.faithfulness.sel(circuit="attributed")
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.edge_circuit import CHOSEN, measure_faithfulness
from bindscope.interventions.edges import attribute_edges, check_edges
from bindscope.model.transformer import Transformer

FEWEST_PAIRS = 4
Z = 1.96  # of a 95 % interval of a mean


def report_edges(
    model: Transformer,
    contrast: Contrast,
    positions: Mapping[str, np.ndarray],
    *,
    n_points: int,
    n_checked: int,
    n_random: int,
    rng: np.random.Generator,
) -> xr.Dataset:
    """``effect_at`` (sender, receiver, position); ``attributed`` and ``exact`` (edge) with their ends; ``faithfulness`` and
    ``kept`` (size, circuit) with 95 % intervals over pairs; the agreement with exact patches in the attributes.
    """
    if len(contrast) < FEWEST_PAIRS:
        raise BindscopeError(
            f"edges: {FEWEST_PAIRS} pairs or more are needed, half of them to try what the others found."
        )
    half = len(contrast) // 2
    found, tried = contrast.take(slice(0, half)), contrast.take(slice(half, None))
    named = {name: columns[:half] for name, columns in positions.items()}
    attributed = attribute_edges(model, found, n_points=n_points, positions=named)
    checked = check_edges(model, found, attributed, n_strongest=(n_checked + 1) // 2, n_random=n_checked // 2, rng=rng)
    means = attributed.effect.mean("pair").values
    sizes = _sizes(int(np.isfinite(means).sum()))
    faithful = measure_faithfulness(model, tried, means, sizes=sizes, n_random=n_random, rng=rng)
    dataset = attributed[["effect_at"]].assign(
        attributed=("edge", np.array(checked.attributed)),
        exact=("edge", np.array(checked.exact)),
        edge_sender=("edge", [sender for sender, _ in checked.edges]),
        edge_receiver=("edge", [receiver for _, receiver in checked.edges]),
        n_connected=faithful.n_connected,
    )
    for name in ("faithfulness", "kept"):
        mean, spread = faithful[name].mean("pair"), faithful[name].std("pair", ddof=1)
        width = Z * spread / np.sqrt(faithful[name].notnull().sum("pair"))
        dataset = dataset.assign({name: mean, f"{name}_low": mean - width, f"{name}_high": mean + width})
    return dataset.assign_attrs(
        n_points=n_points,
        n_attributed=half,
        n_tried=len(tried),
        correlation=checked.correlation,
        mean_absolute_error=checked.mean_absolute_error,
        largest_error=checked.largest_error,
        sign_agreement=checked.sign_agreement,
        interval="95 % of a mean over pairs",
    )


def smallest_faithful(report: xr.Dataset, least: float = 0.8) -> int | None:
    """The size of the smallest circuit that is ``least`` faithful with its whole interval, and all larger ones too."""
    low = report.faithfulness_low.sel(circuit=CHOSEN).values
    enough = np.flatnonzero(~(low >= least))
    first = 0 if len(enough) == 0 else int(enough[-1]) + 1
    return None if first == len(low) else int(report["size"].values[first])


def _sizes(n_edges: int) -> list[int]:
    """10, 20, 40, … and all."""
    sizes = []
    size = 10
    while size < n_edges:
        sizes.append(size)
        size *= 2
    return [*sizes, n_edges]
