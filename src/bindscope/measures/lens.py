"""The logit lens: what the residual stream would answer if the network ended after each layer.

The residual stream at the answer column, entering layer 0, 1, … and leaving the last one, goes through the last LayerNorm and the
unembedding. On programs where the chain and line 1 name different digits, three candidates compete:

    answer    the digit at the root of the queried chain
    line 1    the constant of line 1
    others    the other digits that the program's constants hold (their mean)

>>> lens = logit_lens([(step, run.checkpoint(step)) for step in run.steps], batch)
>>> lens.logit.sel(candidate="answer") - lens.logit.sel(candidate="line 1")  # (step, layer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import length_hint

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import TOKENS_AT_ONCE, evaluating
from bindscope.model.run import run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import constants_by_line, outputs_of_digits, rows_of, to_digits
from bindscope.tasks.task import Batch

CANDIDATES = ("answer", "line 1", "others")
READINGS = {"logit": "logit", "probability": "fraction", "rank": "rank", "top": "fraction"}  # and their units
N_DIGITS = 10
CONFIDENCE = 0.95


def logit_lens(
    models: Iterable[tuple[int, Transformer]],
    batch: Batch,
    *,
    positions: Mapping[str, np.ndarray] | None = None,
    rng: np.random.Generator | None = None,
    n_resamples: int = 500,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Means over programs with bootstrap intervals, over (step, layer, candidate); layer k is after k layers.

    ``logit``, ``probability``, ``rank`` (1 = highest; equals share their ranks), ``top`` (the fraction of programs on
    which the candidate alone is highest; for ``others``, one of them), and ``margin`` (step, layer): the logit of the
    answer above that of line 1. Each has ``_low`` and ``_high``.

    ``positions`` (name → columns [row of the batch], −1 = none) reads there instead of at the answer's column and adds a
    dimension ``position``. Rows where answer and line 1 agree, or without any other digit, are left out and counted.
    """
    kept, competitors = _find_competitors(batch)
    columns = _named_columns(batch, kept, positions)  # [position, row]
    rng = np.random.default_rng(0) if rng is None else rng
    counts = rng.multinomial(len(kept), np.full(len(kept), 1 / len(kept)), n_resamples)  # [resample, row]
    rows, steps, sites = [], [], []
    tokens = torch.from_numpy(np.ascontiguousarray(batch.tokens[kept]))
    for step, model in models:
        sites = lens_sites(model)
        readings = _read_lens(model, tokens, batch, sites, columns, competitors)
        rows.append({name: _summarise(values, counts) for name, values in readings.items()})
        steps.append(step)
        if on_progress is not None:
            on_progress(len(steps), max(length_hint(models), len(steps)))
    if not steps:
        raise BindscopeError("logit lens: no checkpoint was given.")
    dataset = _label(rows, steps, sites, list(positions) if positions is not None else ["answer column"])
    dataset.attrs = {
        "title": "logit lens",
        "n": len(kept),
        "n_excluded": len(batch) - len(kept),
        "excluded": "programs whose answer is the constant of line 1, or that hold no third digit",
        "confidence": CONFIDENCE,
        "interval": "bootstrap over programs",
    }
    return dataset if positions is not None else dataset.isel(position=0, drop=True)


def lens_sites(model: Transformer) -> list[Site]:
    """The residual stream entering each layer, and leaving the last one."""
    n_layers = model.config.n_layers
    return [*(Site("resid_pre", layer) for layer in range(n_layers)), Site("resid_post", n_layers - 1)]


@dataclass(frozen=True)
class _Competitors:
    """The digits that compete, and the outputs that stand for digits."""

    answer: Tensor  # [row]
    line_1: Tensor  # [row]
    others: Tensor  # [row, digit] bool
    outputs: Tensor  # [digit]

    def take(self, rows: slice) -> _Competitors:
        return _Competitors(self.answer[rows], self.line_1[rows], self.others[rows], self.outputs)


def _find_competitors(batch: Batch) -> tuple[np.ndarray, _Competitors]:
    """The rows of the batch that tell the candidates apart, and the candidates there."""
    if "rule_line_1" not in batch.labels:
        raise BindscopeError("logit lens: answer and line 1 compete in binding programs only.")
    answer, line_1 = to_digits(batch, batch.targets[:, 0]), batch.labels["rule_line_1"][:, 0]  # [batch]
    constants = constants_by_line(rows_of(batch), int(batch.labels["lines"].max()))  # [batch, line]
    held = (constants[:, :, None] == np.arange(N_DIGITS)).any(1)  # [batch, digit]
    rows = np.arange(len(batch))
    held[rows, answer] = held[rows, line_1] = False
    kept = np.flatnonzero((answer != line_1) & held.any(1))
    if not len(kept):
        raise BindscopeError(
            f"logit lens: in none of the {len(batch)} programs do answer, line 1 and a third digit differ; draw more."
        )
    digits, early, others = (torch.from_numpy(values[kept]) for values in (answer, line_1, held))
    return kept, _Competitors(digits, early, others, torch.from_numpy(outputs_of_digits(batch)))


def _named_columns(batch: Batch, kept: np.ndarray, positions: Mapping[str, np.ndarray] | None) -> np.ndarray:
    if positions is None:
        return np.full((1, len(kept)), int(batch.target_positions[0]))
    if not positions:
        raise BindscopeError("logit lens: positions names none; give at least one, or leave it out.")
    columns = np.stack([np.broadcast_to(at, len(batch))[kept] for at in positions.values()])
    if columns.max() >= batch.tokens.shape[1]:
        raise BindscopeError(f"logit lens: column {columns.max()} is beyond the {batch.tokens.shape[1]} of these rows.")
    return columns


def _read_lens(
    model: Transformer, tokens: Tensor, batch: Batch, sites: list[Site], columns: np.ndarray, competitors: _Competitors
) -> dict[str, np.ndarray]:
    """Every reading [layer, position, candidate or 1, row], a bounded part of the rows at a time."""
    needed, index = np.unique(columns.clip(0), return_inverse=True)  # read no more columns than are asked
    reads = [replace(site, positions=tuple(needed.tolist())) for site in sites]
    index = index.reshape(columns.shape)  # [position, row]
    n_rows = max(1, TOKENS_AT_ONCE // (tokens.shape[1] + len(sites) * len(needed)))
    device = next(model.parameters()).device
    parts: list[dict[str, np.ndarray]] = []
    with evaluating(model), torch.no_grad():
        for start in range(0, len(tokens), n_rows):
            part = slice(start, start + n_rows)
            at = torch.from_numpy(index[:, part]).to(device)  # [position, row]
            trace = run(model, tokens[part].to(device), read=reads, layout=batch.layout, at=torch.tensor([0]))
            stream = torch.stack([trace[site] for site in reads])  # [layer, row, needed column, d_model]
            logits = model.to_logits(stream[:, torch.arange(at.shape[1]), at])  # [layer, position, row, output]
            readings = _compare(logits.float().cpu(), competitors.take(part))
            missing = columns[:, part] < 0
            parts.append({name: np.where(missing[None, :, None], np.nan, v) for name, v in readings.items()})
    return {name: np.concatenate([part[name] for part in parts], -1) for name in parts[0]}


def _compare(logits: Tensor, who: _Competitors) -> dict[str, np.ndarray]:
    """Readings [layer, position, candidate, row] of logits [layer, position, row, output]."""
    digits = logits[..., who.outputs]  # [layer, position, row, digit]
    above = torch.stack([(logits > one[..., None]).sum(-1) for one in digits.unbind(-1)], -1)
    equal = torch.stack([(logits == one[..., None]).sum(-1) - 1 for one in digits.unbind(-1)], -1)
    rank = 1 + above + equal / 2
    values = {
        "logit": digits,
        "probability": logits.softmax(-1)[..., who.outputs],
        "rank": rank,
        "top": (rank == 1).float(),
    }
    weight = who.others.float()
    readings = {}
    for name, value in values.items():
        others = (value * weight).sum(-1)
        others = others if name == "top" else others / weight.sum(-1)
        readings[name] = torch.stack([_pick(value, who.answer), _pick(value, who.line_1), others], 2).double().numpy()
    readings["margin"] = readings["logit"][:, :, :1] - readings["logit"][:, :, 1:2]
    return readings


def _pick(values: Tensor, digits: Tensor) -> Tensor:
    """One digit of each row: [layer, position, row, digit] to [layer, position, row]."""
    return values.gather(-1, digits.expand(values.shape[:-1])[..., None])[..., 0]


def _summarise(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mean, low and high over rows, the last axis, into a new first one; rows without the position are left out."""
    flat = values.reshape(-1, values.shape[-1])  # [cell, row]
    known = np.isfinite(flat)
    filled = np.where(known, flat, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(1) / known.sum(1)
        resampled = (counts @ filled.T) / (counts @ known.T)  # [resample, cell]
    tail = (1 - CONFIDENCE) / 2
    some = np.isfinite(resampled).all(0)
    low, high = np.full((2, len(mean)), np.nan)
    if some.any():
        low[some], high[some] = np.quantile(resampled[:, some], [tail, 1 - tail], axis=0)
    return np.stack([mean, low, high]).reshape(3, *values.shape[:-1])


def _label(rows: list[dict[str, np.ndarray]], steps: list[int], sites: list[Site], positions: list[str]) -> xr.Dataset:
    variables = {}
    for name in rows[0]:
        values = np.stack([row[name] for row in rows])  # [step, bound, layer, position, candidate]
        dims: tuple[str, ...] = ("step", "layer", "position", "candidate")
        if name == "margin":
            values, dims = values[..., 0], dims[:-1]
        for bound, suffix in enumerate(("", "_low", "_high")):
            variables[f"{name}{suffix}"] = (dims, values[:, bound], {"units": READINGS.get(name, "logit")})
    coordinates = {"step": steps, "layer": np.arange(len(sites)), "position": positions, "candidate": list(CANDIDATES)}
    dataset = xr.Dataset(variables, coordinates)
    return dataset.assign_coords(site=("layer", [str(site) for site in sites]))
