"""What the patches say: how a chain of each depth is followed, and which hop is made in which layer.

A chain has one hop for each of its references (``rhs 2`` … ``query``). A hop is made by *value* when the value comes to the
reference's own position, and by *pointer* when a later position takes the name over and looks it up itself
(``patches.measure_patches`` counts the ways). With 95 % intervals on these fractions,

    value-forward           every hop by value in most pairs (the interval above 50 %): the paper's mechanism
    pointer-backward        every hop by pointer in most pairs
    meeting in the middle   every hop by one or the other, not all alike: the value comes forward, the pointer goes back
    redundant               some hop by both, or only by several positions at once, in too many pairs for one way to be most
    undecided               some hop's way is not found in most pairs, or the depth is not learned

Arrows list the hops with the layers in which they happen: from where a tenth of the effect has arrived to where half has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from bindscope.intervals import wilson_interval
from bindscope.measures.binding.algorithm.patches import END, LATER, LEARNED, members_of, path_of
from bindscope.tasks.binding import references_of

MOST = 0.5  # fraction of pairs that a way must exceed with its whole interval
SHOWN = 0.25  # the least best success of a patch that an arrow is listed for
ARRIVING, ARRIVED = 0.1, 0.5  # of the best success: since when something is on its way, and from when it is there
Algorithm = Literal["value-forward", "pointer-backward", "meeting in the middle", "redundant", "undecided"]
ALGORITHMS: tuple[Algorithm, ...] = (
    "value-forward", "pointer-backward", "meeting in the middle", "redundant", "undecided",
)  # fmt: skip
What = Literal["value", "pointer"]


@dataclass(frozen=True)
class Arrow:
    """Something goes from one position of the chain to another, or to several at once (``jointly``)."""

    what: What
    source: str
    targets: tuple[str, ...]
    first_layer: int  # in which it begins, and is done
    last_layer: int
    strength: float  # the best success of a patch at the target

    def __str__(self) -> str:
        layers = (
            f"L{self.last_layer}" if self.first_layer == self.last_layer else f"L{self.first_layer}–{self.last_layer}"
        )
        return f"{self.source} → {' + '.join(self.targets)} ({self.what}, {layers})"


@dataclass(frozen=True)
class Hop:
    """How one reference is followed: the fractions of pairs by way, and which way that is in most of them."""

    reference: str
    way: Literal["value", "pointer", "either", "redundant", "unclear"]
    fractions: dict[str, float]
    n: int


@dataclass(frozen=True)
class Reading:
    """The algorithm for chains of one depth."""

    depth: int
    algorithm: Algorithm
    accuracy: float
    hops: tuple[Hop, ...]
    arrows: tuple[Arrow, ...]

    def __str__(self) -> str:
        return f"depth {self.depth}: {self.algorithm}{self._why}"

    @property
    def _why(self) -> str:
        if self.accuracy < LEARNED:
            return f", not learned ({self.accuracy:.0%} of pairs answered correctly)"
        unclear = [hop.reference for hop in self.hops if hop.way == "unclear"]
        if unclear:
            return f", no way of following {' and '.join(unclear)} is found in most pairs"
        return f": {', '.join(map(str, self.arrows))}"


def read_algorithm(dataset: xr.Dataset) -> tuple[Reading, ...]:
    """The algorithm at each depth of what ``measure_patches`` made (one checkpoint of it)."""
    return tuple(_read_depth(dataset, int(depth)) for depth in dataset.depth.values)


def summarise_algorithm(readings: tuple[Reading, ...]) -> str:
    """One sentence for a model.

    >>> summarise_algorithm(read_algorithm(dataset))
    'value-forward at depths 1, 2, 3 and 4'
    """
    found = {name: [reading.depth for reading in readings if reading.algorithm == name] for name in ALGORITHMS}
    return "; ".join(f"{name} at {_depths(depths)}" for name, depths in found.items() if depths)


def _read_depth(dataset: xr.Dataset, depth: int) -> Reading:
    part = dataset.sel(depth=depth)
    accuracy = float(part.accuracy)
    if accuracy < LEARNED:
        return Reading(depth, "undecided", accuracy, (), ())
    hops = tuple(_read_hop(part, reference) for reference in references_of(depth))
    return Reading(depth, name_algorithm([hop.way for hop in hops]), accuracy, hops, find_arrows(part, depth))


def name_algorithm(ways: list[str]) -> Algorithm:
    """The algorithm of a chain whose hops are made in these ways."""
    found = set(ways)
    if "unclear" in found:
        return "undecided"
    if found == {"value"}:
        return "value-forward"
    if found == {"pointer"}:
        return "pointer-backward"
    return "redundant" if "redundant" in found else "meeting in the middle"


def _read_hop(part: xr.Dataset, reference: str) -> Hop:
    cell = part.sel(reference=reference)
    fractions, n = {str(way): float(cell.hop.sel(way=way)) for way in cell.way.values}, int(cell.n_hop)

    def most(*ways: str) -> bool:
        low, _ = wilson_interval(sum(fractions[way] for way in ways) * n, n)
        return bool(low >= MOST)

    if most("value"):
        return Hop(reference, "value", fractions, n)
    if most("pointer"):
        return Hop(reference, "pointer", fractions, n)
    if most("value", "pointer"):
        return Hop(reference, "either", fractions, n)
    made = most("value", "pointer", "both", "jointly")
    return Hop(reference, "redundant" if made else "unclear", fractions, n)


def find_arrows(part: xr.Dataset, depth: int) -> tuple[Arrow, ...]:
    """What moves where in which layers, in the order of their layers; pointers before values."""
    path, arrows = path_of(depth), []
    for reference in references_of(depth):
        held = {reference: 0}
        for position in path[path.index(reference) + 1 :]:
            curve = part.pointer.sel(reference=reference, position=position).values
            if curve.max() >= SHOWN:
                arrows.append(_arrow("pointer", held, path, (position,), curve))
    held, values = {path[0]: 0}, _value_curves(part, depth)
    for targets, curve in sorted(values, key=lambda each: _arrival(each[1], ARRIVED)):
        arrows.append(_arrow("value", held, path, targets, curve))
    return tuple(sorted(arrows, key=lambda arrow: (arrow.last_layer, arrow.what == "value")))


def _value_curves(part: xr.Dataset, depth: int) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Positions that carry the value, alone or, where none of them does in a layer, jointly; success by layer."""
    curves = {position: part.value.sel(position=position).values for position in path_of(depth)[1:]}
    found: list[tuple[tuple[str, ...], np.ndarray]] = [
        ((position,), curve) for position, curve in curves.items() if curve.max() >= SHOWN
    ]
    for name in (LATER, END):
        members = members_of(name, depth)
        if len(members) > 1:
            alone = part.value_high.sel(position=members).max("position").values
            joint = (part.value_low.sel(position=name).values >= MOST) & (alone < MOST)  # [layer]
            before = [m for m in members if curves[m].max() >= SHOWN and _arrival(curves[m], ARRIVED) < joint.argmax()]
            targets = tuple(member for member in members if member not in before)
            if joint.any() and len(targets) > 1:
                found.append((targets, np.where(joint, part.value.sel(position=name).values, 0.0)))
    return found


def _arrow(what: What, held: dict[str, int], path: list[str], targets: tuple[str, ...], curve: np.ndarray) -> Arrow:
    """From the last position before the targets that held it already; ``held`` learns where it is now."""
    first, last = _arrival(curve, ARRIVING), _arrival(curve, ARRIVED)
    before = [
        name for name in path[: path.index(targets[-1])] if name in held and held[name] < last and name not in targets
    ]
    for target in targets:
        held.setdefault(target, last)
    return Arrow(what, before[-1], targets, max(first - 1, 0), max(last - 1, 0), float(curve.max()))


def _arrival(curve: np.ndarray, fraction: float) -> int:
    """The first layer entering which so much of the best success is reached."""
    return int((curve >= fraction * curve.max()).argmax())


def _depths(depths: list[int]) -> str:
    *rest, last = map(str, depths)
    return f"depths {', '.join(rest)} and {last}" if rest else f"depth {last}"
