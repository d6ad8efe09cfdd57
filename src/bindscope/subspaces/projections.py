"""The residual stream at one layer and position over training, seen along two or three axes.

The axes are principal components of the activations. *Frozen* to one checkpoint they show how points move in one fixed
space; *refitted* at each checkpoint they show how well any plane separates the points there, but a point's path then
mixes its own movement with that of the axes (signs are kept from flipping). The dataset says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.transformer import Transformer
from bindscope.subspaces.positions import find_columns, label_columns
from bindscope.subspaces.sparse import Components, fit_components
from bindscope.subspaces.stream import read_stream, stream_site
from bindscope.subspaces.subspace import Subspace, check_rank
from bindscope.tasks.binding import CounterfactualPairs


def project_over_training(
    models: Iterable[tuple[int, Transformer]],
    pairs: CounterfactualPairs,
    *,
    layer: int,
    position: str,
    frozen_to: tuple[int, Transformer] | None = None,
    inside: Subspace | None = None,
    n_axes: int = 2,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Where the base programs' stream lies at each step: ``coordinate`` over (step, point, axis).

    ``frozen_to`` names the checkpoint whose axes are used; without it they are refitted at every step. ``inside``
    looks only at the part of the residual stream in a subspace. Points are labelled with ``value``, ``name``, ``depth`` and
    ``root_line``; ``variance_fraction`` over (step, axis) is the part of that step's variance along each axis.

    >>> steps = ((step, run.checkpoint(step)) for step in run.steps)
    >>> project_over_training(steps, pairs, layer=4, position="colon", frozen_to=(3700, run.checkpoint("last")))
    """
    columns = find_columns(pairs, position)
    known = torch.from_numpy(columns >= 0)

    def read(model: Transformer) -> Tensor:
        stream_site(model, layer)
        check_rank(n_axes, model.config.d_model if inside is None else inside.rank)
        points = read_stream(model, pairs.base_tokens, layer, columns)[known]  # [point, d_model]
        return points if inside is None else inside.project(points)

    frozen = None if frozen_to is None else fit_components(read(frozen_to[1]))
    steps: list[int] = []
    coordinates: list[Tensor] = []
    fractions: list[np.ndarray] = []
    for step, model in models:
        points = read(model)
        axes = frozen or fit_components(points)
        seen = (points - axes.mean) @ axes.directions[:n_axes].T  # [point, axis]
        if frozen is None and coordinates:
            seen = seen * _matching_signs(seen, coordinates[-1])
        steps.append(step)
        coordinates.append(seen)
        fractions.append(_variance_fractions(points, axes, n_axes))
        if on_progress:
            on_progress(len(steps), len(steps))
    if not steps:
        raise BindscopeError("projections: no checkpoint was given.")
    attrs = {
        "axes": "refitted at each step" if frozen_to is None else f"frozen to step {frozen_to[0]}",
        "layer": layer,
        "position": position,
        "n_pairs": len(pairs),
        "inside": "the whole stream" if inside is None else inside.describe(),
    }
    dataset = xr.Dataset(
        {
            "coordinate": (("step", "point", "axis"), torch.stack(coordinates).numpy(), {"units": "1"}),
            "variance_fraction": (("step", "axis"), np.array(fractions), {"units": "fraction"}),
        },
        {"step": steps, "axis": np.arange(1, n_axes + 1)},
        attrs,
    )
    return dataset.assign(_label_points(pairs, columns))


def _label_points(pairs: CounterfactualPairs, columns: np.ndarray) -> dict[str, tuple[str, np.ndarray]]:
    """What each point, a column of a program, stands for."""
    known = columns >= 0
    pair, _ = np.nonzero(known)
    labels = {
        "value": label_columns(pairs.base, columns, "values")[known],
        "name": label_columns(pairs.base, columns, "names")[known],
        "depth": pairs.labels["depth"][pair, 0],
        "root_line": pairs.labels["root_line"][pair, 0],
    }
    return {name: ("point", values) for name, values in labels.items()}


def _matching_signs(seen: Tensor, before: Tensor) -> Tensor:
    """±1 for each axis, so that points lie as they did a step before rather than mirrored."""
    centred = before - before.mean(0)
    return torch.where((seen * centred).sum(0) < 0, -1.0, 1.0)


def _variance_fractions(points: Tensor, axes: Components, n_axes: int) -> np.ndarray:
    centred = points - points.mean(0)
    along = (centred @ axes.directions[:n_axes].T).square().sum(0)  # [axis]
    return (along / centred.square().sum().clamp_min(1e-12)).numpy()
