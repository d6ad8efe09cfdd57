"""Statements about the tables that assign-and-add sequences are drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.tasks.assign_add.choice import WeightedChoice
from bindscope.tasks.assign_add.placement import (
    NUMBER_SOURCES,
    PAD_SOURCE,
    SUM_SOURCES,
    VARIABLE_SOURCES,
    list_placements,
)


def probabilities(choice: WeightedChoice) -> np.ndarray:
    """Read an alias table back: what an item keeps of its equal share, and what others leave to it."""
    left = np.bincount(choice.alias, weights=1 - choice.keep, minlength=len(choice.keep))
    return (choice.keep + left) / len(choice.keep)


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40).filter(lambda weights: sum(weights) > 1e-3))
def test_an_alias_table_gives_every_item_its_weight(weights: list[float]) -> None:
    wanted = np.array(weights)
    assert probabilities(WeightedChoice.of(wanted)) == pytest.approx(wanted / wanted.sum(), abs=1e-9)


def test_items_are_drawn_as_often_as_they_weigh_and_never_at_weight_zero() -> None:
    weights = np.array([3.0, 0.0, 1.0, 6.0])
    drawn = WeightedChoice.of(weights).draw(np.random.default_rng(0), 50_000)
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    assert counts / 50_000 == pytest.approx(weights / 10, abs=0.01)


@pytest.mark.parametrize("most", [4, 5, 6])
def test_placements_hold_each_assignment_once_as_variable_then_number(most: int) -> None:
    placements = list_placements(most)
    assert len({tuple(row) for row in placements.sources.tolist()}) == len(placements.sources)
    for row, count in zip(placements.sources, placements.n_assignments):
        is_variable = (row >= VARIABLE_SOURCES.start) & (row < VARIABLE_SOURCES.stop)
        assignments = row[is_variable] - VARIABLE_SOURCES.start
        assert sorted(assignments) == list(range(count))
        assert (row[np.flatnonzero(is_variable) + 1] - NUMBER_SOURCES.start == assignments).all()
        assert (row[:12] == PAD_SOURCE).sum() == 12 - 2 * count
        assert row[12:].tolist() == list(range(SUM_SOURCES.start, SUM_SOURCES.stop))


def test_the_number_of_assignments_is_uniform_and_two_at_least_where_asked() -> None:
    placements = list_placements(6)
    for choice, wanted in ((placements.at_least_one, [1 / 6] * 6), (placements.at_least_two, [0, *[1 / 5] * 5])):
        fractions = np.bincount(placements.n_assignments, weights=probabilities(choice), minlength=7)[1:]
        assert fractions == pytest.approx(wanted)
    needs_two = np.arange(20_000) % 2 == 0
    drawn = placements.n_assignments[placements.draw(np.random.default_rng(0), needs_two)]
    assert drawn[needs_two].min() == 2
    assert drawn[~needs_two].min() == 1


def test_every_pad_falls_into_each_gap_with_equal_chance() -> None:
    placements = list_placements(6)
    weights = probabilities(placements.at_least_one)
    for count in range(1, 6):
        rows = placements.n_assignments == count
        sources, fraction = placements.sources[rows, :12], weights[rows] / weights[rows].sum()
        n_variables_before = (np.isin(sources, range(VARIABLE_SOURCES.start, VARIABLE_SOURCES.stop))).cumsum(axis=1)
        for gap in range(count + 1):
            pads_in_gap = ((sources == PAD_SOURCE) & (n_variables_before == gap)).sum(axis=1)
            assert (fraction * pads_in_gap).sum() == pytest.approx((12 - 2 * count) / (count + 1))
