from __future__ import annotations

import numpy as np

from bindscope.measures.stats.shuffles import fraction_of_shuffles


def test_one_order_in_six_of_three_different_numbers_rises():
    rising = np.array([0.1, 0.5, 0.9])

    def rises(order: np.ndarray) -> bool:
        return bool((np.diff(rising[order]) > 0).all())

    assert abs(fraction_of_shuffles(rises, 3, 3000, np.random.default_rng(0)) - 1 / 6) < 0.02


def test_what_depends_on_no_order_is_always_found_and_what_is_never_there_never():
    rng = np.random.default_rng(0)
    assert fraction_of_shuffles(lambda order: sorted(order) == [0, 1, 2, 3], 4, 50, rng) == 1
    assert fraction_of_shuffles(lambda order: len(order) > 4, 4, 50, rng) == 0
