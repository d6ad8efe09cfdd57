"""One number of a result with its interval, and what it must be: identities on datasets made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import student_interval, wilson_interval
from bindscope.studies.framework.quantities import difference_of, fraction_of
from bindscope.studies.framework.terms import Term, count_cells, judge_term, read_term

FRACTIONS = np.array([[0.2, 0.9, 0.5], [0.1, np.nan, 0.3]])  # [depth, layer]
N = 50


@pytest.fixture
def grid() -> xr.Dataset:
    low, high = wilson_interval(np.nan_to_num(FRACTIONS) * N, N)
    dims = ("depth", "layer")
    gaps = np.isnan(FRACTIONS)
    cells = {
        "success": (dims, FRACTIONS),
        "success_low": (dims, np.where(gaps, np.nan, low)),
        "success_high": (dims, np.where(gaps, np.nan, high)),
        "bare": (dims, FRACTIONS),
        "n_of_depth": ("depth", [N, 2 * N]),
        "margin": ("layer", [-3.0, 0.0, 5.0]),
        "text": ("layer", ["a", "b", "c"]),
    }
    return xr.Dataset(cells, {"depth": [1, 2], "layer": [0, 1, 2]}, {"accuracy": 0.96, "tested": 100})


def term(variable: str = "success", **more: Any) -> Term:
    more.setdefault("at_least", 0.5)
    return Term("grid", variable, **more)


def test_one_cell_has_the_interval_that_is_saved(grid: xr.Dataset) -> None:
    found = read_term(term(select={"depth": 1, "layer": 2}), grid)
    wanted = fraction_of("", 0.5, N)
    assert (found.value, found.low, found.high) == pytest.approx((wanted.value, wanted.low, wanted.high))


def test_that_the_highest_of_several_cells_reaches_something_needs_a_wider_interval(grid: xr.Dataset) -> None:
    alone = read_term(term(select={"depth": 1, "layer": 1}), grid)
    best = read_term(term(select={"depth": 1}, reduce=(("max", "layer"),)), grid)
    assert best.value == 0.9
    assert best.low is not None
    assert alone.low is not None
    assert best.low < alone.low
    assert best.high == alone.high  # … but that it stays below something does not


def test_the_lower_end_of_a_maximum_is_wrong_as_rarely_as_it_says() -> None:
    rng, k, n, p = np.random.default_rng(0), 10, 100, 0.5
    fractions = rng.binomial(n, p, (150, k)) / n
    low, high = wilson_interval(fractions * n, n)
    plain, widened = 0, 0
    for row in range(150):
        cells = {"x": ("cell", fractions[row]), "x_low": ("cell", low[row]), "x_high": ("cell", high[row])}
        found = read_term(Term("r", "x", reduce=(("max", "cell"),), at_least=p), xr.Dataset(cells))
        widened += found.low is not None and found.low > p
        plain += low[row].max() > p
    assert widened / 150 < 0.05 < plain / 150


def test_the_lowest_of_the_highest_is_read_in_the_order_that_is_written(grid: xr.Dataset) -> None:
    found = read_term(term(reduce=(("max", "layer"), ("min", "depth"))), grid)
    other = read_term(term(reduce=(("min", "depth"), ("max", "layer"))), grid)
    assert (found.value, other.value) == (0.3, 0.9)  # at layer 1 only depth 1 was measured


def test_the_ends_of_a_mean_are_the_means_of_the_ends(grid: xr.Dataset) -> None:
    found = read_term(term(select={"depth": 1}, reduce=(("mean", "layer"),)), grid)
    cells = [fraction_of("", value, N) for value in FRACTIONS[0]]
    assert found.low == pytest.approx(np.mean([cell.low for cell in cells]))
    assert found.value == pytest.approx(FRACTIONS[0].mean())


@pytest.mark.parametrize("n", [N, "n_of_depth", "tested"])
def test_a_count_gives_a_fraction_its_interval(grid: xr.Dataset, n: int | str) -> None:
    found = read_term(term("bare", select={"depth": 2, "layer": 0}, n=n), grid)
    wanted = fraction_of("", 0.1, {N: N, "n_of_depth": 2 * N, "tested": 100}[n])
    assert (found.low, found.high, found.n) == pytest.approx((wanted.low, wanted.high, wanted.n))


def test_an_attribute_is_a_number_like_another(grid: xr.Dataset) -> None:
    assert read_term(term("accuracy", n="tested"), grid) == fraction_of("accuracy of grid", 0.96, 100)


def test_a_difference_has_newcombes_interval(grid: xr.Dataset) -> None:
    found = read_term(term(select={"depth": 1, "layer": 1}, minus={"layer": 0}), grid)
    wanted = difference_of("", fraction_of("", 0.9, N), fraction_of("", 0.2, N))
    assert (found.value, found.low, found.high) == pytest.approx((wanted.value, wanted.low, wanted.high))


def test_a_mean_over_examples_has_the_interval_of_their_spread() -> None:
    rng = np.random.default_rng(0)
    right = (rng.random((3, 40)) < 0.7).astype(float)
    logits = rng.normal(size=(3, 40))
    dataset = xr.Dataset({"success": (("layer", "pair"), right), "gap": (("layer", "pair"), logits)})
    found = read_term(term(select={"layer": 1}, reduce=(("mean", "pair"),)), dataset)
    assert (found.low, found.n) == (fraction_of("", right[1].mean(), 40).low, 40)
    found = read_term(term("gap", select={"layer": 1}, reduce=(("mean", "pair"),)), dataset)
    assert (found.low, found.high) == pytest.approx(student_interval(logits[1]))
    assert count_cells(term("gap", reduce=(("mean", "pair"), ("max", "layer"))), dataset) == 3


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [({"at_least": 0.7}, True), ({"at_least": 0.9}, None), ({"at_least": 0.99}, False), ({"at_most": 0.99}, True),
     ({"at_least": 0.5, "at_most": 0.7}, False), ({"at_least": 0.9, "at_most": 0.99}, None)],
)  # fmt: skip
def test_a_term_holds_by_its_whole_interval(grid: xr.Dataset, bounds: dict[str, float], holds: bool | None) -> None:
    asked = Term("grid", "success", {"depth": 1, "layer": 1}, **bounds)
    assert judge_term(asked, grid).condition.holds is holds


def test_without_an_interval_nothing_can_be_told(grid: xr.Dataset) -> None:
    judged = judge_term(term("bare", select={"depth": 1, "layer": 1}), grid)
    assert judged.condition.holds is None
    assert "no interval is saved with 'bare'" in str(judged.condition)
    missing = judge_term(term(select={"depth": 2, "layer": 1}), grid)
    assert missing.condition.holds is None
    assert "nothing was measured" in str(missing.condition)


@pytest.mark.parametrize("bound", [{"at_most": 1.0}, {"at_least": 0.0}])
def test_a_control_that_no_fraction_can_fail_says_nothing(grid: xr.Dataset, bound: dict[str, float]) -> None:
    asked = Term("grid", "success", {"depth": 1, "layer": 1}, **bound)
    judged = judge_term(asked, grid, must_be_able_to_fail=True)
    assert judged.condition.holds is None
    assert "could not have failed" in str(judged.condition)


def test_first_last_lists_and_ranges_are_selected(grid: xr.Dataset) -> None:
    def value(select: dict[str, Any], word: str = "max") -> float:
        return read_term(term("margin", select=select, reduce=(((word, "layer"),))), grid).value

    assert read_term(term("margin", select={"layer": "last"}), grid).value == 5
    assert read_term(term("margin", select={"layer": "first"}), grid).value == -3
    assert value({"layer": [0, 1]}) == 0
    assert value({"layer": {"from": 1}}, "min") == 0
    assert value({"layer": {"to": 1}}, "mean") == -1.5


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (term("sucess"), "there is no 'sucess'. Did you mean 'success'?"),
        (term("text"), "'text' holds text, not numbers."),
        (term(select={"dept": 1}), "does not vary over 'dept'. Did you mean 'depth'?"),
        (term(select={"depth": 3}), "there is no depth 3. Known: 1, 2."),
        (term(select={"depth": "1"}), "there is no depth '1'."),
        (term(select={"depth": True}), "there is no depth True."),
        (term(select={"layer": {"from": 7}}), "no layer lies in that range; there are 0 to 2."),
        (term(select={"depth": 1}), "still varies over layer (3); select one of each, or reduce it"),
        (term(reduce=(("max", "head"),)), "'max over head', but 'success' is left with depth, layer"),
        (term("margin", select={"layer": 0}, n=10), "'margin' is no fraction"),
        (term("bare", select={"depth": 1, "layer": 0}, n="n_of_dept"), "there is no 'n_of_dept'. Did you mean 'n_of_depth'?"),
        (term("margin", select={"layer": 1}, n="n_of_depth"), "'n_of_depth' counts by depth"),
    ],
)  # fmt: skip
def test_what_a_result_does_not_have_is_refused_with_the_nearest(wrong: Term, said: str, grid: xr.Dataset) -> None:
    with pytest.raises(BindscopeError) as problem:
        read_term(wrong, grid)
    assert said in str(problem.value)
