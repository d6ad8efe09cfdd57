"""A small sample of what ``make fuzz`` tries: hostile input ends in success or in one sentence."""

from __future__ import annotations

import pytest

from fuzz.many import fuzz
from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_is_taken_or_refused_with_a_sentence(name: str) -> None:
    n_cases, _ = fuzz(TARGETS[name], 60, chosen=1)
    assert n_cases >= 50
