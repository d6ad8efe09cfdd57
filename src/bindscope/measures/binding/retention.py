"""Is the heuristic kept once the circuit works? (VB7)

Two checkpoints, one from the heuristic phase and one after the transition, meet programs on which line 1 holds the
answer and programs on which it does not. Two sets of heads of equal size are chosen on one half of the programs:

    circuit     without each, the later checkpoint finds the answers that line 1 does not hold least probable
    heuristic   without each, the earlier checkpoint finds line 1's constant least probable

and taken away, singly and together, on the other half, beside random sets of as many other heads. If the circuit stands
on top of a kept heuristic, then without the circuit heads the later model falls back on line 1: it still answers where
line 1 is right and gives line 1's constant where it is wrong, far more often than the last constant (``most_recent``).
If the later model still relies on the heuristic heads, it loses answers without them, above all where they serve.

>>> before, after = 800, 3700  # a step of the heuristic phase, and the last
>>> kept = measure_retention((before, run.checkpoint(before)), (after, run.checkpoint(after)), batch, rng)
>>> kept.accuracy.sel(step=after, condition="circuit ablated", group="line 1 right")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.interventions.ablation import ablate_heads, ablate_sets
from bindscope.measures.binding.contributions import logit_contributions
from bindscope.measures.binding.random_variable import compare_with_random_variable
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import to_digits
from bindscope.tasks.task import Batch

GROUPS = ("line 1 right", "line 1 wrong")
CONDITIONS = ("intact", "circuit ablated", "heuristic ablated", "both ablated", "random ablated")
MEASURES = ("accuracy", "line_1", "most_recent")
CONFIDENCE = 0.95
Head = tuple[int, int]  # layer, head
Checkpoint = tuple[int, Transformer]
Progress = Callable[[int, int], None]


def measure_retention(
    before: Checkpoint,
    after: Checkpoint,
    batch: Batch,
    rng: np.random.Generator,
    *,
    size: int | None = None,
    n_random: int = 5,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """What each checkpoint answers without the circuit heads and without the heuristic heads.

    On one half of the programs, when one head is ablated, over (step, group, layer, head): ``accuracy_drop``,
    ``line_1_drop`` and ``log_probability_drop``. On the other half, over (step, condition, group): ``accuracy``,
    ``line_1`` (the fraction of predictions that are line 1's constant) and, to compare it with, ``most_recent`` (those that
    are the last constant); and ``contribution`` (step, group, candidate, component), the mean direct contribution to
    the logits of answer and line 1. Over (step, comparison): ``difference``, answers held to those of a random variable, and
    ``n_matched`` (see ``random_variable.py``). ``in_circuit`` and ``in_heuristic`` (layer, head) mark the sets, of ``size`` heads
    each, a fifth of all when left out. An ablated head gives its mean over all programs, identity-scaling term included.
    """
    models = dict([before, after])
    size = _check_sizes(models, size, n_random)
    if len(models) < 2:
        raise BindscopeError(f"retention: step {before[0]} was given twice; it compares two checkpoints.")
    halves = batch.take(slice(0, None, 2)), batch.take(slice(1, None, 2))
    groups = [_group_masks(half) for half in halves]
    tick = _counter(2 * (len(CONDITIONS) + n_random), on_progress)

    drops = {
        before[0]: _drop_by_head(before[1], halves[0], batch, groups[0], "line 1", tick),
        after[0]: _drop_by_head(after[1], halves[0], batch, groups[0], "answer", tick),
    }
    circuit = _most_harmful(drops[after[0]]["log_probability_drop"][1], size)  # on programs that line 1 gets wrong
    heuristic = _most_harmful(_overall(drops[before[0]]["log_probability_drop"], groups[0]), size)
    sets = _head_sets(circuit, heuristic, _random_sets(models, circuit, heuristic, size, n_random, rng))
    answers = {step: _ablate_sets(model, halves[1], batch, sets, tick) for step, model in models.items()}
    fractions = {step: _fractions_of_sets(said, halves[1], groups[1]) for step, said in answers.items()}
    parts = {step: _mean_contributions(model, halves[1], groups[1], rng) for step, model in models.items()}
    dataset = _label(drops, fractions, parts, groups)
    beyond = [compare_with_random_variable(said, halves[1], rng) for said in answers.values()]
    dataset = dataset.merge(xr.concat(beyond, xr.IndexVariable("step", list(answers))))
    for name, chosen in (("in_circuit", circuit), ("in_heuristic", heuristic)):
        dataset[name] = (("layer", "head"), _mark(chosen, dataset.sizes["layer"], dataset.sizes["head"]))
    dataset.attrs = _describe(before[0], after[0], batch, circuit, heuristic, n_random)
    return dataset


def _group_masks(batch: Batch) -> np.ndarray:
    """Which programs [group, example] line 1 answers, and which it does not."""
    if "rule_line_1" not in batch.labels:
        raise BindscopeError("retention: the line-1 heuristic belongs to binding programs.")
    right = batch.labels["rule_line_1"][:, 0] == to_digits(batch, batch.targets[:, 0])
    masks = np.stack([right, ~right])
    if not masks.any(1).all():
        raise BindscopeError(f"retention: {len(batch)} programs are too few to have line 1 both right and wrong.")
    return masks


def _fractions(answers: np.ndarray, batch: Batch, groups: np.ndarray) -> dict[str, np.ndarray]:
    """Every one of MEASURES in each group: [..., group] from output ids [..., example]."""
    given = to_digits(batch, answers)  # [..., example]
    hits = {
        "accuracy": answers == batch.targets[:, 0],
        "line_1": given == batch.labels["rule_line_1"][:, 0],
        "most_recent": given == batch.labels["rule_most_recent"][:, 0],
    }
    return {name: hit @ groups.T.astype(float) / groups.sum(1) for name, hit in hits.items()}


def _drop_by_head(
    model: Transformer,
    half: Batch,
    reference: Batch,
    groups: np.ndarray,
    candidate: Literal["answer", "line 1"],
    tick: Callable[[], None],
) -> dict[str, np.ndarray]:
    """How far accuracy, agreement with line 1 and the log-probability of a candidate fall without each head:
    [group, layer, head]."""
    asked = half if candidate == "answer" else replace(half, targets=half.labels["rule_line_1"])
    ablated = ablate_heads(model, asked, kind="mean", reference=reference)
    tick()
    changed = _fractions(ablated.answer.values, half, groups)  # [layer, head, group]
    intact = _fractions(ablated.base_answer.values, half, groups)  # [group]
    drops = {f"{name}_drop": np.moveaxis(intact[name] - changed[name], -1, 0) for name in intact}
    fall = (ablated.base_log_probability - ablated.log_probability).transpose(..., "example").values.astype(float)
    drops["log_probability_drop"] = np.moveaxis(fall @ groups.T / groups.sum(1), -1, 0)
    return drops


def _overall(drop: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The drop over all programs [layer, head] from that in each group."""
    return np.average(drop, axis=0, weights=groups.sum(1))


def _most_harmful(drop: np.ndarray, size: int) -> list[Head]:
    order = np.argsort(-drop, axis=None, kind="stable")[:size]
    return sorted((int(layer), int(head)) for layer, head in zip(*np.unravel_index(order, drop.shape)))


def _random_sets(
    models: dict[int, Transformer],
    circuit: Sequence[Head],
    heuristic: Sequence[Head],
    size: int,
    n_random: int,
    rng: np.random.Generator,
) -> list[list[Head]]:
    """Sets of as many heads that are in neither of the two."""
    config = next(iter(models.values())).config
    every = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    free = [head for head in every if head not in circuit and head not in heuristic]
    return [[free[i] for i in rng.choice(len(free), size, replace=False)] for _ in range(n_random)]


def _head_sets(circuit: list[Head], heuristic: list[Head], random: list[list[Head]]) -> dict[str, list[list[Head]]]:
    both = sorted({*circuit, *heuristic})
    return dict(zip(CONDITIONS, ([[]], [circuit], [heuristic], [both], random)))


def _ablate_sets(
    model: Transformer, half: Batch, reference: Batch, sets: dict[str, list[list[Head]]], tick: Callable[[], None]
) -> dict[str, np.ndarray]:
    """Output ids [set, example] under each condition."""
    conditions = [condition for condition in CONDITIONS for _ in sets[condition]]
    sites = [[f"L{layer}.H{head}" for layer, head in heads] for condition in CONDITIONS for heads in sets[condition]]
    given = ablate_sets(model, half, sites, "mean", reference=reference, on_progress=lambda *_: tick()).answer.values
    return {condition: given[[name == condition for name in conditions]] for condition in CONDITIONS}


def _fractions_of_sets(answers: dict[str, np.ndarray], half: Batch, groups: np.ndarray) -> dict[str, np.ndarray]:
    """Fraction, low and high [bound, condition, group] of each of MEASURES."""
    rows: dict[str, list[np.ndarray]] = {name: [] for name in MEASURES}
    for condition in CONDITIONS:
        for name, fraction in _fractions(answers[condition], half, groups).items():  # [set, group]
            rows[name].append(_with_interval(fraction, groups.sum(1)))
    return {name: np.stack(values, 1) for name, values in rows.items()}


def _with_interval(fraction: np.ndarray, n: np.ndarray) -> np.ndarray:
    """[bound, group] from fractions [set, group]: Wilson for one set, mean and range over several."""
    if len(fraction) == 1:
        return np.stack([fraction[0], *wilson_interval(np.round(fraction[0] * n), n, CONFIDENCE)])
    return np.stack([fraction.mean(0), fraction.min(0), fraction.max(0)])


def _mean_contributions(model: Transformer, half: Batch, groups: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
    """Mean contribution with bootstrap bounds over (group, candidate, component)."""
    parts = logit_contributions(model, half).contribution  # (candidate, component, example)
    rows = []
    for mask in groups:
        values = parts.values[..., mask]  # [candidate, component, example]
        counts = rng.multinomial(values.shape[-1], np.full(values.shape[-1], 1 / values.shape[-1]), 500)
        resampled = values @ counts.T / values.shape[-1]  # [candidate, component, resample]
        tail = (1 - CONFIDENCE) / 2
        rows.append([values.mean(-1), *np.quantile(resampled, [tail, 1 - tail], axis=-1)])
    dims = ("group", "candidate", "component")
    bounds = np.array(rows)  # [group, bound, candidate, component]
    variables = {f"contribution{end}": (dims, bounds[:, i]) for i, end in enumerate(("", "_low", "_high"))}
    return xr.Dataset(variables, {name: parts[name] for name in dims[1:]})


def _label(
    drops: dict[int, dict[str, np.ndarray]],
    fractions: dict[int, dict[str, np.ndarray]],
    parts: dict[int, xr.Dataset],
    groups: Sequence[np.ndarray],
) -> xr.Dataset:
    steps = list(drops)
    dataset = xr.concat(list(parts.values()), xr.IndexVariable("step", steps))
    dataset = dataset.assign_coords(group=list(GROUPS), condition=list(CONDITIONS))
    for name in ("accuracy_drop", "line_1_drop", "log_probability_drop"):
        dataset[name] = (("step", "group", "layer", "head"), np.stack([drops[step][name] for step in steps]))
    for name in MEASURES:
        values = np.stack([fractions[step][name] for step in steps])  # [step, bound, condition, group]
        for bound, suffix in enumerate(("", "_low", "_high")):
            dataset[f"{name}{suffix}"] = (("step", "condition", "group"), values[:, bound])
    dataset["n"] = ("group", groups[1].sum(1))
    dataset["n_choosing"] = ("group", groups[0].sum(1))
    for key in dataset.data_vars:
        kind = "logit" if str(key).startswith("contribution") else "fraction"
        dataset[key].attrs["units"] = "program" if str(key) in ("n", "n_choosing") else kind
    dataset.log_probability_drop.attrs["units"] = "nat"
    return dataset.assign_coords(layer=np.arange(dataset.sizes["layer"]), head=np.arange(dataset.sizes["head"]))


def _describe(
    before: int, after: int, batch: Batch, circuit: list[Head], heuristic: list[Head], n_random: int
) -> dict[str, object]:
    def words(heads: Sequence[Head]) -> str:
        return ", ".join(f"L{layer}.H{head}" for layer, head in heads) or "none"

    return {
        "title": "retention of the heuristic",
        "before": before,
        "after": after,
        "n": len(batch),
        "circuit": words(circuit),
        "heuristic": words(heuristic),
        "shared": words(sorted({*circuit} & {*heuristic})),
        "chosen_on": "every other program, none of which is measured again",
        "chosen_by": "log_probability_drop: of line 1's constant before, of the answer after",
        "ablation": "mean over all programs, position by position, identity-scaling term included",
        "interval": f"Wilson; random: range over {n_random} sets of heads outside both; contributions: bootstrap",
        "confidence": CONFIDENCE,
    }


def _mark(heads: Sequence[Head], n_layers: int, n_heads: int) -> np.ndarray:
    marked = np.zeros((n_layers, n_heads), np.int8)
    for layer, head in heads:
        marked[layer, head] = 1
    return marked


def _check_sizes(models: dict[int, Transformer], size: int | None, n_random: int) -> int:
    """The size of a set."""
    shapes = {(model.config.n_layers, model.config.n_heads) for model in models.values()}
    if len(shapes) > 1:
        raise BindscopeError(f"retention: the two checkpoints have different heads: {sorted(shapes)}.")
    n_layers, n_heads = shapes.pop()
    total = n_layers * n_heads
    size = max(1, total // 5) if size is None else size
    if size < 1 or 3 * size > total:
        raise BindscopeError(
            f"retention: sets of {size} heads; with {total} heads give 1 to {total // 3}, so that others remain."
        )
    if n_random < 2:
        raise BindscopeError(f"retention: n_random must be at least 2, got {n_random}.")
    return size


def _counter(total: int, on_progress: Progress | None) -> Callable[[], None]:
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    return tick
