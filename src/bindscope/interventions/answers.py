"""What a changed model answers, example by example, beside what it answered unchanged; and accuracies by label.

>>> dataset = ablate_heads(model, batch)
>>> accuracy_by(dataset, "depth").accuracy.sel(layer=2, head=1, depth=3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

Edits = dict[Site | str, Callable[[Tensor], Tensor]]  # what ``run`` writes
ROWS_AT_ONCE = 128  # bounds memory, never changes a number
# what ``read_logits`` gives
UNITS = {"correct": "fraction", "answer": "output", "log_probability": "nat", "margin": "logit"}


def accuracy_by(dataset: xr.Dataset, label: str = "depth", confidence: float = 0.95) -> xr.Dataset:
    """Accuracy in each group of examples with Wilson intervals and counts: ``accuracy``, ``accuracy_low``,
    ``accuracy_high`` and ``n`` over (…, label), and the same of the unchanged run as ``base_accuracy`` and so on.
    """
    if label not in dataset.coords:
        known = ", ".join(str(name) for name, values in dataset.coords.items() if values.dims == ("example",))
        raise BindscopeError(f"the examples have no label '{label}'; they have {known}.")
    groups, of = np.unique(dataset[label].values, return_inverse=True)
    member = of == np.arange(len(groups))[:, None]  # [group, example]
    others = {str(name): dataset[name] for name in dataset.correct.dims if name != "example"}
    summary = xr.Dataset(coords={**others, label: groups})
    for prefix in ("", "base_"):
        right = dataset[f"{prefix}correct"].transpose(..., "example")
        known = np.isfinite(right.values)
        hits = np.where(known, right.values, 0) @ member.T  # [..., group]
        n = known @ member.T.astype(int)
        low, high = wilson_interval(hits, n, confidence)
        with np.errstate(invalid="ignore"):
            numbers = {"accuracy": hits / n, "accuracy_low": low, "accuracy_high": high}
        for name, values in numbers.items():
            dims = (*right.dims[:-1], label)
            summary[f"{prefix}{name}"] = (dims, np.where(n > 0, values, np.nan), {"units": "fraction"})
        summary[f"{prefix}n"] = ((*right.dims[:-1], label), n)
    summary.attrs = {**dataset.attrs, "confidence": confidence, "interval": "Wilson"}
    return summary


def margin_by(dataset: xr.Dataset, label: str = "depth") -> xr.Dataset:
    """How many logits of the right answer's margin over the best other are lost, in each group of examples: ``lost`` over (…,
    label) with 95 % intervals over examples (``lost_low``, ``lost_high``), and ``margin``, that of the unchanged run (label).
    """
    groups, of = np.unique(dataset[label].values, return_inverse=True)
    others = {str(name): dataset[name] for name in dataset.margin.dims if name != "example"}
    summary = xr.Dataset(coords={**others, label: groups})
    fall = (dataset.base_margin - dataset.margin).transpose(..., "example").values.astype(float)
    parts = [fall[..., of == group] for group in range(len(groups))]
    mean = np.stack([part.mean(-1) for part in parts], axis=-1)
    half = np.stack([1.96 * part.std(-1) / np.sqrt(part.shape[-1]) for part in parts], axis=-1)
    for name, values in {"lost": mean, "lost_low": mean - half, "lost_high": mean + half}.items():
        summary[name] = ((*others, label), values, {"units": "logit"})
    whole = [dataset.base_margin.values[of == group].mean() for group in range(len(groups))]
    summary["margin"] = ((label,), np.array(whole, float), {"units": "logit"})
    return summary


@torch.no_grad()
def read_changed(model: Transformer, batch: Batch, edits: Callable[[slice], Edits]) -> dict[str, np.ndarray]:
    """Answers [example] of a model that is changed by ``edits(rows)``, a part of the rows at a time."""
    at = int(batch.target_positions[0])
    parts = []
    for start in range(0, len(batch), ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, len(batch)))
        tokens = torch.from_numpy(batch.tokens[rows])
        logits = run(model, tokens, write=edits(rows), layout=batch.layout).logits[:, at]
        parts.append(read_logits(logits, torch.from_numpy(batch.targets[rows, 0])))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def read_logits(logits: Tensor, answers: Tensor) -> dict[str, np.ndarray]:
    """What logits [..., example, output] say of the right answers [example]; the margin is over the best other answer."""
    logits = to_host(logits)
    top = logits.argmax(-1)
    examples = torch.arange(len(answers))
    right = logits.double().log_softmax(-1)[..., examples, answers]
    others = logits.clone()
    others[..., examples, answers] = -torch.inf
    return {
        "correct": (top == answers).float().numpy(),
        "answer": top.numpy(),
        "log_probability": right.float().numpy(),
        "margin": (logits[..., examples, answers] - others.amax(-1)).float().numpy(),
    }


def label_answers(
    model: Transformer,
    batch: Batch,
    readings: Mapping[str, np.ndarray],
    dims: Sequence[str],
    coords: Mapping[str, object],
    attrs: Mapping[str, object],
    unchanged: Mapping[str, np.ndarray] | None = None,
) -> xr.Dataset:
    """Readings [*dims, example] as a dataset, beside those of the unchanged run (made here, if not given) and the labels."""
    variables: dict[str, object] = {name: ((*dims, "example"), values) for name, values in readings.items()}
    for name, values in (unchanged or read_changed(model, batch, lambda rows: {})).items():
        variables[f"base_{name}"] = (("example",), values)
    labels = {name: ("example", values[:, 0]) for name, values in batch.labels.items()}
    dataset = xr.Dataset(variables, {**coords, **labels, "example": np.arange(len(batch))})
    for variable in dataset.data_vars:
        dataset[variable].attrs["units"] = UNITS[str(variable).removeprefix("base_")]
    dataset.attrs = {**attrs, "n_examples": len(batch)}
    return dataset
