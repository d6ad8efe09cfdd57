"""VB1 and VB2: the phases of learning, and what is learned first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PHASES, Phase
from bindscope.measures.stats.shuffles import fraction_of_shuffles
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of
from bindscope.studies.framework.trajectory import phases_of, transitions_of

LEAST_EVALUATIONS = 5
LEAST_GAIN = 0.1  # the line-1 rule must beat chance by this for a heuristic to be worth having
PLATEAU_DISTANCE = 0.1
END = 0.99
N_SHUFFLES = 100
MOST_BY_CHANCE = 0.05  # fraction of shuffled runs in which the phases may appear
EARLY_FRACTION = 0.5
ROOT_GAP = 0.2  # how much better roots on lines 1–2 must be answered than later ones during the heuristic phase
FLAT_GAP = 0.05  # … and how little better at the end


def judge_phases(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB1: random, heuristic, systematic, in this order."""
    dataset = results["trajectory"]
    phases = {phase.name: phase for phase in phases_of(dataset)}
    quantities = (*(_phase_quantity(dataset, phase) for phase in phases.values()), _last_accuracy(dataset))
    problem = _what_hinders(dataset) or _unfinished(dataset, tuple(phases))
    if problem:
        return not_testable(problem, quantities)
    rule = float(dataset.rule_accuracy.sel(rule="line_1"))
    plateau = phases["heuristic"].accuracy if "heuristic" in phases else np.nan
    end = quantities[-1].value
    missing = [name for name in PHASES if name not in phases]
    by_chance = fraction_of_shuffles_with_phases(dataset)
    criterion = (
        Condition(not missing, "the three phases follow each other", f"no {' and no '.join(missing)} phase was found"),
        Condition(
            abs(plateau - rule) <= PLATEAU_DISTANCE,
            f"the plateau lies within {PLATEAU_DISTANCE:.0%} of what the line-1 rule scores ({rule:.1%})",
            f"no plateau near what the line-1 rule scores ({rule:.1%})",
        ),
        Condition(end >= END, f"the end is above {END:.0%}", f"the end stays below {END:.0%}"),
    )
    held = by_chance <= MOST_BY_CHANCE
    words = "with its evaluations in shuffled order the same detector finds three phases in"
    control = (Condition(held, f"{words} {by_chance:.0%} of cases", f"{words} {by_chance:.0%} of cases, too many"),)
    shuffled = fraction_of("three phases, evaluations shuffled", by_chance, N_SHUFFLES)
    return conclude(criterion, control, quantities, (shuffled,))


def judge_sources(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB2: the heuristic phase answers from lines 1 and 2, and depth 1 is learned last."""
    dataset = results["trajectory"]
    heuristic = next((phase for phase in phases_of(dataset) if phase.name == "heuristic"), None)
    problem = _what_hinders(dataset)
    if problem or heuristic is None:
        return not_testable(problem or "this run has no heuristic phase to look at")
    if dataset.sizes["root_line"] < 3 or dataset.sizes["depth"] < 2:
        return not_testable("programs this short have no roots from line 3 on, or no chain deeper than 1")
    during = dataset.sel(step=slice(heuristic.first_step, heuristic.last_step))
    early_fraction = float(during.follows_early_lines.median())
    n_misleading = int(dataset.n_misleading)
    early, late = _accuracy_by_root(during, slice(1, 2)), _accuracy_by_root(during, slice(3, None))
    steps = transitions_of(dataset)
    learned = [steps[f"depth {int(depth)}"] for depth in dataset.depth.values]
    if all(step is None for step in learned) and dataset.attrs.get("status") in ("training", "interrupted"):
        return not_testable("training has not ended and no depth is learned yet")
    criterion = (
        Condition(
            early_fraction >= EARLY_FRACTION,
            "in the heuristic phase misleading programs are mostly answered from line 1 or 2",
            "in the heuristic phase misleading programs are not mostly answered from line 1 or 2",
        ),
        Condition(
            early.value - late.value >= ROOT_GAP,
            "roots on early lines are answered far better",
            "roots on early lines are hardly answered better",
        ),
        _slower_first_hop(learned),
    )
    control, control_quantities = _source_control(dataset, early_fraction)
    quantities = (
        fraction_of("from line 1 or 2 where they mislead", early_fraction, n_misleading),
        early,
        late,
        *(
            Quantity(f"depth {depth} learned at step", np.nan if step is None else step, unit="step")
            for depth, step in enumerate(learned, start=1)
        ),
    )
    return conclude(criterion, control, quantities, control_quantities)


def fraction_of_shuffles_with_phases(dataset: xr.Dataset, n_shuffles: int = N_SHUFFLES, seed: int = 0) -> float:
    """In how many random orders of the same evaluations all three phases would be found."""

    def has_phases(order: np.ndarray) -> bool:
        shuffled = dataset.isel(step=order).assign_coords(step=dataset.step.values)
        return [phase.name for phase in phases_of(shuffled)] == list(PHASES)

    return fraction_of_shuffles(has_phases, dataset.sizes["step"], n_shuffles, np.random.default_rng(seed))


def _slower_first_hop(learned: list[int | None]) -> Condition:
    steps = [np.inf if step is None else step for step in learned]
    words = f"depth 1 reaches 90 % at {_step_words(learned[0])}, deeper chains by {_step_words(_latest(learned[1:]))}"
    slower = steps[0] > max(steps[1:])
    return Condition(slower, f"{words}: it is slower", f"{words}: here it is not slower than all of them")


def _latest(steps: list[int | None]) -> int | None:
    known = [step for step in steps if step is not None]
    return max(known) if len(known) == len(steps) else None


def _step_words(step: int | None) -> str:
    return "no step" if step is None else f"step {step:,}"


def _source_control(dataset: xr.Dataset, early_fraction: float) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """The untrained model has no such heuristic; where the run ends systematic, the line of the root no longer matters."""
    n = int(dataset.n_misleading)
    untrained = float(dataset.follows_early_lines[0])
    conditions = [
        Condition(
            untrained <= early_fraction / 2,
            "at the first evaluation the heuristic is absent",
            "at the first evaluation the heuristic is there already",
        )
    ]
    quantities = [fraction_of("from line 1 or 2 at the first evaluation", untrained, n)]
    if any(phase.name == "systematic" for phase in phases_of(dataset)):
        last = dataset.isel(step=slice(-1, None))
        early, late = _accuracy_by_root(last, slice(1, 2)), _accuracy_by_root(last, slice(3, None))
        conditions.append(
            Condition(
                early.value - late.value <= FLAT_GAP,
                "at the end the line of the root makes no difference",
                "at the end the line of the root still makes a difference",
            )
        )
        quantities.append(Quantity("root from line 3 on, at the end", late.value, late.low, late.high, late.n))
    return tuple(conditions), tuple(quantities)


def _what_hinders(dataset: xr.Dataset) -> str | None:
    """Why the phases of such a run cannot be judged at all."""
    n_evaluations = dataset.sizes["step"]
    if n_evaluations < LEAST_EVALUATIONS:
        return f"the run has {n_evaluations} evaluations; its phases need {LEAST_EVALUATIONS} or more"
    gain = float(dataset.rule_accuracy.sel(rule="line_1")) - float(dataset.split_chance.sel(split="test"))
    if gain < LEAST_GAIN:
        return (
            "in these programs answering with line 1 is hardly better than chance, so there is no heuristic to acquire"
        )
    return None


def _unfinished(dataset: xr.Dataset, names: tuple[str, ...]) -> str | None:
    if dataset.attrs.get("status") not in ("training", "interrupted") or set(PHASES) <= set(names):
        return None
    last, total = int(dataset.step[-1]), int(dataset.attrs["total_steps"])
    return (
        f"training has not ended (step {last:,} of {total:,}), and so far only {', '.join(names) or 'no phase'} is seen"
    )


def _phase_quantity(dataset: xr.Dataset, phase: Phase) -> Quantity:
    n = int(dataset.split_n.sel(split="test"))
    label = f"{phase.name}, steps {phase.first_step:,}–{phase.last_step:,}"
    return fraction_of(label, phase.accuracy, n)


def _last_accuracy(dataset: xr.Dataset) -> Quantity:
    last = dataset.sel(split="test").isel(step=-1)
    fraction, n = float(last.split_accuracy), int(last.split_n)
    return fraction_of(f"end, step {int(last.step):,}", fraction, n)


def _accuracy_by_root(dataset: xr.Dataset, lines: slice) -> Quantity:
    """Accuracy over the programs whose root is on these lines, averaged over the evaluations."""
    chosen = dataset.sel(root_line=lines)
    counts = chosen.n_by_root_line.values
    accuracy = chosen.accuracy_by_root_line.mean("step").values
    n = int(counts.sum())
    fraction = float(np.nansum(accuracy * counts) / n) if n else np.nan
    label = "root on line 1–2" if lines.stop else f"root from line {lines.start} on"
    return fraction_of(f"accuracy, {label}", fraction, n)


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
        "that the fewest readings are contradicted."
    ),
    criterion=(
        f"All three phases are found in order, the heuristic plateau lies within {PLATEAU_DISTANCE:.0%} of the accuracy "
        f"of always answering with line 1, and the last evaluation is at least {END:.0%}."
    ),
    control_description=(
        f"The same evaluations in {N_SHUFFLES} random orders: three phases may be found in at most "
        f"{MOST_BY_CHANCE:.0%} of them."
    ),
    results=("trajectory",),
    judge=judge_phases,
    draw=defer(f"{__package__}.draw", "draw_phases"),
)

VB2 = Claim(
    id="VB2",
    title="Early lines first, one hop last",
    statement=(
        "In the second phase predictions are the constants of line 1 or 2 whatever is asked, so accuracy depends on the "
        "line that holds the answer; chains of depth 1 are learned more slowly than deeper ones."
    ),
    paper=REPORTED["VB2"],
    measure=(
        "Predictions on programs whose answer is on neither of the first two lines; accuracy by root line; the step at "
        "which each depth reaches 90 % and stays."
    ),
    criterion=(
        f"In the heuristic phase at least {EARLY_FRACTION:.0%} of predictions on misleading programs are a constant of line "
        f"1 or 2, roots on lines 1–2 are answered at least {ROOT_GAP:.0%} better than later ones, and depth 1 reaches "
        "90 % later than every deeper depth."
    ),
    control_description=(
        "The first evaluation shows at most half of that heuristic, and at the end of a systematic run roots on early lines "
        f"are at most {FLAT_GAP:.0%} better."
    ),
    results=("trajectory",),
    judge=judge_sources,
    draw=defer(f"{__package__}.draw", "draw_sources"),
)

CLAIMS = (VB1, VB2)
