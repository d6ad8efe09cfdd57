"""Results about the spikes: which part of the later model brings the earlier one over them, and which variable jumps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.by_variable import (
    PLACES,
    ask_by_variable,
    ask_one_variable,
    look_at_operands,
    right_by_variable,
    shown_in_training,
)
from bindscope.measures.arithmetic.circuit_ablations import measure_ablations
from bindscope.measures.arithmetic.transplanting import (
    Asked,
    answer_right,
    answer_transplanted,
    ask_pools,
    label_shares,
    label_transplants,
    split_row,
)
from bindscope.measures.stats.shares import count_variable, share_variables
from bindscope.studies.assign_add.learning.spike_windows import Window, find_windows, window_steps
from bindscope.studies.framework.every_step import PACKED, hashes_of, parts_of_steps
from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable, Result, every_step, last_step
from bindscope.tasks.assign_add.sequence import OPERAND_POSITIONS

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_SUMS = 200  # of each pool
N_BY_VARIABLE = 50  # of each variable in each position
N_ABLATED = 200
ITS_VARIABLE = "its variable"
FOCUS = "focus"
DIRECTIONS = ("reproduce", "undo")
ROWS = (
    "everything", "routing", "computing", "embeddings", "numbers", "variables", ITS_VARIABLE, "positions",
    "position 13", "position 14", "QK1", "OV1", "QK2", "QK2·OV1", "OV2", "MLP", "unembedding", "QK1 + QK2·OV1",
    "QK1 + QK2·OV1 + variables", "QK1 + QK2·OV1 + variables + positions", "pattern 1", "pattern 1 of =", "pattern 2",
)  # fmt: skip


def compute_transplants(context: Context) -> xr.Dataset:
    """Over (spike, direction, part): ``total_share`` of the jump that a part reproduces (put into the model before the
    spike) or undoes (put into the one after it), over the pools that jump together, and over pools ``accuracy`` and
    ``share``; intervals beside each.

    The same for the sums of the variable that rises most as ``focus_…``. Controls: ``random_share``, as large a change
    at random (for patterns: those of other sums), and ``drift_share``, the part carried over as many steps before.
    """
    windows = find_windows(context.run)
    if not windows:
        raise NotTestable("the run has no spike with checkpoints close by on both sides")
    total, parts = len(windows) * len(ROWS) * 3, []
    for place, window in enumerate(windows):
        done = place * len(ROWS) * 3
        parts.append(_transplant_over(context, window, _count_from(context, done, total)))
    dataset = xr.concat(parts, xr.IndexVariable("spike", [window.spike.number for window in windows]))
    for name in dataset.data_vars:
        if dataset[name].dtype == float:
            dataset[name] = dataset[name].astype("float32")
        dataset[name].encoding = dict(PACKED) if dataset[name].ndim > 1 else {}
    dataset.attrs = {"title": "transplants across the spikes", "n": context.n, "seed": context.seed}
    return dataset


def compute_by_variable(context: Context) -> xr.Dataset:
    """Over (step, variable, position): ``accuracy`` of sums of one variable and one number, with Wilson intervals; and over
    (step, position) how = scores and looks at the operands in layer 1: ``operand_score``, ``operand_attention``.
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
    dims, operands = ("step", "variable", "place"), ("step", "position")
    dataset = xr.Dataset(
        {
            **share_variables("accuracy", dims, hits, np.broadcast_to(n, hits.shape)),
            "hits": (dims, hits.astype("int32")),
            "n": count_variable(dims[1:], n),
            "restricted": (dims[1:], ~shown_in_training(task)),
            "operand_score": (operands, scores.astype(float)),
            "operand_attention": (operands, looks.astype(float), {"units": "share"}),
        },
        {
            "step": list(run.steps),
            CHECKPOINT: ("step", hashes_of(run)),
            "variable": list(task.sequences.variables),
            "place": list(PLACES),
            "position": list(OPERAND_POSITIONS),
        },
    )
    for name in dataset.data_vars:
        if dataset[name].dtype == float and str(name).startswith("accuracy"):
            dataset[name] = dataset[name].astype("float32")
        dataset[name].encoding = dict(PACKED)
    dataset.attrs = {"title": "accuracy by variable and place", "n": context.n, "seed": context.seed}
    return dataset


def compute_part_ablations(context: Context) -> xr.Dataset:
    """Over (part, kind, pool): accuracy at the last checkpoint with one part of the circuit taken away."""
    run = context.run
    if not run.steps:
        raise NotTestable("no checkpoint was kept yet")
    step = run.steps[-1]
    task: Any = run.config.task
    asked = ask_pools(task, context.rng, context.n)
    dataset = measure_ablations(run.checkpoint(step), task, asked, context.on_progress)
    dataset.attrs |= {
        "title": "the circuit without each of its parts",
        "step": step,
        "n": context.n,
        "seed": context.seed,
    }
    return dataset


def _transplant_over(context: Context, window: Window, tick: Any) -> xr.Dataset:
    """Everything about one spike."""
    from bindscope.interventions.transplant import list_parts

    run, rng, jumped = context.run, context.rng, window.spike.pools
    task: Any = run.config.task
    before, after = run.checkpoint(window.before), run.checkpoint(window.after)
    variable, place = find_focus(before, after, task, rng, context.n)
    name = task.sequences.variables[variable]
    nine = ask_pools(task, rng, context.n)
    asked = nine.with_pool(FOCUS, ask_one_variable(task, rng, context.n, variable, place), task)
    rows = [row.replace(ITS_VARIABLE, f"variable {name}") for row in ROWS]
    right = {"before": answer_right(before, asked.batch), "after": answer_right(after, asked.batch)}

    def measure(receiver: Transformer, donor: Transformer) -> np.ndarray:
        answered = []
        for row in rows:
            answered.append(answer_transplanted(receiver, donor, row, asked.batch))
            tick()
        return np.array(answered)

    both = [
        _label(right["before"], right["after"], measure(before, after), asked, context.seed, jumped),
        _label(right["after"], right["before"], measure(after, before), asked, context.seed, jumped),
    ]
    dataset = xr.concat(both, xr.IndexVariable("direction", list(DIRECTIONS)))
    controls = {"random": np.array([_answer_at_random(before, after, row, asked, rng) for row in rows], float)}
    if window.earlier is not None:  # each part carried over as many steps where nothing spikes, held against the jump
        earlier = run.checkpoint(window.earlier)
        moved = measure(earlier, before).astype(float) - answer_right(earlier, asked.batch)
        controls["drift"] = right["before"] + moved
    dataset = dataset.assign(_label_controls(right["before"], right["after"], controls, asked, context.seed, jumped))
    known = list_parts(before.config)
    kinds = ["pattern" if any(known[part].looks for part in split_row(row)) else "weights" for row in rows]
    return dataset.assign(
        before_step=window.before,
        after_step=window.after,
        earlier_step=-1 if window.earlier is None else window.earlier,
        focus_variable=name,
        focus_place=place,
        jumped=("pool", np.isin(dataset.pool.values, jumped)),
    ).assign_coords(kind=("part", kinds))


def _answer_at_random(
    before: Transformer, after: Transformer, row: str, asked: Asked, rng: np.random.Generator
) -> np.ndarray:
    """The control of a transplant: weights changed as much in a random direction, patterns taken from other sums."""
    import torch

    from bindscope.interventions.transplant import change_at_random, find_parts

    if any(part.looks for part in find_parts(before.config, split_row(row))):
        others = asked.batch.take(rng.permutation(len(asked.batch)))
        return answer_transplanted(before, after, row, asked.batch, others)
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    return answer_right(change_at_random(before, after, split_row(row), generator), asked.batch)


def _label(
    receiver: np.ndarray, donor: np.ndarray, changed: np.ndarray, asked: Asked, seed: int, jumped: Collection[str]
) -> xr.Dataset:
    """The nine pools as they are, and the sums of the spike's variable beside them."""
    nine = {name: rows for name, rows in asked.pools.items() if name != FOCUS}
    dataset = label_transplants(ROWS, receiver, donor, changed, nine, seed, jumped)
    focus = label_transplants(ROWS, receiver, donor, changed, {FOCUS: asked.pools[FOCUS]}, seed).isel(pool=0, drop=True)
    names = [name for name in focus.data_vars if name != "n" and not str(name).startswith("total")]
    return dataset.assign({f"focus_{name}": focus[name] for name in names})


def _label_controls(
    before: np.ndarray,
    after: np.ndarray,
    controls: Mapping[str, np.ndarray],
    asked: Asked,
    seed: int,
    jumped: Collection[str],
) -> dict[str, xr.DataArray]:
    """``NAME_share`` of the jump for each control, over all pools that jump and as ``focus_NAME_share``."""
    nine = {name: rows for name, rows in asked.pools.items() if name != FOCUS}
    found = {}
    for name in ("random", "drift"):
        changed = controls.get(name, np.full((len(ROWS), len(before)), np.nan))
        total = label_shares(ROWS, before, after, changed, nine, seed, jumped)
        focus = label_shares(ROWS, before, after, changed, {FOCUS: asked.pools[FOCUS]}, seed)
        for end in ("", "_low", "_high"):
            found[f"{name}_share{end}"] = total[f"total_share{end}"]
            found[f"focus_{name}_share{end}"] = focus[f"total_share{end}"]
    return found


def find_focus(before: Transformer, after: Transformer, task: Any, rng: np.random.Generator, n: int) -> tuple[int, str]:
    """The variable, and the operand it is, whose sums gain most between two checkpoints."""
    sums = ask_by_variable(task, rng, max(20, n // 4))
    (old, count), (new, _) = (right_by_variable(model, sums, task) for model in (before, after))
    gain = (new - old) / np.maximum(count, 1)  # [variable, position]
    variable, place = np.unravel_index(int(gain.argmax()), gain.shape)
    return int(variable), PLACES[place]


def _known(before: xr.Dataset | None) -> dict[str, tuple[np.ndarray, ...]]:
    if before is None:
        return {}
    names = ("hits", "operand_score", "operand_attention")
    return {
        str(sha256): tuple(before[name].values[place] for name in names)
        for place, sha256 in enumerate(before[CHECKPOINT].values)
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
    Result("transplants", "transplanting parts across the spikes", compute_transplants, revision=2, n=N_SUMS,
           steps=window_steps, needs=("trajectory",), passes=9 * 4 * len(ROWS) // 3),
    Result("by_variable", "accuracy by variable and place", compute_by_variable, n=N_BY_VARIABLE, steps=every_step,
           passes=24, grows=True),
    Result("part_ablations", "taking parts of the circuit away", compute_part_ablations, n=N_ABLATED,
           steps=last_step, passes=9 * 30),
)  # fmt: skip
