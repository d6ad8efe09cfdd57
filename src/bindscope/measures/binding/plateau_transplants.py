"""Which part of a model after the plateau, put into one on it, makes it follow chains; and the other way round.

>>> asked = ask_by_depth(task, rng, n=600)
>>> transplant_plateau(run.checkpoint(400), run.checkpoint(1000), ["L0.QK", "MLP"], asked).total_fraction
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.scores import EARLY_RULES
from bindscope.measures.transplanting import Asked, find_row, measure_transplants
from bindscope.tasks.binding import to_digits

if TYPE_CHECKING:
    from bindscope.model.config import ModelConfig
    from bindscope.model.transformer import Transformer

MISLEADING = "misleading"  # programs whose answer is the constant of neither line 1 nor line 2
DIRECTIONS = ("reproduce", "undo")
N_RANDOM = 3  # changes at random that each part is held against


def ask_by_depth(task: Any, rng: np.random.Generator, n: int) -> Asked:
    """``n`` programs as evaluation asks them, by depth, and once more those whose first two lines mislead."""
    batch = task.sample_evaluation(rng, n)["test"]
    depth, misleading = batch.labels["depth"][:, 0], mark_misleading(batch)
    splits = {f"depth {each}": np.flatnonzero(depth == each) for each in range(1, task.max_depth + 1)}
    splits[MISLEADING] = np.flatnonzero(misleading)
    return Asked(batch, splits, task.token_groups, counted="programs", within=MISLEADING)


def mark_misleading(batch: Any) -> np.ndarray:
    """Where neither of the first two lines has the answer: [program] bool."""
    answers = to_digits(batch, batch.targets[:, 0])
    return np.all([answers != batch.labels[f"rule_{name}"][:, 0] for name in EARLY_RULES], axis=0)


def list_rows(config: ModelConfig, groups: Sequence[str]) -> list[str]:
    """What is tried of a model: groups of tokens, the first layer and all later ones by kind of weights, each layer whole,
    and where the first layer and all later ones look."""
    first = ["L0.QK", "L0.OV", "L0.QK + L0.OV"]
    rest = f"L1-{config.n_layers - 1}"
    later = [f"{rest}.QK", f"{rest}.OV", f"{rest}.QK + {rest}.OV"] if config.n_layers > 1 else []
    others = ["MLP"] * bool(config.layers_with_mlp) + ["norms"] * (config.norm != "none")
    layers = [f"L{layer}" for layer in range(config.n_layers)]
    patterns = ["L0.pattern", *([f"{rest}.pattern"] if later else [])]
    last = [] if config.tied else ["unembedding"]
    return ["everything", "embeddings", *groups, *first, *later, *others, *last, *layers, *patterns]


def transplant_plateau(
    before: Transformer,
    after: Transformer,
    rows: Sequence[str],
    asked: Asked,
    seed: int = 0,
    on_row: Callable[[], None] = lambda: None,
) -> xr.Dataset:
    """What ``measure_transplants`` gives over (direction, part): a part put into the model before (reproduce) or after (undo),
    and how much of the way between the two on misleading programs it carries, ``total_fraction``.

    ``random_fraction`` (part, draw) is the control of reproducing.
    """

    def tick(done: int, total: int) -> None:
        on_row()

    reproduced = measure_transplants(before, after, rows, asked, seed, tick, N_RANDOM)
    undone = measure_transplants(after, before, rows, asked, seed, tick)
    random = reproduced.random_fraction
    both = [reproduced.drop_vars("random_fraction"), undone]
    dataset = xr.concat(both, xr.IndexVariable("direction", list(DIRECTIONS))).assign(random_fraction=random)
    patterns = [any(part.looks for part in find_row(before, row, asked)) for row in rows]
    return dataset.assign_coords(kind=("part", ["pattern" if pattern else "weights" for pattern in patterns]))
