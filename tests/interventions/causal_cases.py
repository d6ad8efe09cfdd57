"""Small models and pairs that the tests of interventions share."""

from __future__ import annotations

import numpy as np
import torch

from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.pairs import CounterfactualPairs, sample_root_pairs
from bindscope.theory.constructed import construct_dereferencer

TASK = BindingTask(lines=5, max_depth=3)


def random_model(seed: int = 0, **changes: object) -> Transformer:
    """A small model in double precision, with weights large enough that every part matters."""
    settings: dict[str, object] = dict(
        d_vocab=40, n_positions=TASK.n_positions, n_layers=3, n_heads=2, d_model=16, d_head=8, d_mlp=24,
        init=InitConfig(scheme="fan_in", gain=1.5),
    )  # fmt: skip
    model = Transformer(ModelConfig(**{**settings, **changes}), torch.Generator().manual_seed(seed)).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "identity" in name or "bias" in name:
                weight.copy_(torch.linspace(-0.6, 0.8, weight.numel()).view_as(weight))
    return model


def identity_model(seed: int = 0, **changes: object) -> Transformer:
    return random_model(seed, identity_qk=True, identity_vo=True, identity_gain=1.5, **changes)


def sample_pairs(n: int = 6, depth: int | None = None, seed: int = 0, task: BindingTask = TASK) -> CounterfactualPairs:
    depths = None if depth is None else range(depth, depth + 1)
    return sample_root_pairs(task, np.random.default_rng(seed), n, depths)


def dereferencer(task: BindingTask = TASK) -> Transformer:
    return construct_dereferencer(task.lines, task.max_depth)
