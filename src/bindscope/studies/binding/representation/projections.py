"""Result ``projections``: points of the residual stream along axes of the subspaces, at every checkpoint.

The kinds of axes and what is measured along them are told in ``measures/binding/projections.py``.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.studies.binding.mechanism.measure import EXCLUDED, track_steps
from bindscope.studies.binding.representation.measure import N_PAIRS, sample_halves
from bindscope.studies.framework.results import Context, Result

LEVELS = 5000  # coordinates are saved in steps of a power of ten, at most this many from 0 to the farthest point


def compute_projections(context: Context) -> xr.Dataset:
    """Coordinates, variance fractions, scores and swap success over (quality, kind, step, …)."""
    from bindscope.measures.binding.projections import N_DRAWS, Look

    half = max(1, context.n // 2)
    halves = sample_halves(context.run, context.rng, half)
    steps = track_steps(context.run)
    total = len(halves) * len(steps)
    parts = []
    for index, (quality, (fit, test)) in enumerate(halves.items()):
        look = Look(quality, fit, test, context.run.checkpoint("last"), context.seed + index)
        rows: list[dict[str, np.ndarray]] = []
        for done, step in enumerate(reversed(steps), start=1):  # each is turned to lie as the one after it
            rows.append(look.at(context.run.checkpoint(step)))
            if context.on_progress:
                context.on_progress(index * len(steps) + done, total)
        parts.append(look.to_dataset(rows[::-1], steps))
    n_points = min(part.sizes["point"] for part in parts)
    parts = [part.isel(point=slice(n_points)) for part in parts]
    dataset = xr.concat(parts, xr.IndexVariable("quality", list(halves)), combine_attrs="drop")
    dataset.attrs = {
        "n_fit": half,
        "n_test": half,
        "n_draws": N_DRAWS,
        "excluded": EXCLUDED,
        "interval": "95 %: Wilson over samples or pairs; bootstrap over them where draws are averaged",
    }
    return _compact(dataset)


def _compact(dataset: xr.Dataset) -> xr.Dataset:
    """Coordinates in whole steps of a power of ten, and an encoding in which a file of them is small."""
    largest = float(np.abs(dataset.coordinate).max())
    step = 10.0 ** np.ceil(np.log10(max(largest, 1e-9) / LEVELS))
    rounded = ((dataset.coordinate / step).round() * step).astype(np.float32)
    dataset["coordinate"] = rounded.assign_attrs(units="1")
    for name in ("score", "success", "variance_fraction"):
        dataset[name].attrs["units"] = "fraction"
    dataset.attrs["resolution"] = step
    packed = {"dtype": "int16", "scale_factor": step, "add_offset": 0.0, "_FillValue": np.int16(-32768)}
    dataset["coordinate"].encoding = {**packed, "zlib": True, "shuffle": True, "complevel": 9}
    return dataset


RESULTS = (
    Result("projections", "points along axes of the subspaces", compute_projections, n=N_PAIRS, steps=track_steps),
)
