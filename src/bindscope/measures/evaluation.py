"""Measure a model on a task's held-out splits, the same splits every time.

>>> evaluate = build_evaluator(task, size=2000, seed=0)
>>> evaluate(model)["test"]["accuracy_by_depth"]
[0.27, 0.62, 0.71, 0.73]

An evaluation is a JSON-ready mapping: one entry per split, and ``watched``, the named accuracies that must all be high
for the task to count as learned. What is recorded of a split, and what is watched, is for the task's family to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.measures.scores import Scores, score_reals, score_tokens
from bindscope.model.lean import shorten
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch, Task

Evaluation = dict[str, Any]  # split name → scores, and "watched" → name → accuracy
Evaluator = Callable[[Transformer], Evaluation]
TOKENS_AT_ONCE = 1 << 15  # how many tokens go through the model together; bounds memory, never changes a number


def build_evaluator(task: Task, size: int, seed: int, splits: Mapping[str, Batch] | None = None) -> Evaluator:
    """Draw the splits once with ``seed`` and return the function that measures any model on them.

    ``splits`` replace the drawn ones of the same name (the test split of a fixed dataset).
    """
    if size < 1:
        raise BindscopeError(f"evaluation size: must be at least 1, got {size}.")
    splits = {**task.sample_evaluation(np.random.default_rng(seed), size), **(splits or {})}
    family = family_of(task)

    def evaluate(model: Transformer) -> Evaluation:
        evaluation: Evaluation = {
            name: family.score_split(task, model, name, batch) or score_answers(task, model, batch)
            for name, batch in splits.items()
        }
        watched, loss = family.watch(evaluation), family.watch_loss(evaluation)
        evaluation["watched"] = {name: accuracy for name, accuracy in watched.items() if accuracy is not None}
        return evaluation if loss is None else {**evaluation, "watched_loss": loss}

    return evaluate


def score_answers(task: Task, model: Transformer, batch: Batch) -> Scores:
    """What is recorded of a split of any family: accuracy, loss and chance of the answers."""
    outputs = read_answers(model, batch)
    if task.target_kind == "real":
        return score_reals(outputs[:, 0], batch.targets[:, 0])
    return score_tokens(outputs, batch.targets[:, 0])


def read_answers(model: Transformer, batch: Batch, tokens_at_once: int = TOKENS_AT_ONCE) -> np.ndarray:
    """The model's outputs at each example's (first) answer, ``[batch, output]`` float32, a bounded part at a time."""
    n_rows = max(1, tokens_at_once // batch.tokens.shape[1])
    device = next(model.parameters()).device
    at = torch.from_numpy(batch.target_positions[:1]).to(device)  # [1]
    parts, answering = [], shorten(model)
    with evaluating(model), torch.no_grad():
        for start in range(0, len(batch), n_rows):
            tokens = torch.from_numpy(batch.tokens[start : start + n_rows]).to(device)  # [row, position]
            outputs = answering(tokens, layout=batch.layout, at=at)  # [row, 1, output]
            parts.append(outputs[:, 0].float().cpu().numpy())
    return np.concatenate(parts)


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode (no dropout) inside, whatever mode it was in before outside."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
