"""What the judges of study 2 share: the quantity of several that decides."""

from __future__ import annotations

from collections.abc import Iterable

from bindscope.studies.framework.claims import Quantity, ends_of


def lowest_of(quantities: Iterable[Quantity]) -> Quantity:
    """The quantity with the lowest lower end: where it passes, all do."""
    return min(quantities, key=lambda quantity: ends_of(quantity)[0])


def highest_of(quantities: Iterable[Quantity]) -> Quantity:
    """The quantity with the highest upper end."""
    return max(quantities, key=lambda quantity: ends_of(quantity)[1])
