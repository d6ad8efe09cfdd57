"""Claims as data: numbers are shown honestly, and no claim replicates when its control fails."""

from __future__ import annotations

from importlib import import_module
from inspect import getclosurevars

import pytest

from bindscope.errors import BindscopeError
from bindscope.studies.framework.claims import Condition, Quantity, conclude, not_testable
from bindscope.studies.framework.verify import find_study


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity("end", 0.9912, 0.987, 0.994, 4000), "end 99.1 % [98.7–99.4]"),
        (Quantity("end", 0.99999), "end 99.9 %"),
        (Quantity("end", 1.0, 0.99, 1.0), "end 100 % [99–100]"),
        (Quantity("from step", 12_500, unit="step"), "from step 12,500"),
        (Quantity("heads", 4, unit="1"), "heads 4"),
        (Quantity("depth 4 at step", float("nan"), unit="step"), "depth 4 at step –"),
    ],
)
def test_a_quantity_shows_its_interval_and_never_a_perfection_that_is_not_there(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text


YES, NO = Condition(True, "it is so", "it is not so"), Condition(False, "it holds", "it does not hold")


@pytest.mark.parametrize(
    ("criterion", "control", "verdict"),
    [
        ((YES,), (YES,), "replicates"),
        ((YES, NO), (YES,), "differs"),
        ((YES,), (NO,), "differs"),
        ((NO,), (NO,), "differs"),
    ],
)
def test_a_claim_replicates_only_when_criterion_and_control_hold(
    criterion: tuple[Condition, ...], control: tuple[Condition, ...], verdict: str
) -> None:
    assert conclude(criterion, control, (), ()).verdict == verdict


def test_what_fails_is_said_first() -> None:
    assert conclude((YES, NO), (YES,), (), ()).reason.startswith("It does not hold.")
    assert conclude((YES,), (NO,), (), ()).reason.startswith(
        "The criterion is met, but its control is not: It does not"
    )


def test_a_reason_is_a_sentence() -> None:
    assert not_testable("the run is too short").reason == "The run is too short."


def test_a_claim_is_found_by_its_id_and_an_unknown_one_refused() -> None:
    study = find_study("binding")
    assert study.find_claim("vb3").id == "VB3"
    with pytest.raises(BindscopeError, match="there is no claim 'VB31'"):
        study.find_claim("VB31")


def test_a_family_without_claims_is_refused_with_those_that_have_some() -> None:
    with pytest.raises(BindscopeError, match="'sorting' yet; there are for: binding, assign_add, templates"):
        find_study("sorting")


def test_the_twelve_claims_are_complete() -> None:
    study = find_study("binding")
    assert [claim.id for claim in study.claims] == [f"VB{number}" for number in range(1, 13)]
    known = {result.name for result in study.results}
    for claim in study.claims:
        words = (claim.title, claim.statement, claim.paper, claim.measure, claim.criterion, claim.control_description)
        assert all(words), claim.id
        assert claim.results
        assert set(claim.results) <= known
        assert callable(claim.judge)
        where = getclosurevars(claim.draw).nonlocals  # drawn by a module that is imported when it is asked for
        assert callable(getattr(import_module(where["module"]), where["name"]))
