"""Verdicts at a glance: a line for each claim, with the numbers that were chosen for it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.studies.framework.claims import Claim, Finding, Quantity
from bindscope.studies.framework.summary import count_seeds, count_verdicts, summarise_claims
from bindscope.studies.framework.verify import Judged, Verification

END = Quantity("end, step 900", 0.9912, 0.987, 0.994, n=4000)
HOPS = Quantity("hops, layer 3", 2, unit="1")
SEEDS = xr.Dataset({"accuracy": ("seed", [0.9, 0.8, 0.7])})


def judged(verdict: str, *quantities: Quantity, **datasets: xr.Dataset) -> Judged:
    claim = Claim("VB1", "It ends", "", "> 99 %", "", "", "", tuple(datasets), lambda found: None, lambda found: None)
    return Judged(claim, Finding(verdict, "", quantities[:1], quantities[1:]), datasets)


def verified(run: str, found: Judged) -> Verification:
    return Verification(run, (found,), {}, {})


def test_a_line_has_the_chosen_numbers_with_interval_and_n_under_their_own_words_or_others() -> None:
    table = summarise_claims(
        [verified("mine", judged("replicates", END, HOPS, seeds=SEEDS))], [], {"VB1": ("end", "hops => at")}
    )
    line = "| VB1 It ends | > 99 % | **replicates**<br>end, step 900: 99.1 % [98.7–99.4], n 4,000<br>at: 2 | 3 |"
    assert table.splitlines()[-1] == line


def test_a_number_that_is_not_there_is_refused() -> None:
    with pytest.raises(BindscopeError, match="VB1: none of its numbers is called 'start …'"):
        summarise_claims([verified("mine", judged("replicates", END, seeds=SEEDS))], [], {"VB1": ("start",)})


def test_what_no_shown_run_can_test_is_taken_from_another_and_counted_so() -> None:
    mine, other = verified("mine", judged("not testable")), verified("other", judged("differs", END, seeds=SEEDS))
    assert "on `other`: **differs**<br>end" in summarise_claims([mine], [other], {"VB1": ("end",)})
    assert "| `mine`; `other` for VB1 | 1 | 0 | 1: VB1 | 0 | 0 |" in count_verdicts([("Study", mine, [other])])
    assert "| `mine` | 1 | 0 | 0 | 0 | 1: VB1 |" in count_verdicts([("Study", mine, [])])


def test_the_sum_takes_the_first_run_of_each_study() -> None:
    runs = [verified("one", judged("differs", END)), verified("two", judged("replicates", END))]
    rows = [("A", runs[0], []), ("A", runs[1], []), ("B", runs[1], [])]
    assert count_verdicts(rows).splitlines()[-1] == "| all | the first of each study | 2 | 1 | 1 | 0 | 0 |"


def test_seeds_are_those_that_were_trained_from_the_least_to_the_most_of_a_variant() -> None:
    status = (("variant", "seed"), np.array([["finished", ""], ["finished", "finished"]], dtype=object))
    assert count_seeds(judged("differs", END)) == "1"
    assert count_seeds(judged("differs", END, swept=xr.Dataset({"status": status}))) == "1 to 2"
