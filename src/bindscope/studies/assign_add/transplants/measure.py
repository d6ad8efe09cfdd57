"""Results about the spikes: which part of the later model brings the earlier one over them, and which variable jumps."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.measures.arithmetic.asked import ask_splits
from bindscope.measures.arithmetic.by_variable import (
    OPERANDS,
    ask_by_variable,
    look_at_operands,
    right_by_variable,
    shown_in_training,
)
from bindscope.measures.arithmetic.circuit_ablations import measure_ablations
from bindscope.measures.arithmetic.spike_transplants import ROWS, transplant_across
from bindscope.measures.stats.fractions import count_variable, fraction_variables
from bindscope.studies.assign_add.learning.spikes import find_windows, window_steps
from bindscope.studies.framework.measuring import PACKED, hashes_of, parts_of_steps
from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable, Result, every_step, last_step
from bindscope.tasks.assign_add.sequence import OPERAND_POSITIONS

N_SUMS = 400  # of each split
N_BY_VARIABLE = 400  # of each variable in each position
N_ABLATED = 200


def compute_transplants(context: Context) -> xr.Dataset:
    """Over (spike, direction, part): ``total_fraction`` of the jump that a part reproduces (put into the model before the
    spike) or undoes (put into the one after it), over the splits that jump together, and over splits ``accuracy`` and
    ``fraction``; intervals beside each.

    The same for the sums of the variable that rises most as ``focus_…``. Controls: ``random_fraction``, as large a change
    at random (for patterns: those of other sums), twenty of which are ``random_draws`` (spike, controlled, draw), and
    ``drift_fraction``, the part carried over as many steps before.
    """
    run, windows = context.run, find_windows(context.run)
    task: Any = run.config.task
    if not windows:
        raise NotTestable("the run has no spike with checkpoints close by on both sides")
    total, parts = len(windows) * len(ROWS) * 3, []
    for index, window in enumerate(windows):
        done = index * len(ROWS) * 3
        before, after = run.checkpoint(window.before), run.checkpoint(window.after)
        earlier = None if window.earlier is None else run.checkpoint(window.earlier)
        tick = _count_from(context, done, total)
        part = transplant_across(
            before, after, earlier, task, window.spike.splits, context.rng, context.n, context.seed, tick
        )
        earlier_step = -1 if window.earlier is None else window.earlier
        parts.append(part.assign(before_step=window.before, after_step=window.after, earlier_step=earlier_step))
    dataset = xr.concat(parts, xr.IndexVariable("spike", [window.spike.number for window in windows]))
    for name in dataset.data_vars:
        if dataset[name].dtype == float:
            dataset[name] = dataset[name].astype("float32")
        dataset[name].encoding = dict(PACKED) if dataset[name].ndim > 1 else {}
    dataset.attrs = {"title": "transplants across the spikes", "n": context.n, "seed": context.seed}
    return dataset


def compute_by_variable(context: Context) -> xr.Dataset:
    """Over (step, variable, operand): ``accuracy`` of sums of one variable and one number, with Wilson intervals; and over
    (step, position) how = scores and attends to the operands in layer 1: ``operand_score``, ``operand_attention``.
    """
    run = context.run
    task: Any = run.config.task
    sums = ask_by_variable(task, context.rng, context.n)

    def measure(step: int) -> tuple[np.ndarray, ...]:
        model = run.checkpoint(step)
        return (right_by_variable(model, sums, task)[0], *look_at_operands(model, sums, task))

    rows = parts_of_steps(context, measure, _known(context.before))
    hits, scores, looks = (np.array(column) for column in zip(*rows))
    n = right_by_variable(run.checkpoint(run.steps[0]), sums, task)[1]
    dims, operands = ("step", "variable", "operand"), ("step", "position")
    dataset = xr.Dataset(
        {
            **fraction_variables("accuracy", dims, hits, np.broadcast_to(n, hits.shape)),
            "hits": (dims, hits.astype("int32")),
            "n": count_variable(dims[1:], n),
            "restricted": (dims[1:], ~shown_in_training(task)),
            "operand_score": (operands, scores.astype(float)),
            "operand_attention": (operands, looks.astype(float), {"units": "fraction"}),
        },
        {
            "step": list(run.steps),
            CHECKPOINT: ("step", hashes_of(run)),
            "variable": list(task.sequences.variables),
            "operand": list(OPERANDS),
            "position": list(OPERAND_POSITIONS),
        },
    )
    for name in dataset.data_vars:
        if dataset[name].dtype == float and str(name).startswith("accuracy"):
            dataset[name] = dataset[name].astype("float32")
        dataset[name].encoding = dict(PACKED)
    dataset.attrs = {"title": "accuracy by variable and operand", "n": context.n, "seed": context.seed}
    return dataset


def compute_part_ablations(context: Context) -> xr.Dataset:
    """Over (part, kind, split): accuracy at the last checkpoint with one part of the circuit taken away."""
    run = context.run
    if not run.steps:
        raise NotYet("no checkpoint was saved yet")
    step = run.steps[-1]
    task: Any = run.config.task
    asked = ask_splits(task, context.rng, context.n)
    dataset = measure_ablations(run.checkpoint(step), task, asked, context.on_progress)
    dataset.attrs |= {
        "title": "the circuit without each of its parts",
        "step": step,
        "n": context.n,
        "seed": context.seed,
    }
    return dataset


def _known(before: xr.Dataset | None) -> dict[str, tuple[np.ndarray, ...]]:
    if before is None:
        return {}
    names = ("hits", "operand_score", "operand_attention")
    return {
        str(sha256): tuple(before[name].values[index] for name in names)
        for index, sha256 in enumerate(before[CHECKPOINT].values)
    }


def _count_from(context: Context, done: int, total: int) -> Any:
    """A function that tells of one more cell each time it is called."""
    state = {"done": done}

    def tick() -> None:
        state["done"] += 1
        if context.on_progress:
            context.on_progress(min(state["done"], total), total)

    return tick


RESULTS: tuple[Result, ...] = (
    Result("transplants", "transplanting parts across the spikes", compute_transplants, revision=3, n=N_SUMS,
           steps=window_steps, needs=("trajectory",), passes=9 * 4 * len(ROWS) // 3),
    Result("by_variable", "accuracy by variable and operand", compute_by_variable, n=N_BY_VARIABLE, steps=every_step,
           passes=24, grows=True),
    Result("part_ablations", "taking parts of the circuit away", compute_part_ablations, n=N_ABLATED,
           steps=last_step, passes=9 * 30),
)  # fmt: skip
