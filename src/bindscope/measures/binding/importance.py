"""Which attributes of a program decide whether a model is right, or whether it follows line 1.

A model of trees (``boosting``) is fitted to the attributes and judged on examples it was not fitted on, fold by fold. Two
numbers are given for each attribute, both as held-out log-loss in nats, so that 0 means it does not matter:

    importance   how much worse the fitted model gets when this attribute is shuffled among the held-out examples
    alone        how much better than the base rate the fraction of yes at each value of this attribute alone is

Attributes that say the same thing share their importance and so each have little; ``alone`` shows what each one knows.
The control is the same fit to shuffled targets, which must explain nothing.

>>> explained = explain_behaviour(predictions, "right", np.random.default_rng(0))
>>> explained.importance.sel(attribute="depth"), explained.log_loss, explained.shuffled_log_loss
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import bootstrap_interval
from bindscope.measures.binding.predictions import Predictions
from bindscope.measures.stats.boosting import BoostingConfig, Trees, fit_trees, predict_fractions

Target = Literal["right", "line_1"]
N_FOLDS = 5
N_SHUFFLES = 5  # how often each attribute is shuffled
FEWEST = 4 * N_FOLDS  # examples that the rarer outcome needs for anything to be fitted
PRIOR = 2.0  # with how many examples of the base rate each value of a lone attribute starts
NUMBERS = ("log_loss", "base_log_loss", "shuffled_log_loss", "auc", "shuffled_auc", "explained")


def explain_behaviour(
    predictions: Predictions,
    target: Target,
    rng: np.random.Generator,
    config: BoostingConfig | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """What being right, or giving line 1's constant, depends on. See :func:`explain_target`."""
    if target not in get_args(Target):
        raise BindscopeError(f"importance: the target is one of {', '.join(get_args(Target))}, not '{target}'.")
    outcome = predictions.right if target == "right" else predictions.predicted == predictions.rules["line_1"]
    dataset = explain_target(predictions.attributes, outcome, rng, config, on_progress)
    dataset.attrs["target"] = "the answer is right" if target == "right" else "the prediction is line 1's constant"
    return dataset


def explain_target(
    attributes: Mapping[str, np.ndarray],
    outcome: np.ndarray,
    rng: np.random.Generator,
    config: BoostingConfig | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Cross-validated importance of whole-number attributes [example] for a yes-or-no outcome [example].

    ``importance`` and ``alone`` (attribute) with bootstrap intervals over examples; ``log_loss`` of the model,
    ``base_log_loss`` of the base rate, ``shuffled_log_loss`` of the control, ``auc`` and ``shuffled_auc``, and
    ``explained`` = 1 − log_loss/base_log_loss. Where the outcome hardly varies everything is NaN, and ``note`` says so.
    """
    varying = {name: values - values.min() for name, values in attributes.items() if np.ptp(values) > 0}
    names, outcome = list(varying), np.asarray(outcome, bool)
    note = _say_nothing_to_explain(outcome, names)
    if note:
        return _label(names, {}, {}, outcome, list(attributes), note)
    x = np.stack(list(varying.values()), 1)  # [example, attribute]
    folds = rng.permutation(len(outcome)) % N_FOLDS  # [example]
    report = on_progress or (lambda done, total: None)

    base, loss, probability, importance = _judge(x, outcome, folds, rng, config, shuffle_attributes=True)
    report(1, 2)
    shuffled = rng.permutation(outcome)
    _, shuffled_loss, shuffled_probability, _ = _judge(x, shuffled, folds, rng, config)
    report(2, 2)
    gains = {"importance": importance, "alone": np.zeros_like(importance)}  # [attribute, example]
    for index in range(len(names)):
        gains["alone"][index] = base - _judge_alone(x[:, index], outcome, folds)
    numbers = {
        "log_loss": loss.mean(),
        "base_log_loss": base.mean(),
        "shuffled_log_loss": shuffled_loss.mean(),
        "auc": area_under_curve(outcome, probability),
        "shuffled_auc": area_under_curve(shuffled, shuffled_probability),
        "explained": 1 - loss.mean() / base.mean(),
    }
    intervals = {name: [(row.mean(), *bootstrap_interval(row, rng)) for row in rows] for name, rows in gains.items()}
    return _label(names, numbers, intervals, outcome, list(attributes), "")


def area_under_curve(outcome: np.ndarray, score: np.ndarray) -> float:
    """The chance that a yes scores higher than a no, equal scores counting half (Mann–Whitney)."""
    order = np.argsort(score, kind="stable")
    _, first, counts = np.unique(score[order], return_index=True, return_counts=True)
    rank = np.repeat(first + (counts + 1) / 2, counts)  # equal scores share their mean rank
    positive = outcome[order]
    n_yes, n_no = int(positive.sum()), int((~positive).sum())
    return float((rank[positive].sum() - n_yes * (n_yes + 1) / 2) / (n_yes * n_no))


def _judge(
    x: np.ndarray,
    outcome: np.ndarray,
    folds: np.ndarray,
    rng: np.random.Generator,
    config: BoostingConfig | None,
    shuffle_attributes: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Held-out loss of base rate and model [example], probability [example], and loss added by shuffling
    [attribute, example]."""
    base, loss, probability = (np.empty(len(outcome)) for _ in range(3))
    added = np.zeros((x.shape[1], len(outcome)))
    for fold in range(N_FOLDS):
        held = folds == fold
        model = fit_trees(x[~held], outcome[~held], config)
        base[held] = _log_loss(outcome[held], np.full(held.sum(), outcome[~held].mean()))
        probability[held] = predict_fractions(model, x[held])
        loss[held] = _log_loss(outcome[held], probability[held])
        if shuffle_attributes:
            added[:, held] = _shuffled_losses(model, x[held], outcome[held], rng) - loss[held]
    return base, loss, probability, added


def _judge_alone(values: np.ndarray, outcome: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Held-out loss [example] of one attribute's own model: the fraction of yes at its value, drawn to the base rate."""
    loss = np.empty(len(outcome))
    for fold in range(N_FOLDS):
        held = folds == fold
        seen = np.bincount(values[~held], minlength=values.max() + 1)  # [value]
        yes = np.bincount(values[~held], outcome[~held], minlength=values.max() + 1)
        fraction = (yes + PRIOR * outcome[~held].mean()) / (seen + PRIOR)
        loss[held] = _log_loss(outcome[held], fraction[values[held]])
    return loss


def _shuffled_losses(model: Trees, x: np.ndarray, outcome: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The loss [attribute, example] with each attribute in turn shuffled, averaged over shuffles."""
    losses = np.zeros((x.shape[1], len(x)))
    for attribute in range(x.shape[1]):
        changed = np.repeat(x[None], N_SHUFFLES, 0)  # [shuffle, example, attribute]
        changed[:, :, attribute] = rng.permuted(changed[:, :, attribute], axis=1)
        losses[attribute] = _log_loss(outcome, predict_fractions(model, changed)).mean(0)
    return losses


def _log_loss(outcome: np.ndarray, probability: np.ndarray) -> np.ndarray:
    safe = np.clip(probability, 1e-6, 1 - 1e-6)
    return -np.where(outcome, np.log(safe), np.log(1 - safe))


def _say_nothing_to_explain(outcome: np.ndarray, names: list[str]) -> str:
    n, n_yes = len(outcome), int(outcome.sum())
    if not names:
        return "every attribute has the same value in all examples: there is nothing to explain anything with"
    if n_yes in (0, n):
        return f"the outcome is {'yes' if n_yes else 'no'} in all {n:,} examples: there is nothing to explain"
    if min(n_yes, n - n_yes) < FEWEST:
        return (
            f"only {min(n_yes, n - n_yes)} of {n:,} examples differ from the rest, too few to explain (need {FEWEST})"
        )
    return ""


def _label(
    names: list[str],
    numbers: Mapping[str, float],
    intervals: Mapping[str, list[tuple[float, float, float]]],
    outcome: np.ndarray,
    given: list[str],
    note: str,
) -> xr.Dataset:
    dataset = xr.Dataset(coords={"attribute": names})
    for name in ("importance", "alone"):
        values = np.array(intervals.get(name, [(np.nan,) * 3] * len(names)), float).reshape(len(names), 3)
        for column, suffix in enumerate(("", "_low", "_high")):
            dataset[f"{name}{suffix}"] = ("attribute", values[:, column], {"units": "nat"})
    for name in NUMBERS:
        dataset[name] = ((), numbers.get(name, np.nan), {"units": "nat" if name.endswith("loss") else "1"})
    dataset["fraction"] = ((), float(outcome.mean()) if len(outcome) else np.nan, {"units": "fraction"})
    dataset.attrs = {
        "title": "importance of program attributes",
        "n": len(outcome),
        "n_folds": N_FOLDS,
        "interval": "bootstrap over held-out examples",
        "confidence": 0.95,
        "left_out": ", ".join(name for name in given if name not in names) or "none",
        "note": note,
    }
    return dataset
