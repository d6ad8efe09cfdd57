"""Gradient boosting of small trees for a yes-or-no target, on attributes that are small whole numbers.

Each tree asks at most two questions of the form "is attribute j at most t?", so the sum of many trees holds every effect
of one attribute and of any two together. A tree fits the slope of the log-loss (Friedman 2001) with second-order leaf
values −G/(H + λ), G and H the sums of gradient p − y and curvature p(1 − p) in the leaf.

>>> trees = fit_trees(x, y)
>>> probability = predict_fractions(trees, x)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError


@dataclass(frozen=True)
class BoostingConfig:
    """How much is fitted."""

    n_trees: int = 120
    rate: float = 0.1  # how much of each tree is added
    penalty: float = 2.0  # λ, above 0: keeps the values of small leaves near 0
    least_weight: float = 2.0  # the least curvature a leaf must hold, about four even examples for each 1

    def __post_init__(self) -> None:
        if self.n_trees < 1 or not 0 < self.rate <= 1 or self.penalty <= 0 or self.least_weight < 0:
            raise BindscopeError(f"boosting: {self} has a value out of range.")


@dataclass(frozen=True, eq=False)
class Tree:
    """A question, then one for each reply; a leaf's value by the two replies. A question nobody asks has t = ∞."""

    attribute: np.ndarray  # [3]: of the first question, and of those after "yes" and "no"
    threshold: np.ndarray  # [3]
    value: np.ndarray  # [2, 2]


@dataclass(frozen=True, eq=False)
class Trees:
    """A fitted sum of trees on top of the base rate's log-odds."""

    base: float
    trees: tuple[Tree, ...]


def fit_trees(x: np.ndarray, y: np.ndarray, config: BoostingConfig | None = None) -> Trees:
    """Fit ``y [example]`` (bool) to attributes ``x [example, attribute]`` (whole numbers, not negative)."""
    config = BoostingConfig() if config is None else config
    fraction = np.clip(y.mean(), 1e-6, 1 - 1e-6)
    base = float(np.log(fraction / (1 - fraction)))
    score = np.full(len(y), base)
    trees = []
    for _ in range(config.n_trees):
        probability = _sigmoid(score)
        tree = _grow(x, probability - y, probability * (1 - probability), config)
        if not tree.value.any():
            break
        trees.append(tree)
        score = score + _evaluate(tree, x)
    return Trees(base, tuple(trees))


def predict_fractions(model: Trees, x: np.ndarray) -> np.ndarray:
    """The probability of yes for each example of ``x [..., attribute]``."""
    score = np.full(x.shape[:-1], model.base)
    for tree in model.trees:
        score += _evaluate(tree, x)
    return _sigmoid(score)


def _grow(x: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, config: BoostingConfig) -> Tree:
    attribute, threshold, value = np.zeros(3, np.int64), np.full(3, np.inf), np.zeros((2, 2))
    attribute[0], threshold[0] = _best_question(x, gradient, curvature, config)
    yes = x[:, attribute[0]] <= threshold[0]
    for branch, here in enumerate((yes, ~yes)):
        part, slope, weight = x[here], gradient[here], curvature[here]
        if not len(part):
            continue
        attribute[1 + branch], threshold[1 + branch] = _best_question(part, slope, weight, config)
        reply = part[:, attribute[1 + branch]] <= threshold[1 + branch]
        for leaf, chosen in enumerate((reply, ~reply)):
            if chosen.any():
                value[branch, leaf] = -config.rate * slope[chosen].sum() / (weight[chosen].sum() + config.penalty)
    return Tree(attribute, threshold, value)


def _best_question(
    x: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, config: BoostingConfig
) -> tuple[int, float]:
    """The attribute and threshold that split these examples best; a threshold of ∞ where no split helps."""
    n_values, n_attributes = int(x.max()) + 1, x.shape[1]
    cell = (x + n_values * np.arange(n_attributes)).ravel()  # [example · attribute]
    shape = (n_attributes, n_values)

    def below(weights: np.ndarray) -> np.ndarray:
        sums = np.bincount(cell, np.repeat(weights, n_attributes), n_attributes * n_values)
        return sums.reshape(shape).cumsum(1)  # [attribute, threshold]

    slope, weight = below(gradient), below(curvature)
    slope_above, weight_above = slope[:, -1:] - slope, weight[:, -1:] - weight
    gain = slope**2 / (weight + config.penalty) + slope_above**2 / (weight_above + config.penalty)
    gain -= slope[:, -1:] ** 2 / (weight[:, -1:] + config.penalty)
    gain[(weight < config.least_weight) | (weight_above < config.least_weight)] = 0
    best = int(gain.argmax())
    if gain.flat[best] <= 1e-9:
        return 0, np.inf
    attribute, threshold = divmod(best, n_values)
    return attribute, float(threshold)


def _evaluate(tree: Tree, x: np.ndarray) -> np.ndarray:
    no = (x[..., tree.attribute[0]] > tree.threshold[0]).astype(np.int64)
    later_yes = x[..., tree.attribute[1]] > tree.threshold[1]
    later_no = x[..., tree.attribute[2]] > tree.threshold[2]
    return tree.value[no, np.where(no, later_no, later_yes).astype(np.int64)]


def _sigmoid(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(score, -50, 50)))
