"""Results about the mechanism: where the value can be changed, which heads carry it, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.studies.framework.measuring import compute_trajectory
from bindscope.studies.framework.results import Context, NotTestable, Result, last_step, with_progress
from bindscope.studies.framework.training import tell_training
from bindscope.tasks.binding import distractor_positions, named_positions, sample_root_pairs

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.tasks.binding import CounterfactualPairs

FIRST_ROOT_LINE = 3  # programs whose root is on line 1 or 2 are left out: there shortcut and mechanism agree
EXCLUDED = "programs whose root is on line 1 or 2"
LEAST_LINES = 4  # a root on line 3 and a line that is not on its chain
MOST_CHECKPOINTS = 26
CARRIES = 0.5  # success above which a cell belongs to the frozen circuit
ENOUGH = 0.9  # joint success at which a set of heads is taken to carry the value


def sample_pairs(run: Run, rng: np.random.Generator, n: int) -> CounterfactualPairs:
    """Pairs that differ in the constant at the root of the queried chain, from line 3 on, balanced over depths."""
    task: Any = run.config.task
    if task.lines < LEAST_LINES:
        raise NotTestable(f"programs of {task.lines} lines are too short for roots from line {FIRST_ROOT_LINE} on")
    return sample_root_pairs(task, rng, n, first_root_line=FIRST_ROOT_LINE)


def compute_chain(context: Context) -> xr.Dataset:
    """Patching of the residual stream at every position of the queried chain and every layer, by depth, last checkpoint."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import position_grid
    from bindscope.measures.binding.mechanism import accuracy_on, depths_of, summarise_by_depth

    model = context.run.checkpoint("last")
    pairs = sample_pairs(context.run, context.rng, context.n)
    positions = named_positions(pairs) | distractor_positions(pairs)
    grid = position_grid(model, contrast_pairs(pairs), positions, on_progress=context.on_progress)
    dataset = summarise_by_depth(grid, depths_of(pairs), context.rng)
    dataset.attrs |= {"step": context.run.steps[-1], "accuracy": accuracy_on(model, pairs), "excluded": EXCLUDED}
    return dataset


def compute_heads(context: Context) -> xr.Dataset:
    """Patching of heads: each alone, position by position, and the strongest together.

    Heads are ranked on one half of the pairs and tested together on the other. The root's own position is left out
    everywhere: what a head gives there is the changed token itself.
    """
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import head_grids
    from bindscope.measures.binding.mechanism import accuracy_on, join_heads, mark_columns

    model, rng = context.run.checkpoint("last"), context.rng
    fit, test = (sample_pairs(context.run, rng, max(1, context.n // 2)) for _ in range(2))
    positions = named_positions(fit)
    marked = {name: mark_columns(fit, column) for name, column in positions.items() if not name.startswith("lhs")}
    del marked["rhs 1"]
    marked["anywhere"] = ~mark_columns(fit, positions["rhs 1"])
    contrast = contrast_pairs(fit)
    told = context.on_progress
    on_progress = None if told is None else lambda done, total: told(done, 2 * total)
    effects = {}
    for name, grid in head_grids(model, contrast, marked, on_progress=on_progress).items():
        present = grid.isel(pair=np.flatnonzero(marked[name].any(1)))
        effects[name] = present[["logit_difference", "success"]].mean("pair")
    dataset = xr.concat(effects.values(), xr.IndexVariable("position", list(effects)), combine_attrs="drop")
    dataset = dataset.merge(
        join_heads(model, test, dataset.logit_difference.sel(position="anywhere").values, rng, ENOUGH)
    )
    dataset.attrs = {
        "step": context.run.steps[-1],
        "accuracy": accuracy_on(model, test),
        "excluded": EXCLUDED,
        "n_fit": len(fit),
        "n_test": len(test),
        "enough": ENOUGH,
    }
    return dataset


def compute_emergence(context: Context) -> xr.Dataset:
    """Patching in the cells that carry the value at the last checkpoint, at every saved checkpoint before."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import position_grid
    from bindscope.measures.binding.mechanism import (
        answers_already,
        answers_right,
        depths_of,
        label_emergence,
        read_circuit,
    )

    circuit = frozen_circuit(context.found["chain"])
    if not circuit:
        raise NotYet(
            "at the last checkpoint no position beyond the root carries the value, so there is no circuit: "
            f"{tell_training(compute_trajectory(context))}"
        )
    pairs = sample_pairs(context.run, context.rng, context.n)
    depths = depths_of(pairs)
    distractors = distractor_positions(pairs)
    used = {position for _, position, _ in circuit}
    positions = {name: column for name, column in named_positions(pairs).items() if name in used} | distractors
    steps = track_steps(context.run)
    rows: list[dict[str, np.ndarray]] = []
    for step in with_progress(steps, context.on_progress):
        model = context.run.checkpoint(step)
        success = position_grid(model, contrast_pairs(pairs), positions).success
        changed = success.where(~answers_already(model, pairs), 0.0)  # an answer that was there before is no success
        rows.append(
            read_circuit(changed, circuit, depths, list(distractors)) | {"accuracy": answers_right(model, pairs)}
        )
    dataset = label_emergence(rows, steps, circuit, list(distractors), context.rng)
    dataset.attrs |= {"excluded": EXCLUDED, "frozen_at": steps[-1], "n": len(pairs)}
    return dataset


def frozen_circuit(chain: xr.Dataset) -> list[tuple[int, str, int]]:
    """Cells (depth, position, layer) beyond the root's own position that carry the value: patching succeeds mostly."""
    cells = []
    for depth in chain.depth.values:
        for position in chain_names(int(depth)):
            for layer in chain.layer.values:
                if (
                    position != "rhs 1"
                    and float(chain.success.sel(depth=depth, position=position, layer=layer)) >= CARRIES
                ):
                    cells.append((int(depth), position, int(layer)))
    return cells


def chain_names(depth: int) -> list[str]:
    """The value's way along a chain: ``rhs 1``, …, ``query``, ``colon``."""
    return [*(f"rhs {hop}" for hop in range(1, depth + 1)), "query", "colon"]


def track_steps(run: Run) -> list[int]:
    """The saved steps, or evenly chosen ones where there are very many; always the first and the last."""
    steps = np.array(run.steps)
    if len(steps) <= MOST_CHECKPOINTS:
        return steps.tolist()
    chosen = np.unique(np.linspace(0, len(steps) - 1, MOST_CHECKPOINTS).round().astype(int))
    return steps[chosen].tolist()


RESULTS = (
    Result("chain", "patching the chain", compute_chain, 2, n=240, steps=last_step, passes=8),
    Result("heads", "patching heads", compute_heads, 3, n=240, steps=last_step, passes=12),
    Result("emergence", "the circuit through training", compute_emergence, 2, n=64, steps=track_steps, needs=("chain",),
           passes=6),
)  # fmt: skip
