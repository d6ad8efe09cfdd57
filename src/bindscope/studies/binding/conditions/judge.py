"""VB8 and VB12: other seeds, and chains extended uniformly. Both read experiments, which train several runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PHASES, PhaseCurves, detect_phases, lowest_accuracy
from bindscope.measures.stats.shuffles import fraction_of_shuffles
from bindscope.studies.binding.learning.judge import phases_in_order
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    agree,
    all_hold,
    conclude,
    inconclusive,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of, range_of

LEAST_SEEDS = 3
N_SHUFFLES = 100  # of each seed
MOST_BY_CHANCE = 0.05
CHANCE = 0.1  # of ten digits
EXPONENTS = ("cubic", "uniform")
BALANCES = {"balanced": "", "as drawn": "-as-drawn"}  # how depths are asked about → what it adds to a variant's name
PATIENCE = 2  # times the steps after which cubic runs are systematic, before a uniform one counts as never becoming so


def judge_seeds(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB8: every seed passes through the same three phases."""
    cells = results["seeds"]
    n = cells.sizes["seed"]
    found = {int(seed): tuple(str(names).split(", ")) for seed, names in zip(cells.seed.values, cells.phases.values)}
    complete = {seed: phases_in_order(tuple(name for name in names if name)) for seed, names in found.items()}
    quantities = (
        fraction_of("seeds with all three phases", sum(whole is True for whole in complete.values()) / n, n),
        range_of("heuristic plateau", cells.phase_accuracy.sel(phase="heuristic").values, "fraction", "median"),
        range_of("systematic from step", cells.phase_first_step.sel(phase="systematic").values, "step", "median"),
        range_of("accuracy at the end", cells.last_accuracy.values, "fraction", "median"),
    )
    if n < LEAST_SEEDS:
        return inconclusive(
            f"{n} {'training' if n == 1 else 'trainings'} of these settings {'is' if n == 1 else 'are'} known and "
            f"{LEAST_SEEDS} or more are needed; more are trained by {cells.attrs['train']}",
            quantities,
        )
    failed, cut = (_seeds([seed for seed, whole in complete.items() if whole is holds]) for holds in (False, None))
    criterion = (
        Condition(
            all_hold(complete.values()),
            f"all {n} seeds pass through random, heuristic and systematic",
            f"{failed} passed over a phase",
            f"{cut} had not come through all three phases when training was cut off, at step "
            f"{float(cells.last_step.max()):,.0f} at the latest; the others do",
        ),
    )
    by_chance = fraction_of("three phases, shuffled", fraction_with_phases(cells), n * N_SHUFFLES)
    words = f"with evaluations shuffled three phases are found in {by_chance.value:.0%} of cases"
    control = (Condition(stays_within(by_chance, MOST_BY_CHANCE), words, f"{words}, too many"),)
    return conclude(criterion, control, quantities, (by_chance,))


def judge_weighting(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB12: with chains extended uniformly the systematic phase does not come, whether depths are balanced or not."""
    dataset = results["weighting"]
    cells = {(exponent, balance): _cell(dataset, exponent, balance) for exponent in EXPONENTS for balance in BALANCES}
    missing = [cell.words for cell in cells.values() if not cell.systematic]
    stays = {balance: _never_systematic(cells["uniform", balance], cells["cubic", balance]) for balance in BALANCES}
    parts = [cells["uniform", balance].tell() for balance in BALANCES if cells["uniform", balance].systematic]
    lacks = f"; {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not trained" if missing else ""
    criterion = (
        Condition(
            agree(stays.values()),
            "without the cube no run becomes systematic, whether depths are balanced or not",
            "without the cube runs become systematic, whether depths are balanced or not",
            f"exponent and balancing cannot be told apart yet: {'; '.join(parts) or 'nothing is known of uniform runs'}"
            f"{lacks}. 'bindscope experiment weighting' trains what is missing",
        ),
    )
    control = tuple(
        Condition(
            True if cell.systematic and all(cell.systematic) else None,
            f"{cell.words}: every run becomes systematic",
            "",
            f"{cell.words}: {'not every run becomes systematic' if cell.systematic else 'no run'}, so that nothing follows "
            "from uniform runs that do not",
        )
        for cell in (cells["cubic", balance] for balance in BALANCES)
    )
    seeds = sorted({len(cell.systematic) for cell in cells.values()})
    said = "one seed" if seeds[-1] == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    return conclude(
        criterion,
        control,
        tuple(quantity for balance in BALANCES for quantity in cells["uniform", balance].quantities),
        tuple(quantity for balance in BALANCES for quantity in cells["cubic", balance].quantities),
    ).adding(f"{said[0].upper()}{said[1:]} a cell.")


@dataclass(frozen=True)
class _Cell:
    """The runs of one exponent and one way to balance depths."""

    words: str  # "uniform, balanced"
    systematic: list[bool]  # of each run
    last_step: float  # the fewest that any of them was trained
    first_systematic: float  # the latest step at which one of them became so
    quantities: tuple[Quantity, ...]

    def tell(self) -> str:
        return f"{self.words}, {sum(self.systematic)} of {len(self.systematic)} become systematic"


def _cell(dataset: xr.Dataset, exponent: str, balance: str) -> _Cell:
    name, words = exponent + BALANCES[balance], f"{exponent}, {balance}"
    if name not in dataset.variant.values:
        return _Cell(words, [], np.nan, np.nan, ())
    runs = dataset.sel(variant=name)
    runs = runs.isel(seed=np.flatnonzero(np.isfinite(runs.last_step.values)))
    reached = ["systematic" in str(phases) for phases in runs.phases.values]
    started = runs.phase_first_step.sel(phase="systematic").values
    quantities = (
        fraction_of(f"{words}: runs that become systematic", float(np.mean(reached)), len(reached)),
        range_of(f"{words}: accuracy at the end", runs.last_accuracy.values, "fraction", "median"),
        range_of(f"{words}: plateau", runs.phase_accuracy.sel(phase="heuristic").values, "fraction", "median"),
    )
    latest = float(np.nanmax(started)) if np.isfinite(started).any() else np.nan
    return _Cell(words, reached, float(runs.last_step.min()), latest, quantities)


def _never_systematic(uniform: _Cell, cubic: _Cell) -> bool | None:
    """Whether no uniform run becomes systematic, given at least PATIENCE times the steps that cubic ones took."""
    if any(uniform.systematic):
        return False
    return True if uniform.systematic and uniform.last_step >= PATIENCE * cubic.first_systematic else None


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


def _seeds(seeds: list[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"


VB8 = Claim(
    id="VB8",
    title="Every seed the same",
    statement="Six seeds pass through the same three phases.",
    paper=REPORTED["VB8"],
    measure=(
        "The phases of this training and of those with other seeds of its settings, from whichever experiment trained them "
        "('bindscope experiment seeds', seeds-plain)."
    ),
    criterion=(
        f"At least {LEAST_SEEDS} seeds are known, and each passes through all three phases in order. A seed that passes over "
        "a phase fails; one whose training was cut off before the last phase makes it inconclusive."
    ),
    control_description=(
        f"Each seed's evaluations in {N_SHUFFLES} random orders: three phases in at most {MOST_BY_CHANCE:.0%} of them, by the "
        "upper end of the interval."
    ),
    results=("seeds",),
    judge=judge_seeds,
    draw=defer(f"{__package__}.draw", "draw_seeds"),
    fixed=Fixed(
        "2026-11-17",
        "three seeds of binding-laptop, two of them cut off, and six of binding-plain; since 2026-11-16, before any, but for "
        "what a run that was cut off counts as",
    ),
)

VB12 = Claim(
    id="VB12",
    title="Uniform instead of cubic chains",
    statement=(
        "Were chains extended uniformly instead of by the cube of their length, models would stop at rules about "
        "length and position: no systematic phase."
    ),
    paper=REPORTED["VB12"],
    measure=(
        "The phases of runs with chains extended by the cube of their depth or uniformly, and asked about depths in equal "
        "number or as they are drawn: a 2 × 2 from 'bindscope experiment weighting'."
    ),
    criterion=(
        "No run with uniform weights becomes systematic, whether depths are balanced or not. It fails when some do in both "
        "cases. Where the two differ, where a cell is not trained, or where uniform runs ended before "
        f"{PATIENCE} times the steps after which cubic ones were systematic, it is inconclusive."
    ),
    control_description="Every run with cubic weights, trained in the same way, does become systematic, in either case.",
    results=("weighting",),
    judge=judge_weighting,
    draw=defer(f"{__package__}.draw", "draw_weighting"),
    fixed=Fixed("2026-11-17", "one run with each exponent and depths balanced: both become systematic"),
)

CLAIMS = (VB8, VB12)
