"""VB8 and VB12: other seeds, and chains extended uniformly. Both read experiments, which train several runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PHASES, PhaseCurves, detect_phases, lowest_accuracy
from bindscope.measures.stats.shuffles import fraction_of_shuffles
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of, range_of

LEAST_SEEDS = 3
N_SHUFFLES = 20  # of each seed
MOST_BY_CHANCE = 0.05
CHANCE = 0.1  # of ten digits


def judge_seeds(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB8: every seed passes through the same three phases."""
    dataset = results["seeds"].isel(variant=0)
    cells = dataset.isel(seed=np.flatnonzero(np.isfinite(dataset.last_step.values)))
    n = cells.sizes["seed"]
    if n < LEAST_SEEDS:
        return not_testable(
            f"the experiment has {n} finished {'seed' if n == 1 else 'seeds'}; {LEAST_SEEDS} or more are needed, "
            "which 'bindscope experiment seeds' trains"
        )
    complete = [str(phases) == ", ".join(PHASES) for phases in cells.phases.values]
    by_chance = fraction_with_phases(cells)
    missing = [str(seed) for seed, whole in zip(cells.seed.values, complete) if not whole]
    criterion = (
        Condition(
            all(complete),
            f"all {n} seeds pass through random, heuristic and systematic",
            f"{'seed' if len(missing) == 1 else 'seeds'} {', '.join(missing)} did not pass through all three phases in the "
            "steps given",
        ),
    )
    words = f"with evaluations shuffled three phases are found in {by_chance:.0%} of cases"
    control = (Condition(by_chance <= MOST_BY_CHANCE, words, words),)
    starts = cells.phase_first_step.sel(phase="systematic").values
    quantities = (
        fraction_of("seeds with all three phases", sum(complete) / n, n),
        range_of("heuristic plateau", cells.phase_accuracy.sel(phase="heuristic").values, "fraction", "median"),
        range_of("systematic from step", starts, "step", "median"),
    )
    return conclude(criterion, control, quantities, (fraction_of("three phases, shuffled", by_chance, n * N_SHUFFLES),))


def judge_weighting(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB12: with chains extended uniformly the systematic phase does not come."""
    dataset = results["weighting"]
    missing = [name for name in ("cubic", "uniform") if name not in dataset.variant.values]
    if missing:
        return not_testable(f"the experiment has no {missing[0]} run; 'bindscope experiment weighting' trains it")
    reached = {name: _systematic(dataset.sel(variant=name)) for name in ("cubic", "uniform")}
    ended = {name: dataset.last_accuracy.sel(variant=name) for name in ("cubic", "uniform")}
    steps = max(float(dataset.last_step.max()), 0)
    criterion = (
        Condition(
            not any(reached["uniform"]),
            f"none of {len(reached['uniform'])} uniform runs becomes systematic within {steps:,.0f} steps",
            f"{sum(reached['uniform'])} of {len(reached['uniform'])} uniform runs become systematic",
        ),
    )
    control = (
        Condition(
            all(reached["cubic"]),
            "all runs with cubic weights do",
            "but not every run with cubic weights becomes systematic either",
        ),
    )
    quantities = (
        fraction_of("uniform runs that become systematic", _mean(reached["uniform"]), len(reached["uniform"])),
        range_of("accuracy at the end, uniform", ended["uniform"], "fraction", "median"),
        range_of(
            "plateau, uniform",
            dataset.sel(variant="uniform", phase="heuristic").phase_accuracy.values,
            "fraction",
            "median",
        ),
    )
    beside = (
        fraction_of("cubic runs that become systematic", _mean(reached["cubic"]), len(reached["cubic"])),
        range_of("accuracy at the end, cubic", ended["cubic"], "fraction", "median"),
    )
    return conclude(criterion, control, quantities, beside)


def fraction_with_phases(cells: xr.Dataset, n_shuffles: int = N_SHUFFLES) -> float:
    """In how many random orders of a seed's evaluations all three phases would be found."""
    rng = np.random.default_rng(0)
    return float(np.mean([_shuffles_of_seed(cells.sel(seed=seed), rng, n_shuffles) for seed in cells.seed.values]))


def _shuffles_of_seed(cell: xr.Dataset, rng: np.random.Generator, n_shuffles: int) -> float:
    known = cell.isel(step=np.flatnonzero(np.isfinite(cell.accuracy.values)))
    worst = lowest_accuracy(known.accuracy_by_depth.transpose("step", "depth").values)

    def has_phases(order: np.ndarray) -> bool:
        curves = PhaseCurves(
            steps=known.step.values,
            accuracy=known.accuracy.values[order],
            follows_chain=known.follows_chain.values[order],
            follows_early_lines=known.follows_early_lines.values[order],
            worst_depth=worst[order],
            chance=CHANCE,
            n_examples=int(known.n),
        )
        return [phase.name for phase in detect_phases(curves)] == list(PHASES)

    return fraction_of_shuffles(has_phases, known.sizes["step"], n_shuffles, rng)


def _systematic(cells: xr.Dataset) -> list[bool]:
    known = np.isfinite(cells.last_step.values)
    return ["systematic" in str(phases) for phases, there in zip(cells.phases.values, known) if there]


def _mean(values: list[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


VB8 = Claim(
    id="VB8",
    title="Every seed the same",
    statement="Six seeds pass through the same three phases.",
    paper=REPORTED["VB8"],
    measure="The phases of several runs that differ only in their seed, from 'bindscope experiment seeds'.",
    criterion=f"At least {LEAST_SEEDS} seeds have ended, and each passes through all three phases in order.",
    control_description=(
        f"Each seed's evaluations in {N_SHUFFLES} random orders: three phases in at most {MOST_BY_CHANCE:.0%} of them."
    ),
    results=("seeds",),
    judge=judge_seeds,
    draw=defer(f"{__package__}.draw", "draw_seeds"),
)

VB12 = Claim(
    id="VB12",
    title="Uniform instead of cubic chains",
    statement=(
        "Were chains extended uniformly instead of by the cube of their length, models would stop at rules about "
        "length and position: no systematic phase."
    ),
    paper=REPORTED["VB12"],
    measure="The phases of runs with either weighting and the same steps, from 'bindscope experiment weighting'.",
    criterion="No run with uniform weights becomes systematic.",
    control_description="Every run with cubic weights, trained in the same way, does become systematic.",
    results=("weighting",),
    judge=judge_weighting,
    draw=defer(f"{__package__}.draw", "draw_weighting"),
)

CLAIMS = (VB8, VB12)
