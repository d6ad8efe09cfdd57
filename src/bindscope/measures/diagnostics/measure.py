"""All diagnostics of a checkpoint on a few minibatches, each with an interval over these.

>>> measure_diagnostics(model, draw_examples(task, rng, 64)).repetition
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.intervals import normal_quantile, student_interval
from bindscope.measures.diagnostics.gradients import fisher_trace, hessian_trace, ratios_by_group
from bindscope.measures.diagnostics.representations import (
    attention_entropy,
    mean_pairwise_cosine,
    participation_ratio,
    repetition,
)
from bindscope.measures.learning_coefficient.examples import Examples
from bindscope.measures.learning_coefficient.landscape import ModelLandscape
from bindscope.measures.learning_coefficient.parts import KINDS, mark_part
from bindscope.model.run import run, to_host
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

N_PROBES = 2  # of Hutchinson's, on each minibatch
Values = dict[str, np.ndarray]  # name → what one minibatch gives
DIMS = {
    "collapse": ("layer",),
    "answer_collapse": ("layer",),
    "participation": ("layer",),
    "entropy": ("layer", "head"),
}
EXPLAINS = {
    "collapse": "mean cosine between the residual streams at two positions of an example",
    "answer_collapse": "mean cosine between the residual streams at the answers of two examples",
    "participation": "participation ratio of the residual stream: how many directions vary alike",
    "entropy": "mean entropy of a head's attention from the answers, in nats",
    "entropy_spread": "standard deviation of that entropy over all heads",
    "repetition": "how often two answers are the same",
    "repetition_true": "how often two correct answers are the same",
    "fisher": "trace of the Fisher matrix",
    "hessian": "trace of the Hessian",
    "signal_to_noise": "length of the mean gradient over its spread from minibatch to minibatch",
}


def measure_diagnostics(model: Transformer, examples: Examples, seed: int = 0) -> xr.Dataset:
    """Every diagnostic with ``NAME_low`` and ``NAME_high``, over (), (layer), (layer, head) or (group)."""
    generator = torch.Generator().manual_seed(seed)
    landscape = ModelLandscape(model, examples)
    own = deepcopy(model).eval()
    batches = range(len(examples.batches))
    rows = []
    for index in batches:
        batch = examples.batches[index]
        row = read_activations(own, batch)
        row["fisher"] = (
            np.array(fisher_trace(own, batch, generator)) if batch.targets.dtype.kind != "f" else np.array(np.nan)
        )
        row["hessian"] = hessian_trace(landscape, index, N_PROBES, generator).mean()
        rows.append(row)
    dataset = summarise(rows)
    start = landscape.start[None]
    gradients = torch.cat([landscape.losses_and_gradients(start, [index])[1].clone() for index in batches])
    return dataset.merge(_label_ratios(gradients, own))


@torch.no_grad()
def read_activations(model: Transformer, batch: Batch) -> Values:
    """What one forward pass says of a minibatch."""
    layers = range(model.config.n_layers)
    streams, patterns = ([f"L{layer}.{name}" for layer in layers] for name in ("resid_post", "pattern"))
    trace = run(model, torch.from_numpy(batch.tokens), [*streams, *patterns], layout=batch.layout)
    asked = torch.from_numpy(batch.target_positions)
    residual = [to_host(trace[site]) for site in streams]  # each [batch, position, d_model]
    entropy = torch.stack([attention_entropy(to_host(trace[site])[:, :, asked]).mean((0, 2)) for site in patterns])
    answers = to_host(trace.logits[:, asked]).argmax(-1).numpy()  # [batch, target]
    return {
        "collapse": _stack(mean_pairwise_cosine(x).mean() for x in residual),
        "answer_collapse": _stack(mean_pairwise_cosine(x[:, asked[0]]) for x in residual),
        "participation": np.array([participation_ratio(x.flatten(0, 1)) for x in residual]),
        "entropy": entropy.numpy(),
        "entropy_spread": np.array(float(entropy.std(correction=0))),
        "repetition": np.array(repetition(answers)),
        "repetition_true": np.array(repetition(batch.targets)),
    }


def summarise(rows: list[Values]) -> xr.Dataset:
    """Means over minibatches with Student's intervals."""
    dataset = xr.Dataset()
    for name in rows[0]:
        values = np.stack([np.asarray(row[name], dtype=float) for row in rows])  # [batch, …]
        flat = values.reshape(len(values), -1)
        ends = np.array([student_interval(column) for column in flat.T]).T.reshape(2, *values.shape[1:])
        dims = DIMS.get(name, ())
        dataset[name] = (dims, values.mean(0), {"long_name": EXPLAINS[name]})
        dataset[f"{name}_low"], dataset[f"{name}_high"] = (dims, ends[0]), (dims, ends[1])
    return dataset


def _label_ratios(gradients: Tensor, model: Transformer) -> xr.Dataset:
    names = ["all", *_present(model), *(f"L{layer}" for layer in range(model.config.n_layers))]
    found = ratios_by_group(to_host(gradients), {name: mark_part(model, name) for name in names})
    values, errors = (np.array([found[name][part] for name in names]) for part in (0, 1))
    z = normal_quantile(0.95)
    return xr.Dataset(
        {
            "signal_to_noise": ("group", values, {"long_name": EXPLAINS["signal_to_noise"]}),
            "signal_to_noise_low": ("group", np.maximum(values - z * errors, 0)),
            "signal_to_noise_high": ("group", values + z * errors),
        },
        {"group": names},
    )


def _present(model: Transformer) -> list[str]:
    """The kinds of parameters that a model has."""
    import re

    known = [name for name, _ in model.named_parameters()]
    return [kind for kind, pattern in KINDS.items() if any(re.search(pattern, name) for name in known)]


def _stack(values: Iterable[Tensor]) -> np.ndarray:
    return np.array([float(value) for value in values])
