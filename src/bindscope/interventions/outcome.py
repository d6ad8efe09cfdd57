"""What an intervention did to the answers, pair by pair, and summaries with intervals.

- ``success``            the source's answer is now the top output;
- ``kept``               the base's answer still is;
- ``logit_difference``   how far (source answer − base answer) has moved from its value in the base run (0) to its value
                         in the source run (1);
- ``new_logit``          the same for the source answer's logit alone, as the paper defines it. Mere disruption can
                         raise it, so read it beside ``success``;
- ``kl``                 KL(base run ‖ changed run) of the output distributions, in nats.

A metric of one's own (``own_metric``) stands beside them under the name of its function.

A number normalised by a range near 0 says nothing, so pairs whose range is below ``SMALLEST_RANGE`` count as missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.interventions.contrast import Contrast
from bindscope.interventions.metrics import METRICS, UNITS
from bindscope.interventions.own_metric import Answers, OwnMetric
from bindscope.model.run import to_host

SMALLEST_RANGE = 1e-3


def measure_outcomes(
    logits: Tensor, base_logits: Tensor, source_logits: Tensor, contrast: Contrast, metric: OwnMetric | None = None
) -> dict[str, np.ndarray]:
    """Every metric [..., pair] for changed logits [..., pair, output]; the unchanged ones are [pair, output]."""
    logits, base_logits, source_logits = to_host(logits), to_host(base_logits), to_host(source_logits)
    pairs = torch.arange(len(contrast), device=logits.device)
    old, new = contrast.base_answers.to(logits.device), contrast.source_answers.to(logits.device)
    top = logits.argmax(-1)  # [..., pair]

    def moved(value: Tensor, start: Tensor, end: Tensor) -> Tensor:
        span = end - start  # [pair]
        return torch.where(span.abs() < SMALLEST_RANGE, torch.nan, (value - start) / span)

    def margin(values: Tensor) -> Tensor:
        return values[..., pairs, new] - values[..., pairs, old]

    base_log = base_logits.double().log_softmax(-1)
    changed_log = logits.double().log_softmax(-1)
    values = {
        "success": (top == new).float(),
        "kept": (top == old).float(),
        "logit_difference": moved(margin(logits), margin(base_logits), margin(source_logits)),
        "new_logit": moved(logits[..., pairs, new], base_logits[pairs, new], source_logits[pairs, new]),
        "kl": (base_log.exp() * (base_log - changed_log)).sum(-1).clamp_min(0).float(),
    }
    if metric is not None:
        values[metric.name] = metric.measure(logits, base_logits, source_logits, Answers(old, new))
    return {name: value.cpu().numpy() for name, value in values.items()}


def name_metrics(metric: OwnMetric | None) -> tuple[str, ...]:
    """What ``measure_outcomes`` gives, by name."""
    return METRICS if metric is None else (*METRICS, metric.name)


def label_outcomes(
    outcomes: Mapping[str, np.ndarray],
    dims: Sequence[str],
    coords: Mapping[str, object],
    attrs: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Outcomes as a dataset over (*dims, pair), units named."""
    dataset = xr.Dataset({name: ((*dims, "pair"), values) for name, values in outcomes.items()}, dict(coords))
    for name in dataset.data_vars:
        dataset[name].attrs["units"] = UNITS.get(str(name), "1")
    dataset.attrs = dict(attrs or {})
    return dataset


def summarise_outcomes(
    dataset: xr.Dataset, rng: np.random.Generator, confidence: float = 0.95, n_resamples: int = 1000
) -> xr.Dataset:
    """Means over pairs with percentile-bootstrap intervals: each metric gets ``NAME_low`` and ``NAME_high``, and ``n``.

    Whole pairs are resampled, the same ones in every cell; a cell's missing pairs are left out of its mean.
    """
    n_pairs = dataset.sizes["pair"]
    counts = rng.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), n_resamples).astype(float)  # [resample, pair]
    tail = (1 - confidence) / 2
    summary = xr.Dataset(coords={name: c for name, c in dataset.coords.items() if "pair" not in c.dims})
    for name in [str(name) for name, values in dataset.data_vars.items() if "pair" in values.dims]:
        values = dataset[name].transpose(..., "pair")
        flat = values.values.reshape(-1, n_pairs).astype(float)  # [cell, pair]
        known = np.isfinite(flat)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(known, flat, 0).sum(1) / known.sum(1)
            resampled = (counts @ np.where(known, flat, 0).T) / (counts @ known.T)  # [resample, cell]
        low, high = _quantiles(resampled, tail)
        shape, dims = values.shape[:-1], values.dims[:-1]
        for suffix, numbers in (("", mean), ("_low", low), ("_high", high)):
            summary[f"{name}{suffix}"] = (dims, numbers.reshape(shape), {"units": values.attrs.get("units", "1")})
        if "n" not in summary:
            summary["n"] = (dims, known.sum(1).reshape(shape))
    summary.attrs = {**dataset.attrs, "confidence": confidence, "n_pairs": n_pairs, "interval": "bootstrap over pairs"}
    return summary


def _quantiles(resampled: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """The two quantiles of each column; NaN where a column has nothing but missing values."""
    low, high = np.full(resampled.shape[1], np.nan), np.full(resampled.shape[1], np.nan)
    known = np.isfinite(resampled).any(0)
    if known.any():
        low[known], high[known] = np.nanquantile(resampled[:, known], [tail, 1 - tail], axis=0)
    return low, high
