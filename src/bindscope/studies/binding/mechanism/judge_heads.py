"""VB4: few heads carry the value, few for each hop, and those of later hops in later layers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.binding.hops import MATTERS
from bindscope.studies.binding.mechanism.judge import ASIDE, KNOWN, OFF_CHAIN, SINCE, stays_aside, unlearned, worst_of
from bindscope.studies.binding.mechanism.measure import ENOUGH
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Quantity,
    all_hold,
    conclude,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, fraction_of

FEW = 0.25  # fraction of all heads
LEAST_HOPS = 2  # with heads of their own, for an order of hops to be seen


def judge_heads(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB4: few heads carry the value, a few for each hop, in the order of the hops."""
    dataset, hops = results["heads"], results["hops"]
    for measured in (dataset, hops):
        if float(measured.attrs["accuracy"]) < KNOWN:
            return unlearned(measured)
    n_all, needed = dataset.sizes["layer"] * dataset.sizes["head"], dataset.sizes["rank"]
    n = int(dataset.attrs["n_test"])
    together = cell_of(f"the strongest {_heads(needed)} together", dataset, "joint_success", n, rank=needed)
    by_chance = fraction_of(f"{_heads(needed)} at random, together", float(dataset.random_success.mean()), n)
    asides = [_aside(dataset, str(kind)) for kind in dataset.distractors.values]
    counts = [_count_heads(hops, str(position)) for position in hops.position.values]
    criterion = (
        Condition(
            reaches(together, ENOUGH),
            f"{needed} of {n_all} heads, patched together, change {together.value:.0%} of the answers",
            f"even {_heads(needed)} together change only {together.value:.0%} of the answers",
        ),
        Condition(
            needed <= FEW * n_all,
            f"that is at most a {_fraction(FEW)} of them",
            f"that is more than a {_fraction(FEW)} of them",
        ),
        _few_per_hop(counts, n_all),
        _in_order(hops),
    )
    control = (
        Condition(
            stays_within(by_chance, together.value / 2),
            f"as many random heads change {by_chance.value:.0%}",
            f"as many random heads change {by_chance.value:.0%} too",
        ),
        stays_aside(worst_of(asides)),
    )
    names = [f"L{layer}.H{head}" for layer, head in zip(dataset.ranked_layer.values, dataset.ranked_head.values)]
    layers = [
        cell_of(f"mean layer of the heads at {position}", hops, "hop_layer", unit="1", position=position)
        for position in _hops_with_heads(hops)
    ]
    more = cell_of(
        f"drop at depth {int(hops.depth[-1])} less that at depth 1", hops, "more", int(hops.attrs["n_programs"])
    )
    drops = [cell_of(f"drop by ablating a head, depth {int(d)}", hops, "drop", depth=d) for d in hops.depth.values]
    quantities = (
        Quantity(f"heads needed, of {n_all} ({', '.join(names)})", needed, unit="1"), together, *counts, *layers, *drops, more,
    )  # fmt: skip
    return conclude(criterion, control, quantities, (by_chance, *asides)).adding(_tell_depths(more))


def _aside(dataset: xr.Dataset, kind: str) -> Quantity:
    """What the same heads change at one kind of distractor, of the pairs that have it."""
    cell = dataset.sel(distractors=kind)
    return fraction_of(f"the same heads at {kind}", float(cell.distractor_success), int(cell.n_distractor))


def _count_heads(hops: xr.Dataset, position: str) -> Quantity:
    """How many heads move the answer at this position, by themselves: surely, and possibly."""
    cell = hops.sel(position=position)
    number, surely, possibly = (int((cell[f"effect{end}"] >= MATTERS).sum()) for end in ("", "_low", "_high"))
    label = f"heads that alone move the answer by {MATTERS:.0%} or more, at {position}"
    return Quantity(label, number, surely, possibly, int(hops.attrs["n"]), unit="1")


def _hops_with_heads(hops: xr.Dataset) -> list[str]:
    return [
        str(position) for position in hops.position.values if np.isfinite(float(hops.hop_layer.sel(position=position)))
    ]


def _few_per_hop(counts: list[Quantity], n_all: int) -> Condition:
    """At each hop at least one head, and at most a quarter of all heads."""
    few = all_hold(stays_within(count, FEW * n_all) for count in counts)
    without = {wanted: [_at(count) for count in counts if reaches(count, 1) is wanted] for wanted in (False, None)}
    most = max(int(count.value) for count in counts)
    if few is False:
        no = f"a hop of the deepest chains is made by {_heads(most)}"
    else:
        no = f"no head by itself moves the answer at {', '.join(without[False])}"
    return Condition(
        all_hold([few, *(reaches(count, 1) for count in counts)]),
        f"each hop of the deepest chains is made by one to {_heads(most)}",
        no,
        f"a hop of the deepest chains may be made by no head ({', '.join(without[None])}) or by too many",
    )


def _at(count: Quantity) -> str:
    """The position whose heads were counted."""
    return count.label.rpartition("at ")[2]


def _in_order(hops: xr.Dataset) -> Condition:
    """Whether the heads of later hops sit in later layers, hop after hop."""
    made = _hops_with_heads(hops)
    later = {
        position: cell_of(position, hops, "later", unit="1", position=position) for position in made[1:]
    }  # how many layers later than the hop before
    backward = [position for position, by in later.items() if (by.high or 0) <= 0]
    unclear = [position for position, by in later.items() if (by.low or 0) <= 0 < (by.high or 0)]
    layers = ", ".join(f"{position} {float(hops.hop_layer.sel(position=position)):.1f}" for position in made)
    if len(made) < LEAST_HOPS:
        only = f"only {made[0]} has" if made else "none has"
        return Condition(False, "", f"of the hops of the deepest chains {only} heads of its own")
    return Condition(
        False if backward else None if unclear else True,
        f"heads of later hops sit in later layers ({layers})",
        f"the heads at {', '.join(backward)} sit no later than those of the hop before ({layers})",
        f"whether the heads at {', '.join(unclear)} sit later than those of the hop before cannot be told ({layers})",
    )


def _tell_depths(more: Quantity) -> str:
    """Whether deeper chains suffer more from ablation, in one sentence."""
    if (more.low or 0) > 0:
        return f"Deeper chains suffer more when a head is ablated, by {more.number} of the answers."
    if (more.high or 0) < 0:
        return f"Deeper chains suffer less when a head is ablated, by {more.number} of the answers."
    return f"Whether deeper chains suffer more when a head is ablated cannot be told ({more.number})."


def _heads(n: int) -> str:
    return "1 head" if n == 1 else f"{n} heads"


def _fraction(fraction: float) -> str:
    return {0.25: "quarter", 0.5: "half"}.get(fraction, f"{fraction:.0%}")


VB4 = Claim(
    id="VB4",
    title="A few heads carry it",
    statement="A few attention heads per hop move the value, those of later hops in later layers; which ones depends on the seed.",
    paper=REPORTED["VB4"],
    measure=(
        "Patching of each head's whole output everywhere but at the root's own position; the heads with the largest "
        "effect on one half of the pairs are patched together on the other half until the interval of changed answers lies "
        "above nine in ten. At each position of the deepest chains alone, heads that move the answer by a tenth of the way "
        "make that hop; the hop's layer is their mean. Beside it each head is mean-ablated, by depth."
    ),
    criterion=(
        f"At most a {_fraction(FEW)} of all heads together change {ENOUGH:.0%} of the answers; each hop of the deepest "
        f"chains is made by at least one head and at most a {_fraction(FEW)} of them; and each hop's mean layer is later than that of the hop "
        "before. Judged on intervals."
    ),
    control_description=(
        f"Random sets of as many heads change at most half of that; the same heads at {OFF_CHAIN} at most {ASIDE:.0%}, the "
        "worst counting."
    ),
    results=("heads", "hops"),
    judge=judge_heads,
    draw=defer(f"{__package__}.draw", "draw_heads"),
    fixed=SINCE,
)

CLAIMS = (VB4,)
