"""What a model's outputs say about one split of examples: numbers only, ready for JSON.

A fraction of nothing is ``None``, never 0. Every fraction comes with the count it was taken over, so that a reader can put an
interval on it.

Two ideas carry the scores of the binding family:

*Source.* A prediction comes from the first line of its program that assigns the predicted digit: the earliest line wins
ties. ``a=4 / b=7 / c=4`` with prediction 4 comes from line 1; with prediction 5 it comes from no line.

*Misleading programs.* Where the answer is neither the constant of line 1 nor that of line 2, following the chain and
following an early line give different digits, so the prediction tells which of the two the model does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bindscope.tasks.task import Batch

Scores = dict[str, Any]  # JSON-ready
EARLY_RULES = ("line_1", "line_2")


def score_tokens(outputs: np.ndarray, targets: np.ndarray) -> Scores:
    """Accuracy, cross-entropy and the rank of the right answer (1 = on top), for outputs ``[batch, output]``.

    ``chance`` is the accuracy of always giving the split's most frequent answer.
    """
    log_probabilities = _log_softmax(outputs)  # [batch, output]
    rows = np.arange(len(targets))
    right = outputs[rows, targets]  # [batch]
    return {
        "n": len(targets),
        "accuracy": _fraction(outputs.argmax(1) == targets),
        "chance": _fraction(targets == np.bincount(targets).argmax()),
        "loss": _mean(-log_probabilities[rows, targets]),
        "mean_rank": _mean(1 + (outputs > right[:, None]).sum(1)),
    }


def score_reals(outputs: np.ndarray, targets: np.ndarray) -> Scores:
    """Mean squared error of outputs ``[batch]``, and the fraction of them nearest to the right one of the split's labels.

    ``chance_loss`` is the error of always giving the mean label.
    """
    labels = np.unique(targets)
    nearest = labels[np.abs(outputs[:, None] - labels).argmin(1)]  # [batch]
    return {
        "n": len(targets),
        "loss": _mean((outputs.astype(float) - targets) ** 2),
        "chance_loss": _mean((targets - targets.mean(dtype=float)) ** 2),
        "accuracy": _fraction(nearest == targets) if len(labels) > 1 else None,
    }


def score_binding(
    outputs: np.ndarray,
    batch: Batch,
    constants: np.ndarray,
    digits: np.ndarray,
) -> Scores:
    """All that is recorded of a binding split.

    ``outputs [batch, output]``; ``constants [batch, line]`` the digit each line assigns, or −1; ``digits [output]`` the
    digit an output stands for, or −1.
    """
    labels = {name: values[:, 0] for name, values in batch.labels.items()}  # each [batch]
    targets = batch.targets[:, 0]
    predicted, answers = digits[outputs.argmax(1)], digits[targets]  # [batch], −1 where the prediction is no digit
    right = predicted == answers
    rules = {name.removeprefix("rule_"): labels[name] for name in sorted(labels) if name.startswith("rule_")}
    return {
        **score_tokens(outputs, targets),
        "digit_share": _fraction(predicted >= 0),
        **_by_group("depth", right, labels["depth"]),
        **_by_group("root_line", right, labels["root_line"], constants.shape[1]),
        "agreement": {name: _fraction((predicted == says)[says >= 0]) for name, says in rules.items()},
        "rule_accuracy": {name: _fraction((answers == says)[says >= 0]) for name, says in rules.items()},
        "rule_n": {name: int((says >= 0).sum()) for name, says in rules.items()},
        "prediction_source": _fraction_by_source(predicted, constants),
        "answer_source": _fraction_by_source(answers, constants),
        "misleading": _score_misleading(predicted, answers, rules),
    }


def score_halves(outputs: np.ndarray, targets: np.ndarray, swap_seen: np.ndarray) -> Scores:
    """Held-out sums apart by whether training showed the same two numbers in the other order."""
    right = outputs.argmax(1) == targets
    seen = np.asarray(swap_seen, dtype=bool)
    halves = {"swap_seen": right[seen], "both_held": right[~seen]}
    return {name: {"n": len(half), "accuracy": _fraction(half)} for name, half in halves.items()}


def _score_misleading(predicted: np.ndarray, answers: np.ndarray, rules: Mapping[str, np.ndarray]) -> Scores:
    early = [rules[name] for name in EARLY_RULES]
    follows_early = np.any([(predicted == says) & (says >= 0) for says in early], axis=0)  # [batch]
    misleading = np.all([answers != says for says in early], axis=0)  # [batch]
    return {
        "n": int(misleading.sum()),
        "follows_chain": _fraction((predicted == answers)[misleading]),
        "follows_early_lines": _fraction(follows_early[misleading]),
    }


def _by_group(name: str, right: np.ndarray, group: np.ndarray, n_groups: int | None = None) -> Scores:
    """Accuracy and count in each group 1, 2, … as two lists."""
    groups = range(1, (int(group.max()) if n_groups is None else n_groups) + 1)
    return {
        f"accuracy_by_{name}": [_fraction(right[group == g]) for g in groups],
        f"n_by_{name}": [int((group == g).sum()) for g in groups],
    }


def find_sources(digits: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """The index of the earliest line that assigns each of ``digits [batch]``; one past the last line where none does."""
    matches = (constants == digits[:, None]) & (digits[:, None] >= 0)  # [batch, line]
    return np.where(matches.any(1), matches.argmax(1), constants.shape[1])  # argmax takes the earliest line


def _fraction_by_source(digits: np.ndarray, constants: np.ndarray) -> list[float | None]:
    """The fraction of ``digits [batch]`` that come from line 1, 2, …, and last the fraction that come from no line."""
    source = find_sources(digits, constants)  # [batch]
    return [_fraction(source == line) for line in range(constants.shape[1] + 1)]


def _log_softmax(outputs: np.ndarray) -> np.ndarray:
    shifted = outputs.astype(float) - outputs.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def _fraction(hits: np.ndarray) -> float | None:
    return _mean(hits)


def _mean(values: np.ndarray) -> float | None:
    return round(float(np.mean(values)), 6) if len(values) else None
