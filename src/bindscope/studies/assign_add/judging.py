"""What the judges of study 2 share: several conditions as one, and differences with their intervals."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

from bindscope.studies.framework.claims import Quantity, Unit


def all_hold(conditions: Iterable[bool | None]) -> bool | None:
    """True where all hold, False where one fails, None where none fails but one cannot be told.

    >>> all_hold([True, None]) is None
    True
    """
    found = list(conditions)
    return False if False in found else None if None in found else True


def difference_of(label: str, one: Quantity, other: Quantity, unit: Unit = "fraction") -> Quantity:
    """``one`` less ``other``, with Newcombe's interval of a difference (1998): the distances to the ends, squared and added.

    Of two fractions of the same sums, which go together, it is wider than it need be.
    """
    value = one.value - other.value
    low = value - hypot(one.value - _or(one.low, one), _or(other.high, other) - other.value)
    high = value + hypot(_or(one.high, one) - one.value, other.value - _or(other.low, other))
    return Quantity(label, value, low, high, one.n, unit)


def lowest_of(quantities: Iterable[Quantity]) -> Quantity:
    """The quantity with the lowest lower end: where it passes, all do."""
    return min(quantities, key=lambda quantity: _or(quantity.low, quantity))


def highest_of(quantities: Iterable[Quantity]) -> Quantity:
    """The quantity with the highest upper end."""
    return max(quantities, key=lambda quantity: _or(quantity.high, quantity))


def _or(end: float | None, quantity: Quantity) -> float:
    return quantity.value if end is None else end
