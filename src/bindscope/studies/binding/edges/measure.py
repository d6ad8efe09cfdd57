"""The result ``edges``: circuits of edges around the end of the plateau, and what the last circuit's edges carried before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.studies.development.packing import pack_small
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import round_bits, steps_around_plateau
from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable, Result, with_progress

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

DEPTH = 2
N_POINTS, N_CHECKED, N_RANDOM = 4, 8, 2
LEAST = 0.8  # of the base run's logit difference, for a circuit to be enough
STRONGEST = 0.2  # of all edges: the circuit of the last checkpoint whose past is followed
N_SAVED = 40  # edges whose effects are saved


def compute_edges(context: Context) -> xr.Dataset:
    """``faithfulness`` over (step, size) beside random circuits, ``needed`` and ``carried`` with intervals over (step), and
    ``effect`` of the last checkpoint's strongest edges over (step, edge)."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.tasks.binding import named_positions, sample_root_pairs

    task: Any = context.run.config.task
    first_line = min(3, task.lines - DEPTH + 1)
    if first_line < 1 or task.max_depth < DEPTH:
        raise NotTestable(f"edges are found on chains of depth {DEPTH}, which this run's programs do not have")
    pairs = sample_root_pairs(task, context.rng, context.n, range(DEPTH, DEPTH + 1), first_line)
    contrast, named, run = contrast_pairs(pairs), named_positions(pairs), context.run
    steps = chosen_steps(run)
    parts = [
        _measure(run.checkpoint(step), contrast, named, context.seed)
        for step in with_progress(steps, context.on_progress)
    ]
    dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop")
    followed = follow_edges(dataset)
    hashes = [run.manifest.checkpoints[step].sha256 for step in steps]
    dataset = (
        dataset.drop_vars(["means", "sender", "receiver"]).merge(followed).assign_coords({CHECKPOINT: ("step", hashes)})
    )
    for name in dataset.data_vars:
        dataset[name] = dataset[name].copy(data=round_bits(dataset[name].values))
    return pack_small(dataset).assign_attrs(
        n=context.n, depth=DEPTH, least=LEAST, strongest=STRONGEST, interval="95 % of a mean over pairs"
    )


def chosen_steps(run: Run) -> list[int]:
    """Three checkpoints on the plateau, four behind it, and the last."""
    return steps_around_plateau(run, [0, 0.5, 1], n_after=4)


def follow_edges(dataset: xr.Dataset) -> xr.Dataset:
    """What the strongest edges of the last step carried at every step: ``carried``, their fraction of all attribution, and
    ``effect`` (step, edge) of the first of them. Edges that were any would carry the attribute ``strongest``."""
    means = dataset.means.transpose("step", "sender", "receiver").values
    strength = np.abs(np.nan_to_num(means))
    known = np.argwhere(np.isfinite(means[-1]))
    order = known[np.argsort(-strength[-1][tuple(known.T)], kind="stable")]
    circuit = tuple(order[: max(1, round(STRONGEST * len(order)))].T)
    total = strength.sum((1, 2))
    carried = np.where(total > 0, strength[:, *circuit].sum(1) / np.where(total > 0, total, 1), np.nan)
    saved = tuple(order[:N_SAVED].T)
    ends = [dataset[name].values[index] for name, index in zip(("sender", "receiver"), saved, strict=True)]
    return xr.Dataset(
        {"carried": ("step", carried), "effect": (("step", "edge"), means[:, *saved])},
        {"edge": [f"{str(a).removesuffix('.result')} > {b}" for a, b in zip(*ends, strict=True)]},
    )


def count_needed(sizes: np.ndarray, faithfulness: np.ndarray, least: float = LEAST) -> float:
    """How many edges it takes to be ``least`` faithful and stay so with more, on a line between logarithms of sizes; NaN
    where nothing can be told.

    >>> count_needed(np.array([10, 20, 40]), np.array([0.0, 0.6, 1.0]))
    28.28...
    """
    if not np.isfinite(faithfulness).all() or faithfulness[-1] < least:
        return float("nan")
    below = np.flatnonzero(faithfulness < least)
    if len(below) == 0:
        return float(sizes[0])
    left, right = below[-1], below[-1] + 1
    way = (least - faithfulness[left]) / (faithfulness[right] - faithfulness[left])
    return float(np.exp(np.log(sizes[left]) + way * np.log(sizes[right] / sizes[left])))


def _measure(model: Any, contrast: Any, named: Any, seed: int) -> xr.Dataset:
    from bindscope.interventions.edge_reading import tabulate_circuits
    from bindscope.interventions.edge_report import report_edges
    from bindscope.interventions.edges import ANYWHERE

    rng = np.random.default_rng(seed)
    report = report_edges(model, contrast, named, n_points=N_POINTS, n_checked=N_CHECKED, n_random=N_RANDOM, rng=rng)
    circuits = tabulate_circuits(report)
    sizes = circuits["size"].values
    needed = {
        f"needed{end}": count_needed(sizes, circuits[f"faithfulness{other}"].values)
        for end, other in (("", ""), ("_low", "_high"), ("_high", "_low"))
    }
    errors = {name: report.attrs[name] for name in ("correlation", "mean_absolute_error", "largest_error")}
    means = report.effect_at.sel(position=ANYWHERE, drop=True).rename("means")
    names = ["faithfulness", "faithfulness_low", "faithfulness_high", "kept", "random_least", "random_most"]
    return circuits[names].assign(needed | errors).merge(means)


RESULTS = (Result("edges", "circuits of edges", compute_edges, n=16, steps=chosen_steps, passes=120, on_demand=True),)

CURVES = (
    Curve(
        "edges-needed",
        f"edges needed for {LEAST:.0%} faithfulness".replace("%", " %"),
        f"How many of the strongest edges, the only ones that carry the base run, keep {100 * LEAST:.0f} % of its logit difference "
        f"on other pairs of depth {DEPTH}. It falls as the answer comes to rest on fewer edges.",
        "edges",
        lambda found: over_steps(found.needed, found.needed_low, found.needed_high),
        "edges",
    ),
    Curve(
        "edges-carried",
        "attribution on the last circuit's edges",
        f"Of all attribution at a checkpoint, the fraction on the edges that are the strongest {100 * STRONGEST:.0f} % at the last one; "
        f"{100 * STRONGEST:.0f} % by chance.",
        "edges",
        lambda found: over_steps(found.carried),
        "fraction",
    ),
)

DRAWINGS = (
    Drawing(
        "edges",
        "Circuits of edges through training: faithfulness by size, edges needed, and what the last circuit carried before",
        ("edges", "trajectory"),
        defer(f"{__package__}.draw", "draw_edges"),
    ),
)
