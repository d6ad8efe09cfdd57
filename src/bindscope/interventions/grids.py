"""Patch grids: change one position after another, exactly, and see what becomes of the answer.

    >>> grid = residual_grid(model, contrast)                # layer × position
    >>> summarise_outcomes(grid, rng).success                # the fraction of pairs whose answer becomes the source's

Every cell equals running the model again with that one change (``model.run``), up to rounding; ``engine`` says how what
cannot change is not computed again. A head's output is all that it adds to the residual stream: z·W_O, and where the model has
identity scaling also its identity-scaling term.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.checked import Check
from bindscope.interventions.columns import residual_columns, site_layers
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import label_outcomes, measure_outcomes, name_metrics
from bindscope.interventions.own_metric import Function, OwnMetric, own_metric
from bindscope.interventions.replacement import (
    PatchedPairs,
    Progress,
    layers_with_mlp,
    patch_heads_at,
    patch_mlps,
)
from bindscope.model.transformer import Transformer


def residual_grid(
    model: Transformer,
    contrast: Contrast,
    *,
    site: str = "resid_pre",
    wanted: np.ndarray | None = None,
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
    tolerance: float = 0.0,
    on_progress: Progress = None,
) -> xr.Dataset:
    """Outcomes over (layer, position, pair) of taking the residual stream from the source at one layer and position.

    ``site`` may also be resid_mid, resid_post, attn_out or mlp_out. ``wanted`` [pair, position] limits the cells; others
    are missing. ``source_model`` is run on the source rows instead, for instance another checkpoint. ``metric`` is a
    function of your own, ``f(patched, base, source, answers)``, measured beside the others: ``own_metric``.

    The grid is exact unless a ``tolerance`` in logits is given: then changes that the answer would feel less of are left
    out, position by position (``tolerant``), and the attributes ``error_of_logits`` and ``error_of_METRIC`` are the
    largest differences from the exact grid over ``n_checked`` of its cells.

    >>> residual_grid(model, contrast).success.mean("pair")
    """
    wanted = np.ones(tuple(contrast.base.shape), dtype=bool) if wanted is None else np.asarray(wanted)
    _check_marks(wanted, contrast, "wanted")
    layers, n_positions = site_layers(model, site), contrast.base.shape[1]
    own = own_metric(metric)
    outcomes = _missing(own, len(layers), n_positions, len(contrast))
    done, total = 0, int(wanted.sum())
    check = Check(contrast, _changing(model, contrast, wanted, source_model)) if tolerance else None
    for columns in residual_columns(model, contrast, site, torch.from_numpy(wanted), source_model, tolerance=tolerance):
        if check is not None:
            check.note(columns)
        pairs = contrast.take(columns.pairs)
        found = measure_outcomes(columns.logits, columns.base_logits, columns.source_logits, pairs, own)
        for name, values in found.items():
            outcomes[name][:, columns.positions.numpy(), columns.pairs.numpy()] = values
        done += len(columns.pairs)
        if on_progress is not None:
            on_progress(done, total)
    coords = {"layer": list(layers), "position": np.arange(n_positions)}
    attributes = _attributes(model, contrast, site, source_model)
    if check is not None:
        errors = check.errors(lambda pairs, some: residual_columns(model, pairs, site, some, source_model), own)
        attributes |= {"tolerance": tolerance, **errors}
    return label_outcomes(outcomes, ("layer", "position"), coords, attributes)


def position_grid(
    model: Transformer,
    contrast: Contrast,
    positions: Mapping[str, np.ndarray],
    *,
    site: str = "resid_pre",
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
    tolerance: float = 0.0,
    on_progress: Progress = None,
) -> xr.Dataset:
    """Outcomes over (layer, position, pair) at named columns [pair], −1 where a pair has no such position.

    >>> position_grid(model, contrast, named_positions(pairs))
    """
    if not positions:
        raise BindscopeError("position_grid: no position was named; name at least one.")
    columns = np.stack(
        [_check_position(name, column, contrast) for name, column in positions.items()]
    )  # [position, pair]
    wanted = np.zeros(tuple(contrast.base.shape), dtype=bool)
    pairs = np.arange(len(contrast))
    for column in columns:
        wanted[pairs[column >= 0], column[column >= 0]] = True
    grid = residual_grid(
        model,
        contrast,
        site=site,
        wanted=wanted,
        source_model=source_model,
        metric=metric,
        tolerance=tolerance,
        on_progress=on_progress,
    )
    outcomes = {}
    for name, cells in grid.data_vars.items():
        values = cells.values[:, columns, pairs]  # [layer, position, pair]
        outcomes[str(name)] = np.where(columns < 0, np.nan, values)
    coords = {"layer": grid.layer.values, "position": list(positions)}
    return label_outcomes(outcomes, ("layer", "position"), coords, grid.attrs)


def head_grid(
    model: Transformer,
    contrast: Contrast,
    *,
    at_positions: np.ndarray | None = None,
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
    on_progress: Progress = None,
) -> xr.Dataset:
    """Outcomes over (layer, head, pair) of taking all that one head adds to the residual stream from the source.

    ``at_positions`` [pair, position] marks where; default: everywhere.

    >>> head_grid(model, contrast).logit_difference.mean("pair")
    """
    choices = {"": at_positions}
    return head_grids(model, contrast, choices, source_model=source_model, metric=metric, on_progress=on_progress)[""]


def head_grids(
    model: Transformer,
    contrast: Contrast,
    at_positions: Mapping[str, np.ndarray | None],
    *,
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
    on_progress: Progress = None,
) -> dict[str, xr.Dataset]:
    """The same at several choices of positions, by name; None is everywhere. Base and source are run once for all.

    >>> head_grids(model, contrast, {"anywhere": None, "query": marks})["query"]
    """
    marks = [_check_marks(np.asarray(at), contrast, "at_positions") if at is not None else None
             for at in at_positions.values()]  # fmt: skip
    shape = (model.config.n_layers, model.config.n_heads)
    coords = {"layer": np.arange(shape[0]), "head": np.arange(shape[1])}
    attributes = _attributes(model, contrast, "result", source_model)
    own, done = own_metric(metric), 0
    outcomes = [_missing(own, *shape, len(contrast)) for _ in marks]
    for parts in patch_heads_at(model, contrast, marks, source_model):
        for values, part in zip(outcomes, parts):
            _collect(values, part, contrast, own)
        done += len(parts[0].pairs)
        if on_progress is not None:
            on_progress(done, len(contrast))
    return {
        name: label_outcomes(values, ("layer", "head"), coords, attributes)
        for name, values in zip(at_positions, outcomes)
    }


def mlp_grid(
    model: Transformer,
    contrast: Contrast,
    *,
    at_positions: np.ndarray | None = None,
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
    on_progress: Progress = None,
) -> xr.Dataset:
    """Outcomes over (layer, pair) of taking an MLP's whole output from the source, at all positions or those marked.

    >>> mlp_grid(model, contrast).success.mean("pair")
    """
    marks = None if at_positions is None else _check_marks(np.asarray(at_positions), contrast, "at_positions")
    layers = layers_with_mlp(model)
    own, done = own_metric(metric), 0
    outcomes = _missing(own, len(layers), len(contrast))
    for part in patch_mlps(model, contrast, marks, source_model):
        _collect(outcomes, part, contrast, own)
        done += len(part.pairs)
        if on_progress is not None:
            on_progress(done, len(contrast))
    attributes = _attributes(model, contrast, "mlp_out", source_model)
    return label_outcomes(outcomes, ("layer",), {"layer": list(layers)}, attributes)


def _collect(outcomes: dict[str, np.ndarray], part: PatchedPairs, contrast: Contrast, own: OwnMetric | None) -> None:
    """Write the metrics of some pairs to those [..., pair] of all."""
    pairs = contrast.take(part.pairs)
    for name, values in measure_outcomes(part.logits, part.base_logits, part.source_logits, pairs, own).items():
        outcomes[name][..., part.pairs.numpy()] = values


def _changing(
    model: Transformer, contrast: Contrast, wanted: np.ndarray, source_model: Transformer | None
) -> torch.Tensor:
    """The wanted columns [pair, position] where the source can differ from the base, and the asked column can see it."""
    changing, positions = torch.from_numpy(wanted).clone(), torch.arange(wanted.shape[1])
    if model.config.causal:
        changing &= positions <= contrast.at
        if source_model is None:
            changing &= positions >= contrast.first_difference[:, None]
    return changing


def _missing(metric: OwnMetric | None, *shape: int) -> dict[str, np.ndarray]:
    return {name: np.full(shape, np.nan, dtype=np.float32) for name in name_metrics(metric)}


def _check_marks(marks: np.ndarray, contrast: Contrast, name: str) -> torch.Tensor:
    if marks.dtype != bool or marks.shape != tuple(contrast.base.shape):
        raise BindscopeError(
            f"{name}: true or false for each of {len(contrast)} pairs and {contrast.base.shape[1]} positions is needed, "
            f"got {marks.dtype} of shape {list(marks.shape)}."
        )
    return torch.from_numpy(marks)


def _check_position(name: str, column: np.ndarray, contrast: Contrast) -> np.ndarray:
    column = np.asarray(column)
    if (
        column.shape != (len(contrast),)
        or column.max(initial=-1) >= contrast.base.shape[1]
        or column.min(initial=0) < -1
    ):
        raise BindscopeError(
            f"position '{name}': one column from 0 to {contrast.base.shape[1] - 1}, or -1, is needed for each of "
            f"{len(contrast)} pairs."
        )
    return column


def _attributes(
    model: Transformer, contrast: Contrast, site: str, source_model: Transformer | None
) -> dict[str, object]:
    attributes: dict[str, object] = {"n_pairs": len(contrast), "site": site}
    if source_model is not None:
        attributes["source"] = "another model"
    if model.config.identity_vo and site in ("result", "attn_out"):
        attributes["remark"] = "a head's output includes its identity-scaling term"
    return attributes
