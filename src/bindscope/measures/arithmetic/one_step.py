"""What one gradient step does in the paper's simplified model, at a task's modulus and number of variables.

Nothing of a run's weights is read: the gradient is enumerated (``theory/one_step.py``), and the step is tried on
sums that the task draws, some with pairs that the gradient never saw.

>>> dataset = step_dataset(task)
>>> dataset.measured.sel(term="associative", modulus=59, beta=3), dataset.predicted.sel(term="associative", beta=3)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.theory.one_step import SMALL_SCALE, TERMS, Population, Setting, Step, measure_step
from bindscope.theory.one_step_accuracy import SPLITS, accuracy_over_sizes, count_assignments, sample_sums

N_SUMS = 2400
SHARP_BETA = 6.0  # α is 96 %: where the theorem's terms are to be what the gradient is made of
BETA = 3.0  # α is 57 %: the literal is attended to, and the values are not forgotten
BETAS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
MODULI = (7, 13, 31, 59, 97)
VARIABLES = (2, 4, 8, 12, 18, 26)
SCALES = tuple(float(f"{scale:.3g}") for scale in np.geomspace(1e-3, 1e3, 25))
SIZES = (0.0, *(float(f"{size:.3g}") for size in np.geomspace(0.005, 6, 50)))
DIRECTIONS = ("whole gradient", "without memory", "shuffled binding")
LIMIT = 0.1  # a prediction for small λ holds while the coefficient moved by less than this fraction


def step_dataset(
    task: AssignAddTask,
    beta: float = BETA,
    scale: float | None = None,
    n: int = N_SUMS,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Everything about one step at W₀: coefficients over λ against the prediction, as p, β, K and λ vary, the gradient
    itself, and accuracy over the size of the step.

    Over (term, modulus, beta): ``measured``; over (term, beta): ``predicted``; over (term, variables) and (term, scale):
    ``by_variables``, ``by_scale`` with their predictions; over (direction, split, step_size): ``accuracy``.
    """
    if task.operator != "+":
        raise BindscopeError(f"task.operator: the theorem is about sums, and '{task.operator}' is not one.")
    if n < 1:
        raise BindscopeError(f"n: at least 1 sum must be drawn in each split, got {n}.")
    setting = Setting(task.modulus, task.n_variables, beta, SMALL_SCALE if scale is None else scale)
    parts = (_terms, _dominance, _sweeps, _whole_gradient, _answers, _large_scales)
    found: dict[str, Any] = {}
    rng = np.random.default_rng(seed)
    for done, part in enumerate(parts, start=1):
        found |= part(setting, task, rng, n)
        if on_progress:
            on_progress(done, len(parts))
    dataset = xr.Dataset(found)
    dataset.attrs = {
        "title": "one gradient step",
        "modulus": task.modulus,
        "n_variables": task.n_variables,
        "beta": beta,
        "scale": setting.scale,
        "alpha": setting.alpha,
        "epsilon": setting.epsilon,
        "n": n,
        "seed": seed,
    }
    return dataset


def chosen(dataset: xr.Dataset) -> xr.Dataset:
    """Over (direction, split): ``after``, at the step size that each direction answers most of the *seen* one-variable sums
    with (``step_size``), and over (split) ``before``; with Wilson intervals.
    """
    n = int(dataset.attrs["n"])
    best = dataset.accuracy.sel(split="1 seen", drop=True).argmax("step_size")  # [direction]
    after, before = dataset.accuracy.isel(step_size=best), dataset.accuracy.isel(direction=0, step_size=0)
    variables = fraction_variables("after", ["direction", "split"], after.transpose("direction", "split").values * n, n)
    variables |= fraction_variables("before", ["split"], before.values * n, n)
    variables["step_size"] = (("direction",), dataset.step_size.values[best.values])
    return xr.Dataset(variables, {"direction": dataset.direction.values, "split": dataset.split.values}, {"n": n})


def fit_gap(dataset: xr.Dataset) -> tuple[float, float]:
    """a and b of the relative gap of the associative term, 1 − measured/predicted ≈ a·ε + b/p, over β ≥ 3."""
    terms = dataset.sel(term="associative", beta=dataset.beta >= BETA)
    gap = (1 - terms.measured / terms.predicted).transpose("modulus", "beta").values
    epsilon = spread_attention(terms.beta.values)
    causes = np.stack(np.broadcast_arrays(epsilon[None], 1 / terms.modulus.values[:, None]), -1)
    (a, b), *_ = np.linalg.lstsq(causes.reshape(-1, 2), gap.reshape(-1), rcond=None)
    return float(a), float(b)


def spread_attention(beta: np.ndarray) -> np.ndarray:
    """ε for each β: what each of the fifteen tokens besides the literal gets."""
    return 1 / (np.exp(beta) + 15)


def scale_limit(dataset: xr.Dataset, term: str, fraction: float = LIMIT) -> float:
    """The λ from which on a term's coefficient over λ is off by more than ``fraction`` of what it is for small λ; NaN
    where no scale that was tried is that large.
    """
    by_scale = dataset.by_scale.sel(term=term).values
    moved = np.abs(by_scale / by_scale[0] - 1)
    above = int(np.argmax(moved > fraction))
    if not above:
        return float("nan")
    scales = np.log(dataset.scale.values[above - 1 : above + 1])
    return float(np.exp(np.interp(fraction, moved[above - 1 : above + 1], scales)))


def _terms(setting: Setting, task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """At the setting itself, and what its controls leave of the memory."""
    step = measure_step(setting)
    shuffled = measure_step(setting, Population.of(setting, shuffled=True))
    elsewhere = measure_step(replace(setting, focus="operator"))
    parts = step.norm_fractions
    return {
        "coefficient": _named("term", TERMS, step.per_scale),
        "prediction": _named("term", TERMS, step.predicted_per_scale),
        "norm_fraction": _named("part", tuple(parts), parts),
        "off_diagonal": step.off_diagonal / setting.scale,
        "largest_rest": step.largest_rest,
        "shuffled_margin": shuffled.per_scale["associative"] - shuffled.off_diagonal / setting.scale,
        "operator_coefficient": elsewhere.per_scale["associative"],
    }


def _dominance(setting: Setting, task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """``sharp_fraction`` (focus, part): of the gradient's squared norm at ``SHARP_BETA``, and where attention starts on '+'."""
    sharp = replace(setting, beta=SHARP_BETA)
    steps = {"literal": measure_step(sharp), "operator": measure_step(replace(sharp, focus="operator"))}
    parts = list(steps["literal"].norm_fractions)
    values = [[step.norm_fractions[part] for part in parts] for step in steps.values()]
    return {"sharp_fraction": xr.DataArray(values, {"focus": list(steps), "part": parts}, ("focus", "part"))}


def _sweeps(setting: Setting, task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, Any]:
    small = replace(setting, scale=SMALL_SCALE)  # p, β and K vary where the prediction is meant
    moduli = sorted({*MODULI, setting.modulus})
    betas = sorted({*BETAS, setting.beta})
    variables = sorted({*VARIABLES, setting.n_variables})
    grid = [[measure_step(replace(small, modulus=p, beta=beta)) for beta in betas] for p in moduli]
    by_variables = [measure_step(replace(small, n_variables=k)) for k in variables]
    by_scale = [measure_step(replace(setting, scale=scale)) for scale in SCALES]

    def over(dim: str, values: Sequence[float], steps: list[Step], predicted: bool = False) -> xr.DataArray:
        rows = [list((step.predicted_per_scale if predicted else step.per_scale).values()) for step in steps]
        return xr.DataArray(np.array(rows).T, {"term": list(TERMS), dim: list(values)}, ("term", dim))

    measured = xr.concat([over("beta", betas, row) for row in grid], xr.IndexVariable("modulus", moduli))
    return {
        "measured": measured.transpose("term", "modulus", "beta"),
        "predicted": over("beta", betas, grid[0], predicted=True),
        "by_variables": over("variables", variables, by_variables),
        "by_variables_predicted": over("variables", variables, by_variables, predicted=True),
        "by_scale": over("scale", SCALES, by_scale),
        "by_scale_predicted": over("scale", SCALES, by_scale, predicted=True),
    }


def _whole_gradient(setting: Setting, task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """The gradient in units of the predicted associative term: entry by entry without the numbers, and the root of the
    summed squares of each block.
    """
    step, model = measure_step(setting), setting.model
    gradient = step.gradient / step.predicted["associative"]
    groups = model.groups
    names = task.sequences.variables
    labels = {"variable": names, "position": [f"p{t}" for t in range(model.positions.stop - model.positions.start)]}
    labels |= {"Φ variable": [f"Φ{name}" for name in names]}
    shown = ("Φ variable", "position", "variable", "+", "=", "PAD")
    keys = np.concatenate([groups[group] for group in shown])
    key_labels = [label for group in shown for label in labels.get(group, [group])]
    kinds = [group for group in shown for _ in groups[group]]
    queries = [*groups["="], groups["position"][-1], *groups["Φ variable"]]
    query_labels = ["=", labels["position"][-1], *labels["Φ variable"]]
    asked = ("=", "position", "Φ variable", "Φ number")
    norms = [[np.sqrt((gradient[np.ix_(groups[k], groups[q])] ** 2).sum()) for q in asked] for k in groups]
    return {
        "gradient": xr.DataArray(
            gradient[np.ix_(keys, queries)],
            {"key": key_labels, "query": query_labels, "kind": ("key", kinds)},
            ("key", "query"),
        ),
        "block_norm": xr.DataArray(norms, {"key_kind": list(groups), "query_kind": list(asked)}),
    }


def _answers(setting: Setting, task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Accuracy before (size 0) and after a step from the trained pairs, and by how many variables are assigned."""
    trained = task.pairs.is_trained
    step = measure_step(setting, Population.of(setting, trained))
    shuffled = measure_step(setting, Population.of(setting, trained, shuffled=True))
    directions = (step.gradient, step.gradient - step.parts["associative"], shuffled.gradient)
    sums = sample_sums(task, rng, n)
    right = {
        split: [accuracy_over_sizes(setting, direction, tokens, np.array(SIZES)) for direction in directions]
        for split, tokens in sums.items()
    }  # split: direction: [size, row]
    accuracy = np.array([[right[split][index].mean(1) for split in SPLITS] for index in range(len(DIRECTIONS))])
    best = int(accuracy[0, 0].argmax())
    counts = range(1, 7)
    by_count = np.full((2, len(SPLITS), len(counts)), np.nan)
    rows = np.zeros((len(SPLITS), len(counts)), int)
    for index, split in enumerate(SPLITS):
        assigned = count_assignments(setting.modulus, sums[split])
        for column, count in enumerate(counts):
            rows[index, column] = (assigned == count).sum()
            if rows[index, column]:
                by_count[:, index, column] = right[split][0][[0, best]][:, assigned == count].mean(1)
    splits = list(SPLITS)
    return {
        "accuracy": xr.DataArray(accuracy, {"direction": list(DIRECTIONS), "split": splits, "step_size": list(SIZES)}),
        "by_assignments": xr.DataArray(
            by_count, {"when": ["before", "after"], "split": splits, "assignments": list(counts)}
        ),
        "n_by_assignments": xr.DataArray(rows, {"split": splits, "assignments": list(counts)}),
    }


def _large_scales(setting: Setting, task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Accuracy at the best step size as λ grows: where the small-λ step stops being the one that is taken."""
    scales = SCALES[::4]
    sums = sample_sums(task, rng, max(n // 3, 1))
    found = np.zeros((len(SPLITS), len(scales)))
    for column, scale in enumerate(scales):
        taken = replace(setting, scale=scale)
        direction = measure_step(taken, Population.of(taken, task.pairs.is_trained)).gradient
        accuracy = [accuracy_over_sizes(taken, direction, tokens, np.array(SIZES)).mean(1) for tokens in sums.values()]
        found[:, column] = np.array(accuracy)[:, accuracy[0].argmax()]
    return {"accuracy_by_scale": xr.DataArray(found, {"split": list(SPLITS), "tried_scale": list(scales)})}


def _named(dim: str, names: Sequence[str], values: dict[str, float]) -> xr.DataArray:
    return xr.DataArray([values[name] for name in names], {dim: list(names)}, (dim,))
