"""Which heads make which hop of the deepest chains, and which answers fall without them, at the last checkpoint."""

from __future__ import annotations

from typing import Any

import xarray as xr

from bindscope.studies.binding.mechanism.measure import (
    EXCLUDED,
    FIRST_ROOT_LINE,
    LEAST_LINES,
    chain_names,
    sample_pairs,
)
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.results import Context, NotTestable, Result, last_step
from bindscope.tasks.binding import sample_root_pairs


def compute_hops(context: Context) -> xr.Dataset:
    """Heads patched at each position of the deepest chains, and ablated in programs of all depths."""
    from bindscope.measures.binding.hops import ablate_hops, measure_hop_heads
    from bindscope.measures.binding.mechanism import accuracy_on

    task: Any = context.run.config.task
    if task.lines < LEAST_LINES:
        raise NotTestable(f"programs of {task.lines} lines are too short for roots from line {FIRST_ROOT_LINE} on")
    model, rng = context.run.checkpoint("last"), context.rng
    deepest = min(task.max_depth, task.lines - FIRST_ROOT_LINE + 1)
    hops = chain_names(deepest)[1:]
    pairs = sample_root_pairs(task, rng, context.n, range(deepest, deepest + 1), FIRST_ROOT_LINE)
    moved = measure_hop_heads(model, pairs, hops, rng)
    programs = sample_pairs(context.run, rng, 2 * context.n)
    ablated = ablate_hops(model, programs, hops, rng)
    dataset = moved.merge(ablated.rename(position="ablated_at"), combine_attrs="drop")
    dataset.attrs = {
        "step": context.run.steps[-1],
        "accuracy": accuracy_on(model, pairs),
        "excluded": EXCLUDED,
        "deepest": deepest,
        "n": len(pairs),
        "n_programs": len(programs),
    }
    return dataset


RESULTS = (Result("hops", "heads by hop and depth", compute_hops, n=64, steps=last_step, passes=50),)

DRAWINGS = (
    Drawing(
        "ablations",
        "Answers that fall without each head, by depth and by hop",
        ("hops",),
        defer(f"{__package__}.draw_ablations", "draw_ablations"),
    ),
)
