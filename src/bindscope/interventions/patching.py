"""Activation patching (interchange intervention): put activations of one run into another, at any set of sites at once, and see what becomes of the answer.

    >>> outcome = patch_sites(model, contrast, ["L2.H1", "L3.H0"])                      # two heads, all positions
    >>> outcome = patch_sites(model, contrast, ["L2.resid_pre"], positions=positions["rhs 2"])     # its own in each pair
    >>> float(outcome.success.mean())

Everything is one source run and one base run per set: exact, and as plain as ``run``. For whole grids use ``grids``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.address import (
    Positions,
    change_where,
    check_positions,
    describe_heads,
    mark_site,
    merge_marks,
    resolve_site,
)
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import label_outcomes, measure_outcomes
from bindscope.interventions.own_metric import Function, OwnMetric, own_metric
from bindscope.model.run import run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

Blend = Callable[[Tensor, Tensor], Tensor]  # (value in the changed run, value in the source run) → value to go on with
PAIRS_AT_ONCE = 128  # bounds memory, never changes a number


def patch_sites(
    model: Transformer,
    contrast: Contrast,
    sites: Iterable[Site | str],
    *,
    positions: Positions = None,
    edit: Blend | None = None,
    source_model: Transformer | None = None,
    metric: OwnMetric | Function | None = None,
) -> xr.Dataset:
    """Every metric of ``outcome`` over (pair,) when all ``sites`` take their values from the source run together.

    ``positions`` narrows them: columns [pair] or [pair, k] with −1 for none, or marks [pair, position], for all sites
    or by site in a mapping; a site may instead carry common positions behind ``@``. ``edit(value, source)`` says what to
    put in, the source's value when left out; ``value`` already feels the changes made before it. ``source_model`` gives
    the source's activations and defaults to ``model``: another checkpoint asks whether it speaks the same language.
    ``metric`` is a function of your own, ``f(patched, base, source, answers)``, measured beside the others.

    A head named without more, ``L2.H1``, means its whole output (``result``), identity-scaling term included.

    >>> patch_sites(model, contrast, ["L2.H1", "L3.mlp_out"]).success.mean()
    """
    own = own_metric(metric)
    logits = patch_logits(model, contrast, sites, positions=positions, edit=edit, source_model=source_model)
    attrs = {
        "sites": ", ".join(map(str, logits.sites)),
        "heads": describe_heads(logits.sites, model),
        "n_pairs": len(contrast),
        "n_untouched": int((~logits.touched).sum()),
    }
    outcomes = measure_outcomes(logits.patched, logits.base, logits.source, contrast, own)
    missing = {name: np.where(logits.touched, values, np.nan) for name, values in outcomes.items()}
    return label_outcomes(missing, (), {"pair": np.arange(len(contrast))}, attrs)


@dataclass(frozen=True, eq=False)
class PatchedLogits:
    """What the model gives at the asked column, [pair, output] each: unchanged, as the source run does, and changed."""

    sites: tuple[Site, ...]
    touched: np.ndarray  # [pair]: whether anything was changed in it
    base: Tensor
    source: Tensor
    patched: Tensor


def patch_logits(
    model: Transformer,
    contrast: Contrast,
    sites: Iterable[Site | str],
    *,
    positions: Positions = None,
    edit: Blend | None = None,
    source_model: Transformer | None = None,
) -> PatchedLogits:
    """The logits behind ``patch_sites``, for those who want whole distributions."""
    found = tuple(resolve_site(site, model, contrast.base.shape[1]) for site in sites)
    check_request(found, positions, model, source_model)
    marks = merge_marks({site: mark_site(site, positions, *contrast.base.shape) for site in found})
    parts = []
    for start in range(0, len(contrast), PAIRS_AT_ONCE):
        rows = slice(start, start + PAIRS_AT_ONCE)
        some, own = contrast.take(rows), {site: mark[rows] for site, mark in marks.items()}
        parts.append(_patch_part(model, some, own, edit or take_source, source_model or model))
    base, source, patched = (torch.cat(part) for part in zip(*parts))
    return PatchedLogits(found, np.any([mark.any(1) for mark in marks.values()], axis=0), base, source, patched)


def take_source(value: Tensor, source: Tensor) -> Tensor:
    """Plain patching: the source's value."""
    return source


def take_dimensions(indices: Sequence[int]) -> Blend:
    """An edit that takes only some coordinates of a site from the source: single neurons of ``post``, say.

    >>> patch_sites(model, contrast, ["L2.post"], edit=take_dimensions([17]))
    """

    def blend(value: Tensor, source: Tensor) -> Tensor:
        width = value.shape[-1]
        if not indices or min(indices) < 0 or max(indices) >= width:
            raise BindscopeError(f"dimensions {list(indices)}: the site has dimensions 0 to {width - 1}.")
        mixed = value.clone()
        mixed[..., list(indices)] = source[..., list(indices)]
        return mixed

    return blend


@torch.no_grad()
def _patch_part(
    model: Transformer,
    contrast: Contrast,
    marks: dict[Site, np.ndarray],
    edit: Blend,
    source_model: Transformer,
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits [pair, output] of the base run, of the source run and of the changed run."""
    base = run(model, contrast.base, at=torch.tensor([contrast.at])).logits[:, 0]
    taken = run(source_model, contrast.source, read=marks)

    def put(site: Site) -> Callable[[Tensor], Tensor]:
        return change_where(marks[site], site, lambda old: edit(old, taken[site]))

    patched = run(model, contrast.base, write={site: put(site) for site in marks})
    return base, taken.logits[:, contrast.at], patched.logits[:, contrast.at]


def check_request(
    sites: Sequence[Site], positions: Positions, model: Transformer, source_model: Transformer | None
) -> None:
    if not sites:
        raise BindscopeError("no site to change was given; name one, such as 'L2.resid_pre' or 'L1.H0'.")
    if len(set(sites)) < len(sites):
        raise BindscopeError(f"a site is named twice: {', '.join(map(str, sites))}.")
    check_positions(positions, sites)
    if source_model is not None and source_model.config != model.config:
        raise BindscopeError(
            "the source's model has another shape; take activations from a checkpoint of the same run."
        )
