"""The subspace of names must not move values, nor the other way round: held to the constructed model's own subspaces."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.studies.binding.representation.measure import swap_across
from bindscope.subspaces import Search, Subspace
from bindscope.tasks.binding import sample_name_pairs, sample_root_pairs
from subspaces.constructed_space import TASK, VALUE_AT_QUERY, Known, build_known


@pytest.fixture(scope="module")
def known() -> Known:
    return build_known()


def cross(known: Known, values: Subspace, names: Subspace) -> list[float]:
    """Success of each on the other's pairs, where the constructed model has put the value at the query."""
    rng = np.random.default_rng(0)
    search = Search(of="values", layer=VALUE_AT_QUERY, position="query")
    places = {
        "values": (search, sample_root_pairs(TASK, rng, 80, first_root_line=3), values),
        "names": (search, sample_name_pairs(TASK, rng, 80), names),
    }
    parts = list(swap_across(known.model, places, rng))
    assert [part.condition.item() for part in parts] == ["other subspace"] * 2
    return [float(part.success_fraction.item()) for part in parts]


def test_the_constructed_subspaces_are_apart_for_values(known: Known) -> None:
    assert cross(known, known.value, known.name)[0] == 0


def test_a_subspace_that_holds_both_is_found_out(known: Known) -> None:
    assert cross(known, known.value, known.value)[0] == 1  # what stands for names moves values as their own does
