"""Measure a model on a task's held-out pools, the same pools every time.

>>> evaluate = build_evaluator(task, size=2000, seed=0)
>>> evaluate(model)["test"]["accuracy_by_depth"]
[0.27, 0.62, 0.71, 0.73]

An evaluation is a JSON-ready mapping: one entry per pool, and ``watched``, the named accuracies that must all be high
for the task to count as learned (by depth for binding, by pool for the other families).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.perplexity import score_text
from bindscope.measures.scores import Scores, score_binding, score_halves, score_reals, score_tokens
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import constants_by_line
from bindscope.tasks.task import Batch, Task

Evaluation = dict[str, Any]  # pool name → scores, and "watched" → name → accuracy
Evaluator = Callable[[Transformer], Evaluation]
TOKENS_AT_ONCE = 1 << 15  # how many tokens go through the model together; bounds memory, never changes a number


def build_evaluator(task: Task, size: int, seed: int, pools: Mapping[str, Batch] | None = None) -> Evaluator:
    """Draw the pools once with ``seed`` and return the function that measures any model on them.

    ``pools`` replace the drawn ones of the same name (the test split of a fixed dataset).
    """
    if size < 1:
        raise BindscopeError(f"evaluation size: must be at least 1, got {size}.")
    pools = {**task.sample_evaluation(np.random.default_rng(seed), size), **(pools or {})}
    score = _pool_scorer(task)

    def measure_pool(model: Transformer, name: str, batch: Batch) -> Scores:
        if task.family == "text":  # asked at every token, and by its probability
            with evaluating(model):
                return score_text(model, batch)
        return score(name, read_answers(model, batch), batch)

    def evaluate(model: Transformer) -> Evaluation:
        evaluation: Evaluation = {name: measure_pool(model, name, batch) for name, batch in pools.items()}
        evaluation["watched"] = _watch(task, evaluation)
        if task.family == "templates":
            evaluation["watched_loss"] = evaluation["validation"]["loss"]
        return evaluation

    return evaluate


def read_answers(model: Transformer, batch: Batch, tokens_at_once: int = TOKENS_AT_ONCE) -> np.ndarray:
    """The model's outputs at each example's (first) answer, ``[batch, output]`` float32, a bounded part at a time."""
    n_rows = max(1, tokens_at_once // batch.tokens.shape[1])
    device = next(model.parameters()).device
    at = torch.from_numpy(batch.target_positions[:1]).to(device)  # [1]
    parts = []
    with evaluating(model), torch.no_grad():
        for start in range(0, len(batch), n_rows):
            tokens = torch.from_numpy(batch.tokens[start : start + n_rows]).to(device)  # [row, position]
            outputs = model(tokens, layout=batch.layout, at=at)  # [row, 1, output]
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


def _pool_scorer(task: Task) -> Callable[[str, np.ndarray, Batch], Scores]:
    if task.family == "binding":
        symbols = task.vocabulary.symbols
        digits = np.array([int(symbol) if symbol.isdigit() else -1 for symbol in symbols])  # [output]
        return lambda name, outputs, batch: _score_binding_pool(outputs, batch, digits)
    if task.target_kind == "real":
        return lambda name, outputs, batch: score_reals(outputs[:, 0], batch.targets[:, 0])
    if task.family == "assign_add":
        return _score_sums_pool
    return lambda name, outputs, batch: score_tokens(outputs, batch.targets[:, 0])


def _score_binding_pool(outputs: np.ndarray, batch: Batch, digits: np.ndarray) -> Scores:
    constants = constants_by_line(batch.tokens, int(batch.labels["lines"].max()))  # [batch, line]
    return score_binding(outputs, batch, constants, digits)


def _score_sums_pool(name: str, outputs: np.ndarray, batch: Batch) -> Scores:
    targets = batch.targets[:, 0]
    scores = score_tokens(outputs, targets)
    if name.endswith("add") and "swap_seen" in batch.labels:  # held-out pairs, of an operator that commutes
        scores |= score_halves(outputs, targets, batch.labels["swap_seen"][:, 0])
    return scores


def _watch(task: Task, evaluation: Evaluation) -> dict[str, float]:
    if task.family == "binding":
        by_depth = evaluation["test"]["accuracy_by_depth"]
        watched = {f"depth {depth}": accuracy for depth, accuracy in enumerate(by_depth, start=1)}
    elif task.family in ("templates", "text"):
        watched = {"validation": evaluation["validation"]["accuracy"]}
    else:
        watched = {name: scores["accuracy"] for name, scores in evaluation.items()}
    return {name: accuracy for name, accuracy in watched.items() if accuracy is not None}
