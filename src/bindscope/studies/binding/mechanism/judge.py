"""VB3 and VB5: how the value travels, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import xarray as xr

from bindscope.measures.binding.algorithm.reading import read_algorithm, summarise_algorithm
from bindscope.measures.phases import Phase, find_transition
from bindscope.studies.binding.learning.judge import lacks_phases, what_hinders
from bindscope.studies.binding.mechanism.measure import CARRIES, chain_names
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
from bindscope.studies.framework.quantities import cell_of, fraction_of
from bindscope.studies.framework.trajectory import phases_of

KNOWN = 0.9  # fraction of pairs answered correctly, both programs, below which there is no mechanism to look for
CARRIED = 0.8  # patching success at a position that the value passes through
ASIDE = 0.1  # the most that a position off the chain may reach
SEEN = "binding-laptop, binding-plain, an earlier training of binding-deep; then all four shipped runs, when hops without heads began to fail VB4, VB3 to judge the order of layers on intervals, and VB4 to count four kinds of distractors"
SINCE = Fixed("2026-11-17", SEEN)
OFF_CHAIN = (
    "right-hand sides off the chain and after the root (the nearest, the nearest constant, the nearest with the same root, "
    "the last)"
)
LEAST_PAIRS = 30  # that have a kind of distractor, for it to be judged
BEFORE = 0.2  # the most that the later circuit may carry in the heuristic phase
AFTER = 0.5


def judge_chain(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB3: the value can be changed at each right-hand side of the chain, then at the query, then at the colon."""
    dataset = results["chain"]
    if float(dataset.attrs["accuracy"]) < KNOWN:
        return unlearned(dataset)
    way = {int(depth): chain_names(int(depth))[1:-1] for depth in dataset.depth.values}  # without the two ends
    best = {
        (depth, position): _best(dataset, depth, position) for depth, positions in way.items() for position in positions
    }
    reached = {cell: reaches(quantity, CARRIED) for cell, quantity in best.items()}
    skipped, unclear = (
        [f"{position} at depth {depth}" for (depth, position), holds in reached.items() if holds is wanted]
        for wanted in (False, None)
    )
    ordered = {depth: in_order(dataset.sel(depth=depth), chain_names(depth)) for depth in way}
    criterion = (
        Condition(
            False if skipped else None if unclear else True,
            f"every position between root and colon carries the value ({CARRIED:.0%} or more) at some layer",
            f"{len(skipped)} of {len(best)} positions between root and colon do not carry the value: {_some(skipped)}",
            f"whether {_some(unclear)} carries the value in {CARRIED:.0%} of pairs cannot be told",
        ),
        Condition(
            all_hold(ordered.values()),
            "where it is carried, later positions carry it at later layers",
            f"at {_depths(ordered, False)} later positions do not come at later layers",
            f"whether at {_depths(ordered, None)} later positions carry it at later layers cannot be told",
        ),
    )
    asides = [_best_of(dataset, str(kind), str(kind)) for kind in dataset.position.values if is_distractor(str(kind))]
    aside = worst_of(asides)
    carried = fraction_of("positions that carry the value", sum(map(bool, reached.values())) / len(best), len(best))
    names = sorted({position for _, position in best}, key=lambda position: (position == "query", position))
    quantities = (carried, *(_best_of(dataset, f"{position}, best layer", position) for position in [*names, "colon"]))
    finding = conclude(criterion, (stays_aside(aside),), quantities, tuple(asides))
    return finding.adding(explain_algorithm(results["algorithm"]))


def explain_algorithm(dataset: xr.Dataset) -> str:
    """How the model follows chains instead, or indeed: by depth, with the hops of the deepest."""
    readings = read_algorithm(dataset)
    return f"How this model follows a chain: {summarise_algorithm(readings)}. At {readings[-1]}."


def judge_emergence(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB5: the circuit of the last checkpoint comes with the systematic phase."""
    dataset, trajectory = results["emergence"], results["trajectory"]
    phases = {phase.name: phase for phase in phases_of(trajectory)}
    if lacking := what_hinders(trajectory) or lacks_phases(trajectory, phases, ("heuristic", "systematic")):
        return lacking
    heuristic, systematic = phases["heuristic"], phases["systematic"]
    before = dataset.sel(step=slice(heuristic.first_step, heuristic.last_step))
    after = dataset.step.values[dataset.step.values >= systematic.first_step]
    if not before.sizes["step"] or not len(after):
        return _lacks_checkpoint(systematic if before.sizes["step"] else heuristic)
    highest = int(before.step.values[before.circuit.values.argmax()])
    early = cell_of(
        f"heuristic phase, highest (step {highest:,})", dataset, "circuit", int(dataset.attrs["n"]), step=highest
    )
    late = cell_of("at the last checkpoint", dataset, "circuit", int(dataset.attrs["n"]), step=dataset.step.values[-1])
    appears = find_transition(dataset.step.values, dataset.circuit.values, late.value / 2)
    window = (heuristic.last_step, int(after[0]))
    criterion = (
        Condition(stays_within(early, BEFORE), "in the heuristic phase the later circuit carries next to nothing",
                  f"already in the heuristic phase the later circuit carries {early.value:.0%}"),
        Condition(reaches(late, AFTER), "at the end it carries the value", f"even at the end it carries {late.value:.0%}"),
        Condition(
            appears is not None and window[0] <= appears <= window[1],
            f"it passes half of its final value at step {appears:,}, between the end of the heuristic phase "
            f"({window[0]:,}) and the first checkpoint saved of the systematic one ({window[1]:,})"
            if appears is not None else "",
            f"it passes half of its final value at {'no step' if appears is None else f'step {appears:,}'}, not between "
            f"{window[0]:,} and {window[1]:,}",
        ),
    )  # fmt: skip
    asides = [_highest(dataset, str(kind)) for kind in dataset.distractors.values]
    appeared = Quantity("half of its final value from step", np.nan if appears is None else appears, unit="step")
    start = Quantity("systematic phase from step", systematic.first_step, unit="step")
    return conclude(criterion, (stays_aside(worst_of(asides)),), (appeared, start, early, late), tuple(asides))


def _lacks_checkpoint(phase: Phase) -> Finding:
    return inconclusive(
        f"no measured checkpoint lies in the {phase.name} phase (steps {phase.first_step:,} to {phase.last_step:,}); train "
        "again and save more often, with a smaller training.checkpoints.every"
    )


def unlearned(dataset: xr.Dataset) -> Finding:
    fraction, n = float(dataset.attrs["accuracy"]), int(dataset.attrs["n_test" if "n_test" in dataset.attrs else "n"])
    return not_testable(
        f"both programs of a pair are answered correctly in {fraction:.0%} of pairs; below {KNOWN:.0%} there is no "
        "mechanism to look for",
        (fraction_of("pairs answered correctly", fraction, n),),
    )


def _best(dataset: xr.Dataset, depth: int, position: str) -> Quantity:
    """Patching success at the layer where it is highest."""
    layer = int(dataset.success.sel(depth=depth, position=position).values.argmax())
    return cell_of(position, dataset.isel(layer=layer), "success", depth=depth, position=position)


def _best_of(dataset: xr.Dataset, label: str, position: str) -> Quantity:
    """The same over all depths that have the position, each at its own best layer."""
    known = [
        depth
        for depth in dataset.depth.values
        if np.isfinite(dataset.success.sel(depth=depth, position=position)).any()
    ]
    cells = [_best(dataset, int(depth), position) for depth in known]
    n = sum(cell.n or 0 for cell in cells)
    return fraction_of(label, sum(cell.value * (cell.n or 0) for cell in cells) / n if n else np.nan, n)


def in_order(cells: xr.Dataset, positions: Sequence[str]) -> bool | None:
    """Whether the layers at which positions start to carry the value never fall along the chain, by whole intervals.

    True where no layers that the intervals allow would fall, False where all would, None otherwise. A position that may not
    carry the value at all cannot be out of order for sure.
    """
    allowed = [_possible_starts(cells.sel(position=position)) for position in positions]
    known = [layers for layers, _ in allowed if layers]
    if all(max(before) <= min(after) for before, after in pairwise(known)):
        return True
    reached = 0  # the earliest layer at which the chain can be when all positions so far came in order
    for layers in (layers for layers, surely in allowed if surely):
        if max(layers) < reached:
            return False
        reached = min(layer for layer in layers if layer >= reached)
    return None


def _possible_starts(cells: xr.Dataset) -> tuple[list[int], bool]:
    """Layers that may be the first to carry the value, up to the first that surely does; and whether there is such a one."""
    may, surely = cells.success_high.values >= CARRIES, cells.success_low.values >= CARRIES
    until = int(surely.argmax()) + 1 if surely.any() else len(surely)
    return np.flatnonzero(may[:until]).tolist(), bool(surely.any())


def _depths(ordered: Mapping[int, bool | None], wanted: bool | None) -> str:
    return f"depth {', '.join(str(depth) for depth, holds in ordered.items() if holds is wanted)}"


def _highest(emergence: xr.Dataset, kind: str) -> Quantity:
    """A distractor at the checkpoint where it is highest; missing where no program has one."""
    curve = emergence.distractor.sel(distractors=kind).values
    step = emergence.step.values[int(np.nan_to_num(curve, nan=-1.0).argmax())]
    return cell_of(f"{kind}, highest", emergence, "distractor", int(emergence.attrs["n"]), step=step, distractors=kind)


def is_distractor(position: str) -> bool:
    return position.startswith("distractor")


def worst_of(asides: list[Quantity]) -> Quantity:
    """One that surely changes too many answers, else the one whose interval reaches highest; kinds too rare to tell are left out."""
    known = [aside for aside in asides if aside.value == aside.value and (aside.n or 0) >= LEAST_PAIRS]
    if not known:
        return Quantity("distractor", np.nan, 0, 1, 0)
    return max(known, key=lambda aside: (stays_within(aside, ASIDE) is False, aside.high or 0))


def stays_aside(aside: Quantity) -> Condition:
    if not aside.n:
        return Condition(
            None, "", "", f"no kind of distractor is in {LEAST_PAIRS} or more pairs, so the control says nothing"
        )
    words = f"off the chain ({aside.label}) {aside.value:.0%} of the answers change"
    return Condition(stays_within(aside, ASIDE), words, f"{words}, too many")


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


VB3 = Claim(
    id="VB3",
    title="The value hops along the chain",
    statement=(
        "In the trained model the value moves through the residual stream from right-hand side to right-hand side of the "
        "queried chain, then to the query's variable, then to the colon."
    ),
    paper=REPORTED["VB3"],
    measure=(
        "Activation patching (interchange intervention): programs that differ only in the constant at the root (from line 3 on); the counterfactual's residual "
        "stream is put into the base run at one layer and one position of the chain; success is that the counterfactual "
        "digit becomes the top answer. At the root before layer 0 and at the colon after the last layer success is "
        "certain, so what is judged are the positions between."
    ),
    criterion=(
        f"At every depth, every right-hand side after the root's and the query reach {CARRIED:.0%} at some layer, and "
        f"the layers at which positions start to carry the value ({CARRIES:.0%}) do not fall along the chain. Judged on "
        f"intervals: a position starts between the first layer that may reach {CARRIES:.0%} and the first that surely does."
    ),
    control_description=(
        f"Patching succeeds in at most {ASIDE:.0%} of pairs at any layer of {OFF_CHAIN}; the worst counts."
    ),
    results=("chain", "algorithm"),
    judge=judge_chain,
    draw=defer(f"{__package__}.draw", "draw_chain"),
    fixed=SINCE,
)

VB5 = Claim(
    id="VB5",
    title="The mechanism comes with phase 3",
    statement="Tracked through the checkpoints, the mechanism that patching shows appears together with the third phase.",
    paper=REPORTED["VB5"],
    measure=(
        "The cells (depth, position beyond the root, layer) that carry the value at the last checkpoint are frozen; the "
        "same patch is made there at every saved checkpoint. An answer that the base program had already is no "
        "success."
    ),
    criterion=(
        f"The frozen circuit succeeds in at most {BEFORE:.0%} of pairs throughout the heuristic phase and in at least "
        f"{AFTER:.0%} at the end, and passes half of its final value between the end of the heuristic phase and the "
        "first checkpoint of the systematic one."
    ),
    control_description=(
        f"The same layers reach at most {ASIDE:.0%} at any checkpoint at {OFF_CHAIN}; the worst counts."
    ),
    fixed=SINCE,
    results=("trajectory", "emergence"),
    judge=judge_emergence,
    draw=defer(f"{__package__}.draw", "draw_emergence"),
)

CLAIMS = (VB3, VB5)
