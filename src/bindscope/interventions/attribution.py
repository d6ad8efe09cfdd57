"""Attribution patching: every cell of a grid from one gradient, approximately.

Putting the source's value s in place of b changes a number m by m(s) − m(b) ≈ (s − b)·∂m/∂b: two forward passes and
one backward pass for all cells at once (Nanda 2023). It is a straight line drawn at the base run, and softmax and
LayerNorm bend; so no number leaves here without the means to check it: ``compare_with_exact``.

    >>> guess = attribute_heads(model, contrast)
    >>> compare_with_exact(guess, head_grid(model, contrast)).correlation

The metrics are those of ``outcome`` that a line can approximate: ``logit_difference`` and ``new_logit``, normalised in
the same way. Success is a step and KL is flat at the base run, so neither has a useful gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.address import Columns, mark_columns, resolve_site
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import SMALLEST_RANGE, label_outcomes
from bindscope.interventions.patching import PAIRS_AT_ONCE
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

METRICS = ("logit_difference", "new_logit")


def attribute_residual(model: Transformer, contrast: Contrast, *, site: str = "resid_pre") -> xr.Dataset:
    """Over (layer, position, pair), as ``residual_grid``: each column of the residual stream in each layer."""
    layers = [layer for layer in range(model.config.n_layers) if _has(model, site, layer)]
    effects = _attribute(model, contrast, [Site(site, layer) for layer in layers])
    grid = {name: np.moveaxis(values, 1, 2) for name, values in effects.items()}  # [layer, position, pair]
    coords = {"layer": layers, "position": np.arange(contrast.base.shape[1])}
    return label_outcomes(grid, ("layer", "position"), coords, _describe(site, contrast))


def attribute_positions(
    model: Transformer, contrast: Contrast, positions: Mapping[str, np.ndarray], *, site: str = "resid_pre"
) -> xr.Dataset:
    """Over (layer, position, pair), as ``position_grid``: NaN where a pair has no such position."""
    whole = attribute_residual(model, contrast, site=site)
    columns = np.stack(list(positions.values()))  # [position, pair]
    pairs = np.arange(len(contrast))
    grid = {name: np.where(columns >= 0, whole[name].values[:, columns, pairs], np.nan) for name in METRICS}
    return label_outcomes(grid, ("layer", "position"), {"layer": whole.layer, "position": list(positions)}, whole.attrs)


def attribute_heads(model: Transformer, contrast: Contrast, *, at_positions: Columns | None = None) -> xr.Dataset:
    """Over (layer, head, pair), as ``head_grid``: each head's whole output, at all positions or the marked ones."""
    layers = range(model.config.n_layers)
    effects = _attribute(model, contrast, [Site("result", layer) for layer in layers])
    marks = mark_columns(at_positions, *contrast.base.shape)[:, :, None]  # [pair, position, 1]
    grid = {name: (values * marks).sum(2).transpose(0, 2, 1) for name, values in effects.items()}  # [layer, head, pair]
    coords = {"layer": list(layers), "head": np.arange(model.config.n_heads)}
    return label_outcomes(grid, ("layer", "head"), coords, _describe("result", contrast))


def attribute_mlps(model: Transformer, contrast: Contrast, *, at_positions: Columns | None = None) -> xr.Dataset:
    """Over (layer, pair), as ``mlp_grid``."""
    layers = list(model.config.layers_with_mlp)
    if not layers:
        raise BindscopeError("this model has no MLP to attribute anything to.")
    effects = _attribute(model, contrast, [Site("mlp_out", layer) for layer in layers])
    marks = mark_columns(at_positions, *contrast.base.shape)
    grid = {name: (values * marks).sum(2) for name, values in effects.items()}  # [layer, pair]
    return label_outcomes(grid, ("layer",), {"layer": layers}, _describe("mlp_out", contrast))


@dataclass(frozen=True)
class Agreement:
    """How near an approximate grid comes to the exact one, over cells averaged across pairs."""

    metric: str
    n_cells: int
    correlation: float  # Pearson's, NaN where one of the two is constant
    mean_absolute_error: float
    sign_agreement: float  # the fraction of cells with an exact effect above ``smallest`` whose sign is right
    top_overlap: float  # the fraction of the exact grid's ``top`` strongest cells that the approximate one names too
    top: int


def compare_with_exact(
    approximate: xr.Dataset,
    exact: xr.Dataset,
    metric: str = "logit_difference",
    top: int = 10,
    smallest: float = 0.01,
) -> Agreement:
    """Measure an approximate grid against the exact one of the same cells and pairs."""
    if metric not in approximate or metric not in exact:
        raise BindscopeError(f"metric '{metric}': a gradient approximates {' and '.join(METRICS)} only.")
    guess, truth = approximate[metric], exact[metric].transpose(*approximate[metric].dims)
    if guess.shape != truth.shape:
        raise BindscopeError(
            f"the two grids have shapes {guess.shape} and {truth.shape}; compare grids of equal cells."
        )
    known = np.isfinite(guess.values) & np.isfinite(truth.values)
    guessed, true = (grid.where(known).mean("pair").values.ravel() for grid in (guess, truth))
    filled = np.isfinite(guessed)
    guessed, true = guessed[filled], true[filled]
    clear = np.abs(true) > smallest
    top = min(top, len(true))
    strongest = [set(np.argsort(-np.abs(cells), kind="stable")[:top]) for cells in (guessed, true)]
    return Agreement(
        metric=metric,
        n_cells=len(true),
        correlation=_correlate(guessed, true),
        mean_absolute_error=float(np.abs(guessed - true).mean()),
        sign_agreement=float((np.sign(guessed) == np.sign(true))[clear].mean()) if clear.any() else float("nan"),
        top_overlap=len(strongest[0] & strongest[1]) / top,
        top=top,
    )


def _correlate(a: np.ndarray, b: np.ndarray) -> float:
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def _attribute(model: Transformer, contrast: Contrast, sites: Sequence[Site]) -> dict[str, np.ndarray]:
    """The approximate effect of each metric, [site, pair, position] or [site, pair, position, head]."""
    for site in sites:
        resolve_site(site, model, contrast.base.shape[1])
    parts = [
        _attribute_part(model, contrast.take(slice(start, start + PAIRS_AT_ONCE)), sites)
        for start in range(0, len(contrast), PAIRS_AT_ONCE)
    ]
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in METRICS}


def _attribute_part(model: Transformer, contrast: Contrast, sites: Sequence[Site]) -> dict[str, np.ndarray]:
    with torch.no_grad():
        source = run(model, contrast.source, sites)
    nudges: dict[Site, Tensor] = {}  # zeros added to each site: their gradient is the site's
    differences: dict[Site, Tensor] = {}

    def nudge(site: Site, old: Tensor) -> Tensor:
        nudges[site] = torch.zeros_like(old, requires_grad=True)
        differences[site] = source[site] - old.detach()
        return old + nudges[site]

    with torch.enable_grad():
        write = {site: lambda old, site=site: nudge(site, old) for site in sites}  # type: ignore[misc]
        logits = run(model, contrast.base, write=write).logits[:, contrast.at]  # type: ignore[arg-type]
        numbers = _numbers(logits, contrast)
        ends = _numbers(source.logits[:, contrast.at], contrast)
        effects = {}
        for name, number in numbers.items():
            slopes = torch.autograd.grad(number.sum(), [nudges[site] for site in sites], retain_graph=True)
            span = ends[name] - number.detach()  # [pair]
            scale = torch.where(span.abs() < SMALLEST_RANGE, torch.nan, 1 / span)
            cells = [(to_host(slope) * to_host(differences[site])).sum(-1) for site, slope in zip(sites, slopes)]
            effects[name] = torch.stack([cell * scale.view(-1, *[1] * (cell.ndim - 1)) for cell in cells]).numpy()
    return effects


def _numbers(logits: Tensor, contrast: Contrast) -> dict[str, Tensor]:
    """The metrics before they are normalised, [pair]."""
    logits, pairs = to_host(logits), torch.arange(len(contrast))
    new, old = logits[pairs, contrast.source_answers], logits[pairs, contrast.base_answers]
    return {"logit_difference": new - old, "new_logit": new}


def _has(model: Transformer, site: str, layer: int) -> bool:
    return site != "resid_mid" or layer in model.config.layers_with_mlp


def _describe(site: str, contrast: Contrast) -> dict[str, object]:
    return {"method": "attribution: gradient at the base run times difference", "site": site, "n_pairs": len(contrast)}
