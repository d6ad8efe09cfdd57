"""VB1: the phases of learning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PHASES, Phase
from bindscope.measures.stats.shuffles import fraction_of_shuffles
from bindscope.studies.binding.learning.trajectory import PHASE_VARIABLES
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    all_hold,
    conclude,
    inconclusive,
    not_testable,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of, range_of
from bindscope.studies.framework.training import few_evaluations, tell_training
from bindscope.studies.framework.trajectory import phases_of

LEAST_EVALUATIONS = 5
LEAST_GAIN = 0.1  # the line-1 rule must beat chance by this for a heuristic to be worth having
PLATEAU_DISTANCE = 0.1
END = 0.99
DIGITS = 0.9  # fraction of predictions that are digits before anything else is learned
DENSE = 3  # evaluations in the random phase that show what happens in it
N_SHUFFLES = 100
MOST_BY_CHANCE = 0.05  # fraction of shuffled runs in which the phases may appear


def judge_phases(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB1: random, heuristic, systematic, in this order."""
    dataset, seeds = results["trajectory"], results["seeds"]
    phases = {phase.name: phase for phase in phases_of(dataset)}
    own = {name: _phase_quantity(dataset, phase) for name, phase in phases.items()}
    end = _last_accuracy(dataset)
    if hindered := what_hinders(dataset, (*own.values(), end)):
        return hindered
    digits = _digits_first(dataset, phases.get("random"))
    criterion = (_in_order(dataset, tuple(phases)), digits[0], _plateau(dataset, own), _ends_well(phases, end))
    shuffled = fraction_of("three phases, evaluations shuffled", fraction_of_shuffles_with_phases(dataset), N_SHUFFLES)
    words = (
        f"with its evaluations in shuffled order the same detector finds three phases in {shuffled.value:.0%} of cases"
    )
    control = (Condition(stays_within(shuffled, MOST_BY_CHANCE), words, f"{words}, too many"),)
    quantities = (*own.values(), end, *digits[1], *_over_seeds(seeds))
    return conclude(criterion, control, quantities, (shuffled,)).adding(tell_seeds(seeds))


def tell_seeds(seeds: xr.Dataset) -> str:
    """How many trainings there are, and which of them pass through all three phases."""
    n = seeds.sizes["seed"]
    if n == 1:
        return f"One seed; more are trained by {seeds.attrs['train']}."
    alike = int((seeds.phases == ", ".join(PHASES)).sum())
    return f"{alike} of {n} seeds of these settings went through all three phases in the steps given."


def what_hinders(dataset: xr.Dataset, quantities: tuple[Quantity, ...] = ()) -> Finding | None:
    """Why the phases of such a run cannot be judged at all, or not yet."""
    gain = float(dataset.rule_accuracy.sel(rule="line_1")) - float(dataset.split_chance.sel(split="test"))
    if gain < LEAST_GAIN:
        return not_testable(
            "in these programs answering with line 1 is hardly better than chance, so there is no heuristic to acquire",
            quantities,
        )
    return few_evaluations(dataset, LEAST_EVALUATIONS, "its phases need", quantities)


def lacks_phases(dataset: xr.Dataset, phases: Iterable[str], wanted: Iterable[str]) -> Finding | None:
    """What is said without some phases: training may still bring them, but not one that was passed over."""
    known = set(phases)
    missing = [name for name in wanted if name not in known]
    if not missing:
        return None
    if "systematic" in known:
        return not_testable(f"this run has no {missing[0]} phase: it became systematic without one")
    return inconclusive(f"no {' and no '.join(missing)} phase was found: {tell_training(dataset)}")


def phases_in_order(names: tuple[str, ...]) -> bool | None:
    """Whether phases are all there: False where one was passed over, None where the last ones have not come yet."""
    last = max((PHASES.index(name) for name in names), default=-1)
    if any(name not in names for name in PHASES[:last]):
        return False
    return True if last == len(PHASES) - 1 else None


def fraction_of_shuffles_with_phases(dataset: xr.Dataset, n_shuffles: int = N_SHUFFLES, seed: int = 0) -> float:
    """In how many random orders of the same evaluations all three phases would be found."""
    read = dataset[list(PHASE_VARIABLES)]  # shuffling all others would take most of the time

    def has_phases(order: np.ndarray) -> bool:
        shuffled = read.isel(step=order).assign_coords(step=dataset.step.values)
        return [phase.name for phase in phases_of(shuffled)] == list(PHASES)

    return fraction_of_shuffles(has_phases, dataset.sizes["step"], n_shuffles, np.random.default_rng(seed))


def _in_order(dataset: xr.Dataset, names: tuple[str, ...]) -> Condition:
    missing = [name for name in PHASES if name not in names]
    ended = f"no {' and no '.join(missing)} phase was found"
    last, total = int(dataset.step[-1]), int(dataset.attrs["total_steps"])
    cut = f"{ended} by step {last:,} of {total:,}, where training was cut off"
    return Condition(phases_in_order(names), "the three phases follow each other", ended, cut)


def _digits_first(dataset: xr.Dataset, random: Phase | None) -> tuple[Condition, tuple[Quantity, ...]]:
    """Before anything else is learned, predictions become digits: that phase is of random digits, not of random tokens."""
    asked = f"{DIGITS:.0%} of the predictions in the random phase are digits"
    if random is None:
        return Condition(False, asked, "there is no random phase in which predictions could be digits"), ()
    during = dataset.sel(step=slice(random.first_step, random.last_step))
    n = int(dataset.split_n.sel(split="test"))
    most = int(during.digit_share.argmax("step"))
    digits = fraction_of(f"digits, step {int(during.step[most]):,}", float(during.digit_share[most]), n)
    if during.sizes["step"] < DENSE:
        few = f"{during.sizes['step']} evaluation{'s' * (during.sizes['step'] > 1)} in the random phase"
        words = (
            f"{few} cannot show whether predictions become digits before they become anything else; runs trained now "
        )
        return Condition(None, asked, asked, f"{words}are evaluated at every early checkpoint"), (digits,)
    accuracy = float(during.split_accuracy.sel(split="test")[most])
    quantities = (digits, fraction_of(f"right answers there, step {int(during.step[most]):,}", accuracy, n))
    return Condition(reaches(digits, DIGITS), f"over {asked}", f"no {asked}"), quantities


def _plateau(dataset: xr.Dataset, own: Mapping[str, Quantity]) -> Condition:
    rule = float(dataset.rule_accuracy.sel(rule="line_1"))
    near = f"the plateau lies within {PLATEAU_DISTANCE:.0%} of what the line-1 rule scores ({rule:.1%})"
    far = f"no plateau near what the line-1 rule scores ({rule:.1%})"
    if "heuristic" not in own:
        return Condition(None if "systematic" not in own else False, near, far, far)
    plateau = own["heuristic"]
    within = (reaches(plateau, rule - PLATEAU_DISTANCE), stays_within(plateau, rule + PLATEAU_DISTANCE))
    return Condition(all_hold(within), near, far)


def _ends_well(phases: Mapping[str, Phase], end: Quantity) -> Condition:
    """Where the last phase has not come, the end says when training was cut off and nothing else."""
    below = f"the end stays below {END:.0%}"
    if "systematic" not in phases:
        return Condition(None, "", below, f"{below}, where training was cut off")
    return Condition(reaches(end, END), f"the end is above {END:.0%}", below)


def _over_seeds(seeds: xr.Dataset) -> tuple[Quantity, ...]:
    """What training varies in, where there are several seeds."""
    if seeds.sizes["seed"] < 2:
        return ()
    plateau = seeds.phase_accuracy.sel(phase="heuristic").values
    started = seeds.phase_first_step.sel(phase="systematic").values
    return (
        range_of(f"plateau of {seeds.sizes['seed']} seeds", plateau, "fraction", "median"),
        range_of("systematic from step, of those that are", started, "step", "median"),
        range_of("end of all seeds", seeds.last_accuracy.values, "fraction", "median"),
    )


def _phase_quantity(dataset: xr.Dataset, phase: Phase) -> Quantity:
    n = int(dataset.split_n.sel(split="test"))
    label = f"{phase.name}, steps {phase.first_step:,}–{phase.last_step:,}"
    return fraction_of(label, phase.accuracy, n)


def _last_accuracy(dataset: xr.Dataset) -> Quantity:
    last = dataset.sel(split="test").isel(step=-1)
    fraction, n = float(last.split_accuracy), int(last.split_n)
    return fraction_of(f"end, step {int(last.step):,}", fraction, n)


VB1 = Claim(
    id="VB1",
    title="Three phases",
    statement=(
        "Training passes through three phases: random digits, then a shallow rule that answers from the first lines of "
        "a program, then a systematic mechanism that follows the chain of references."
    ),
    paper=REPORTED["VB1"],
    measure=(
        "Every recorded evaluation is read with a fixed criterion (docs/claims.md); the run is cut, in this order, so "
        "that the fewest readings are contradicted. Other seeds of the same settings stand beside it."
    ),
    criterion=(
        f"All three phases are found in order; at some evaluation of the random phase at least {DIGITS:.0%} of the predictions "
        f"are digits (inconclusive with fewer than {DENSE} evaluations there); the heuristic plateau lies within "
        f"{PLATEAU_DISTANCE:.0%} of the accuracy of always answering with line 1; the last evaluation is at least {END:.0%}. "
        "Each by its whole interval. A phase that has not come when training ends is inconclusive."
    ),
    control_description=(
        f"The same evaluations in {N_SHUFFLES} random orders: three phases may be found in at most "
        f"{MOST_BY_CHANCE:.0%} of them, by the upper end of the interval."
    ),
    results=("trajectory", "seeds"),
    judge=judge_phases,
    draw=defer(f"{__package__}.draw", "draw_phases"),
    fixed=Fixed(
        "2026-11-17",
        "binding-laptop and binding-plain and their seeds, and the first 700 steps of two runs with early evaluations; phases, plateau and "
        "end since 2026-11-16, written before a run was judged",
    ),
)

CLAIMS = (VB1,)
