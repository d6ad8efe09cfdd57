"""No condition of a criterion or a control is decoration: for each there are numbers on which it turns the verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import pytest

from bindscope.studies.framework.claims import Condition, Finding, conclude
from bindscope.studies.framework.verify import all_studies, find_study
from bindscope.studies.symbols.efficiency.judge import AS2
from studies.made_curves import made_gains
from studies.made_learnability import made_kernel, made_learnability
from studies.test_binding_claims import CASES, Datasets
from studies.test_symbols_efficiency import SAME, results_of
from studies.test_symbols_kernel_claim import changed

BINDING = ("VB1", "VB2", "VB3", "VB4", "VB5", "VB6", "VB7", "VB8", "VB9", "VB10", "VB11", "VB12")


def conditions_on(
    judge: Callable[[Datasets], Finding], datasets: Datasets, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[Condition, ...], int]:
    """What a judge asks for on these datasets, criterion first, and how many of it are controls."""
    asked: list[Condition] = []
    n_controls = 0

    def listen(criterion, control, *quantities):
        nonlocal n_controls
        asked.extend((*criterion, *control))
        n_controls = len(control)
        return conclude(criterion, control, *quantities)

    function = judge.func if isinstance(judge, partial) else judge
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[function.__module__], "conclude", listen)
        judge(datasets)
    return tuple(asked), n_controls


def check_every_condition_turns(
    judge: Callable[[Datasets], Finding], cases: list[tuple[Datasets, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over ``cases`` of (datasets, verdict) every condition fails, or cannot be told, somewhere; every control by itself."""
    asked = [(*conditions_on(judge, datasets, monkeypatch), verdict) for datasets, verdict in cases]
    everything, n_controls, _ = max(asked, key=lambda each: len(each[0]))
    for conditions, _, verdict in asked:
        assert (verdict == "replicates") == (len(conditions) == len(everything) and all(c.holds for c in conditions))
    lacking = [{i for i, c in enumerate(conditions) if not c.holds} for conditions, _, _ in asked]
    always = set(range(len(everything))) - set().union(*lacking)
    assert not always, [str(everything[index]) for index in always]
    alone = {next(iter(indices)) for indices in lacking if len(indices) == 1}
    never = set(range(len(everything) - n_controls, len(everything))) - alone
    assert n_controls
    assert not never, [str(everything[index]) for index in never]


@pytest.mark.parametrize("claim", BINDING)
def test_every_condition_of_study_1_can_turn_its_verdict(claim, monkeypatch) -> None:
    cases = [(make(), verdict) for name, make, verdict, _ in CASES if name == claim]
    check_every_condition_turns(find_study("binding").find_claim(claim).judge, cases, monkeypatch)


def test_every_condition_of_as2_can_turn_its_verdict(monkeypatch) -> None:
    cases = [
        (results_of(AS2, SAME), "replicates"),
        (results_of(AS2, SAME | {"both": {64: 0.9, 128: 0.8, 256: 0.3}}), "differs"),
        (results_of(AS2, SAME, train=0.5), "differs"),
        (results_of(AS2, SAME | {"both": {16: 0.7, 32: 0.2, 512: 0.1}}), "differs"),
        (results_of(AS2, SAME, made_gains(best=10.0)), "inconclusive"),
    ]
    check_every_condition_turns(AS2.judge, cases, monkeypatch)


def test_every_condition_of_as13_can_turn_its_verdict(monkeypatch) -> None:
    cases = [
        ({"kernel": kernel, "learnability": trained}, verdict)
        for kernel, trained, verdict in (
            (made_kernel(), made_learnability(), "replicates"),
            (made_kernel(abc_aba=[1.0, 1.0, 0.9, 0.8]), made_learnability(), "differs"),
            (made_kernel(aab_aba_unordered=[1.0, 0.9, 0.6, 0.3]), made_learnability(), "differs"),
            (made_kernel(shuffled=0.3), made_learnability(), "differs"),
            (made_kernel(), changed("abc-aba", 0.8), "inconclusive"),
            (made_kernel(), changed("aab-aba-unordered", 0.6), "differs"),
            (made_kernel(), changed("aab-aba-unordered", 1.0, "train"), "differs"),
        )
    ]
    check_every_condition_turns(find_study("templates").find_claim("AS13").judge, cases, monkeypatch)


def test_every_claim_says_since_when_it_stands_and_what_had_been_seen() -> None:
    unsaid = [claim.id for study in all_studies() for claim in study.claims if claim.fixed is None]
    assert not unsaid
