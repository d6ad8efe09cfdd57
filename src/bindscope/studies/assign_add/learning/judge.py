"""AA1: nine curves, three phases, two spikes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.spikes import SUM_PHASES, Spike, SpikeCriterion
from bindscope.measures.stats.shuffles import fraction_of_shuffles
from bindscope.studies.assign_add.learning.phases import phases_and_spikes, phases_of_sums, published_spikes, spikes_of
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of
from bindscope.tasks.assign_add import SPLIT_NAMES

if TYPE_CHECKING:
    from bindscope.measures.binding.phases import Phase

LEAST_EVALUATIONS = 8
END = 0.95
N_SHUFFLES = 100
MOST_BY_CHANCE = 0.05  # fraction of shuffled runs in which phases and spikes may appear
UNFINISHED = ("training", "interrupted")


def judge_learning(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA1: addition, assignment, refinement, with a spike into each of the latter two."""
    dataset = results["trajectory"]
    phases, spikes = phases_and_spikes(dataset)
    quantities = _quantities(dataset, phases, spikes)
    problem = _what_hinders(dataset, phases)
    if problem:
        return not_testable(problem, quantities)
    missing = [name for name in SUM_PHASES if name not in {phase.name for phase in phases}]
    first, second = published_spikes(spikes)
    end = dataset.split_accuracy.isel(step=-1)
    lowest = str(end.split.values[int(end.values.argmin())])
    by_chance = fraction_with_phases(dataset)
    criterion = (
        Condition(not missing, "the three phases follow each other", f"no {' and no '.join(missing)} phase was found"),
        Condition(
            first is not None,
            f"a spike {_when(first)} lifts every split with variables in trained positions",
            "no spike lifts all splits with variables in trained positions",
        ),
        Condition(
            second is not None,
            f"a later one {_when(second)} lifts those in restricted positions and no other",
            "no later spike lifts the splits in restricted positions alone",
        ),
        Condition(
            float(end.min()) >= END,
            f"every split ends above {END:.0%}",
            f"split {lowest} ends at {float(end.min()):.1%}, below {END:.0%}",
        ),
    )
    words = "with its evaluations in shuffled order the same detectors find all of this in"
    held = by_chance <= MOST_BY_CHANCE
    control = (Condition(held, f"{words} {by_chance:.0%} of cases", f"{words} {by_chance:.0%} of cases, too many"),)
    shuffled = fraction_of("three phases and two spikes, evaluations shuffled", by_chance, N_SHUFFLES)
    return conclude(criterion, control, quantities, (shuffled,))


def fraction_with_phases(dataset: xr.Dataset, n_shuffles: int = N_SHUFFLES, seed: int = 0) -> float:
    """In how many random orders of the same evaluations all three phases and two or more spikes would be found."""

    def has_phases_and_spikes(order: np.ndarray) -> bool:
        shuffled = dataset.isel(step=order).assign_coords(step=dataset.step.values)
        in_order = [phase.name for phase in phases_of_sums(shuffled)] == list(SUM_PHASES)
        return in_order and len(spikes_of(shuffled)) >= 2

    return fraction_of_shuffles(has_phases_and_spikes, dataset.sizes["step"], n_shuffles, np.random.default_rng(seed))


def _quantities(dataset: xr.Dataset, phases: Sequence[Phase], spikes: Sequence[Spike]) -> tuple[Quantity, ...]:
    last = dataset.isel(step=-1)
    return (
        *(
            Quantity(f"{phase.name}, steps {phase.first_step:,}–{phase.last_step:,}, mean of splits", phase.accuracy)
            for phase in phases
        ),
        *(
            Quantity(
                f"spike {spike.number}, steps {spike.before_step:,}–{spike.after_step:,}, largest rise", spike.size
            )
            for spike in spikes
        ),
        *(
            fraction_of(
                f"{split} at the end", float(last.split_accuracy.sel(split=split)), int(last.split_n.sel(split=split))
            )
            for split in dataset.split.values
        ),
        *(
            Quantity(f"{split} at the end, {_HALVES[str(half)]}", float(last.half_accuracy.sel(split=split, half=half)))
            for split in dataset.split.values
            for half in dataset.half.values
            if np.isfinite(last.half_accuracy.sel(split=split, half=half))
        ),
    )


def _what_hinders(dataset: xr.Dataset, phases: Sequence[Phase]) -> str | None:
    missing = [split for split in SPLIT_NAMES if split not in dataset.split.values]
    if missing:
        return f"the run was not evaluated on the split {missing[0]}"
    n_evaluations = dataset.sizes["step"]
    if n_evaluations < LEAST_EVALUATIONS:
        return f"the run has {n_evaluations} evaluations; phases and spikes need {LEAST_EVALUATIONS} or more"
    names = [phase.name for phase in phases]
    if dataset.attrs.get("status") in UNFINISHED and set(SUM_PHASES) - set(names):
        last, total = int(dataset.step[-1]), int(dataset.attrs["total_steps"])
        seen = ", ".join(names) or "no phase"
        return f"training has not ended (step {last:,} of {total:,}), and so far only {seen} is seen"
    return None


def _when(spike: Spike | None) -> str:
    return "" if spike is None else f"at steps {spike.before_step:,}–{spike.after_step:,}"


_HALVES = {"swap_seen": "other order trained on", "both_held": "held out in both orders"}

AA1 = Claim(
    id="AA1",
    title="Three phases, two spikes",
    statement=(
        "Sums of two numbers are learned first, then variables are looked up, then also where training never shows "
        "them; two sudden rises mark the way, one of all sums with variables, one of those in restricted positions alone."
    ),
    paper=REPORTED["AA1"],
    measure=(
        "Every recorded evaluation of the nine splits, read with fixed criteria. Spikes: "
        f"{SpikeCriterion().describe()} Held-out pairs are also shown by whether their swap was trained."
    ),
    criterion=(
        "The three phases are found in order; a spike lifts all splits with variables in trained positions, a later one "
        f"lifts the three with restricted positions and no other, and every split ends at {END:.0%} or more."
    ),
    control_description=(
        f"The same evaluations in {N_SHUFFLES} random orders: three phases and two spikes may be found in at most "
        f"{MOST_BY_CHANCE:.0%} of them."
    ),
    results=("trajectory",),
    judge=judge_learning,
    draw=defer(f"{__package__}.draw", "draw_learning"),
)

CLAIMS = (AA1,)
