from __future__ import annotations

import numpy as np
import pytest

from bindscope.tasks.binding import CounterfactualPairs, sample_name_pairs, sample_root_pairs
from subspaces.constructed_space import TASK, Known, build_known

Split = tuple[CounterfactualPairs, CounterfactualPairs]


@pytest.fixture(scope="session")
def known() -> Known:
    return build_known()


@pytest.fixture(scope="session")
def root_pairs() -> Split:
    rng = np.random.default_rng(0)
    return sample_root_pairs(TASK, rng, 300, first_root_line=3), sample_root_pairs(TASK, rng, 80, first_root_line=3)


@pytest.fixture(scope="session")
def name_pairs() -> Split:
    rng = np.random.default_rng(1)
    return sample_name_pairs(TASK, rng, 300), sample_name_pairs(TASK, rng, 80)
