"""VB3, VB4 and VB5: how the value travels, which heads carry it, and since when."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.phases import find_transition
from bindscope.studies.binding.mechanism.measure import CARRIES, ENOUGH, chain_names
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, fraction_of
from bindscope.studies.framework.trajectory import phases_of

KNOWN = 0.9  # fraction of pairs answered correctly, both programs, below which there is no mechanism to look for
CARRIED = 0.8  # patching success at a position that the value passes through
ASIDE = 0.1  # the most that a position off the chain may reach
FEW = 0.25  # fraction of all heads
HEAD_MATTERS = 0.1  # of the way from the base's to the counterfactual's answer, by one head at one position
BEFORE = 0.2  # the most that the later circuit may carry in the heuristic phase
AFTER = 0.5


def judge_chain(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB3: the value can be changed at each right-hand side of the chain, then at the query, then at the colon."""
    dataset = results["chain"]
    if float(dataset.attrs["accuracy"]) < KNOWN:
        return _unlearned(dataset)
    way = {int(depth): chain_names(int(depth))[1:-1] for depth in dataset.depth.values}  # without the two ends
    best = {
        (depth, position): _best(dataset, depth, position) for depth, positions in way.items() for position in positions
    }
    skipped = [f"{position} at depth {depth}" for (depth, position), cell in best.items() if cell.value < CARRIED]
    disorder = [depth for depth in way if not _in_order(dataset, depth)]
    criterion = (
        Condition(
            not skipped,
            f"every position between root and colon carries the value ({CARRIED:.0%} or more) at some layer",
            f"{len(skipped)} of {len(best)} positions between root and colon do not carry the value: {_some(skipped)}",
        ),
        Condition(
            not disorder,
            "where it is carried, later positions carry it at later layers",
            f"at depth {', '.join(map(str, disorder))} later positions do not come at later layers",
        ),
    )
    aside = _best_of(dataset, "distractor", "distractor")
    control = (_stays_aside(aside),)
    carried = fraction_of("positions that carry the value", 1 - len(skipped) / len(best), len(best))
    names = sorted({position for _, position in best}, key=lambda position: (position == "query", position))
    quantities = (carried, *(_best_of(dataset, f"{position}, best layer", position) for position in [*names, "colon"]))
    return conclude(criterion, control, quantities, (aside,))


def judge_heads(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB4: few heads carry the value."""
    dataset = results["heads"]
    if float(dataset.attrs["accuracy"]) < KNOWN:
        return _unlearned(dataset)
    n_all, needed = dataset.sizes["layer"] * dataset.sizes["head"], dataset.sizes["rank"]
    n = int(dataset.attrs["n_test"])
    together = cell_of(f"the strongest {_heads(needed)} together", dataset, "joint_success", n, rank=needed)
    by_chance = fraction_of(f"{_heads(needed)} at random, together", float(dataset.random_success.mean()), n)
    aside = fraction_of("the same heads at the distractor", float(dataset.distractor_success), n)
    criterion = (
        Condition(
            together.value >= ENOUGH,
            f"{needed} of {n_all} heads, patched together, change {together.value:.0%} of the answers",
            f"even {_heads(needed)} together change only {together.value:.0%} of the answers",
        ),
        Condition(
            needed <= FEW * n_all,
            f"that is at most a {_fraction(FEW)} of them",
            f"that is more than a {_fraction(FEW)} of them",
        ),
    )
    control = (
        Condition(
            by_chance.value <= together.value / 2,
            f"as many random heads change {by_chance.value:.0%}",
            f"as many random heads change {by_chance.value:.0%} too",
        ),
        _stays_aside(aside),
    )
    names = [f"L{layer}.H{head}" for layer, head in zip(dataset.ranked_layer.values, dataset.ranked_head.values)]
    quantities = (
        Quantity(f"heads needed, of {n_all} ({', '.join(names)})", needed, unit="1"),
        together,
        *(
            _heads_at(dataset, position)
            for position in dataset.position.values
            if position not in ("anywhere", "distractor")
        ),
    )
    return conclude(criterion, control, quantities, (by_chance, aside, _heads_at(dataset, "distractor")))


def judge_emergence(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB5: the circuit of the last checkpoint comes with the systematic phase."""
    dataset = results["emergence"]
    phases = {phase.name: phase for phase in phases_of(results["trajectory"])}
    for name in ("heuristic", "systematic"):
        if name not in phases:
            return not_testable(f"this run has no {name} phase")
    heuristic, systematic = phases["heuristic"], phases["systematic"]
    before = dataset.sel(step=slice(heuristic.first_step, heuristic.last_step))
    after = dataset.step.values[dataset.step.values >= systematic.first_step]
    if not before.sizes["step"] or not len(after):
        return not_testable("no checkpoint was saved inside the heuristic or the systematic phase")
    highest = int(before.step.values[before.circuit.values.argmax()])
    early = cell_of(
        f"heuristic phase, highest (step {highest:,})", dataset, "circuit", int(dataset.attrs["n"]), step=highest
    )
    late = cell_of("at the last checkpoint", dataset, "circuit", int(dataset.attrs["n"]), step=dataset.step.values[-1])
    appears = find_transition(dataset.step.values, dataset.circuit.values, late.value / 2)
    window = (heuristic.last_step, int(after[0]))
    criterion = (
        Condition(early.value <= BEFORE, "in the heuristic phase the later circuit carries next to nothing",
                  f"already in the heuristic phase the later circuit carries {early.value:.0%}"),
        Condition(late.value >= AFTER, "at the end it carries the value", f"even at the end it carries {late.value:.0%}"),
        Condition(
            appears is not None and window[0] <= appears <= window[1],
            f"it passes half of its final value at step {appears:,}, between the end of the heuristic phase "
            f"({window[0]:,}) and the first checkpoint saved of the systematic one ({window[1]:,})"
            if appears is not None else "",
            f"it passes half of its final value at {'no step' if appears is None else f'step {appears:,}'}, not between "
            f"{window[0]:,} and {window[1]:,}",
        ),
    )  # fmt: skip
    worst = dataset.step.values[int(dataset.distractor.values.argmax())]
    aside = cell_of("distractor, highest of all steps", dataset, "distractor", int(dataset.attrs["n"]), step=worst)
    appeared = Quantity("half of its final value from step", np.nan if appears is None else appears, unit="step")
    start = Quantity("systematic phase from step", systematic.first_step, unit="step")
    return conclude(criterion, (_stays_aside(aside),), (appeared, start, early, late), (aside,))


def _unlearned(dataset: xr.Dataset) -> Finding:
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


def _in_order(dataset: xr.Dataset, depth: int) -> bool:
    """Whether the layers at which positions start to carry the value never fall along the chain."""
    success = dataset.success.sel(depth=depth)
    starts = [
        int((success.sel(position=position) >= CARRIES).values.argmax())
        for position in chain_names(depth)
        if bool((success.sel(position=position) >= CARRIES).any())
    ]
    return starts == sorted(starts)


def _heads_at(dataset: xr.Dataset, position: str) -> Quantity:
    n = int((dataset.logit_difference.sel(position=position) >= HEAD_MATTERS).sum())
    return Quantity(f"heads that alone move the answer by {HEAD_MATTERS:.0%} or more, at {position}", n, unit="1")


def _stays_aside(aside: Quantity) -> Condition:
    words = f"a position off the chain changes {aside.value:.0%} of the answers"
    return Condition(aside.value <= ASIDE, words, f"{words}, too many")


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _heads(n: int) -> str:
    return "1 head" if n == 1 else f"{n} heads"


def _fraction(fraction: float) -> str:
    return {0.25: "quarter", 0.5: "half"}.get(fraction, f"{fraction:.0%}")


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
        "the layers at which positions start to carry the value (50 %) do not fall along the chain."
    ),
    control_description=f"The right-hand side of a line off the chain reaches at most {ASIDE:.0%} at any layer.",
    results=("chain",),
    judge=judge_chain,
    draw=defer(f"{__package__}.draw", "draw_chain"),
)

VB4 = Claim(
    id="VB4",
    title="A few heads carry it",
    statement="A few attention heads per hop move the value; which ones they are depends on the seed.",
    paper=REPORTED["VB4"],
    measure=(
        "Patching of each head's whole output everywhere but at the root's own position; the heads with the largest "
        "effect on one half of the pairs are patched together on the other half until nine answers in ten change."
    ),
    criterion=f"At most a {_fraction(FEW)} of all heads together change {ENOUGH:.0%} of the answers.",
    control_description=(
        f"Random sets of as many heads change at most half of that; the same heads at a distractor's position at most "
        f"{ASIDE:.0%}."
    ),
    results=("heads",),
    judge=judge_heads,
    draw=defer(f"{__package__}.draw", "draw_heads"),
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
    control_description=f"At a distractor's position the same layers reach at most {ASIDE:.0%} at any checkpoint.",
    results=("trajectory", "emergence"),
    judge=judge_emergence,
    draw=defer(f"{__package__}.draw", "draw_emergence"),
)

CLAIMS = (VB3, VB4, VB5)
