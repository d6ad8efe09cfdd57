"""Data-efficiency curves: means with intervals, where they cross a level, and nothing mixed that differs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.intervals import student_interval
from bindscope.measures.stats.crossings import ratio_of
from bindscope.studies.symbols.efficiency.curves import (
    PAPER,
    choose_heads,
    curve_of,
    half_loss_n,
    measure_of,
    models_of,
    task_of,
)
from studies.made_curves import made_curves


def test_a_point_is_the_mean_of_its_seeds_with_their_interval():
    dataset = made_curves({"plain": {64: [0.9, 0.8, 1.0], 16: [1.1, 1.2, math.nan]}})
    curve = curve_of(dataset, "plain")
    assert curve.measure == "loss"
    assert list(curve.n) == [16, 64]  # smallest first, whatever the order of variants
    assert curve.values == pytest.approx([1.15, 0.9])
    assert (curve.points[1].low, curve.points[1].high) == pytest.approx(student_interval([0.9, 0.8, 1.0]))
    assert curve.points[0].seeds == pytest.approx((1.1, 1.2))  # a run that has not ended is left out
    assert curve.at(64) == curve.points[1]
    assert curve.at(32) is None


def test_symbolic_labels_have_errors_and_one_seed_an_interval_over_sequences():
    dataset = made_curves({"both": {64: 0.25}}, preset="templates-print", n_seeds=1)
    (point,) = curve_of(dataset, "both").points
    assert curve_of(dataset, "both").measure == "error"
    assert point.value == pytest.approx(0.25)
    assert 0.21 < point.low < 0.22 < 0.28 < point.high < 0.29  # Wilson, 125 of 500
    (loss,) = curve_of(made_curves({"both": {64: 0.25}}, n_seeds=1), "both").points
    assert loss.low is None  # the spread of losses over sequences was not recorded


def test_half_loss_lies_where_log_n_says():
    dataset = made_curves({"plain": {64: 0.9, 256: 0.1}}, spread=0)
    assert half_loss_n(dataset, "plain").n == pytest.approx(128)  # halfway in log n, for 0.5 is halfway in loss
    assert half_loss_n(dataset, "plain", level=0.7).n == pytest.approx(64 * 4**0.25)
    assert str(half_loss_n(dataset, "plain")) == "128 [128–128]"


def test_half_loss_of_a_known_curve_is_found_and_its_interval_holds_it():
    rng = np.random.default_rng(3)
    sizes = [8, 16, 32, 64, 128, 256]
    truth = 40.0
    held = 0
    for _ in range(20):
        losses = {n: list(1 / (1 + (n / truth) ** 1.5) + rng.normal(0, 0.05, 5)) for n in sizes}
        found = half_loss_n(made_curves({"plain": losses}, n_seeds=5), "plain")
        assert found.n == pytest.approx(truth, rel=0.25)
        held += found.low <= truth * 1.01 and found.high >= truth * 0.99
    assert held >= 15  # percentile intervals of five seeds are a little narrow


def test_what_lies_outside_the_trained_n_is_a_bound_only():
    dataset = made_curves({"plain": {64: 0.9, 512: 0.6}, "both": {8: 0.4, 16: 0.1}, "kq": {8: 0.7, 64: 0.3}})
    plain, both, kq = (half_loss_n(dataset, model) for model in ("plain", "both", "kq"))
    assert (plain.censored, both.censored, kq.censored) == ("above", "below", None)
    assert (plain.bounds, both.bounds) == ((512, np.inf), (0, 8))
    assert (str(plain), str(both)) == ("> 512", "≤ 8")
    value, low, _ = ratio_of(plain, both)
    assert value == low == 512 / 8  # at least
    assert ratio_of(kq, plain)[0] == 0  # nothing is known of how much larger


def test_a_dip_that_does_not_last_is_no_crossing():
    dataset = made_curves({"plain": {16: 0.9, 32: 0.4, 64: 0.8, 128: 0.2}}, spread=0)
    assert half_loss_n(dataset, "plain").n == pytest.approx(64 * 2**0.5)


def test_an_interval_may_reach_beyond_the_trained_n():
    dataset = made_curves({"plain": {64: [0.9, 0.9, 0.9], 512: [0.1, 0.9, 0.3]}})
    found = half_loss_n(dataset, "plain")
    assert found.censored is None
    assert np.isinf(found.high)
    assert str(found).endswith("–> 512]")


def test_heads_are_never_mixed():
    dataset = made_curves({"plain": {64: 0.9, 512: 0.6}, ("plain", 16): {512: 0.4, 1024: 0.2}})
    assert list(curve_of(dataset, "plain").values) == pytest.approx([0.9, 0.6])
    assert list(curve_of(dataset, "plain", PAPER).values) == pytest.approx([0.4, 0.2])
    assert choose_heads(dataset, ["plain"]) == PAPER
    assert choose_heads(dataset, ["plain"], fewest=3) == 4
    with_both = made_curves({"plain": {64: 0.9}, ("plain", 16): {512: 0.4, 1024: 0.2}, "both": {64: 0.1}})
    assert choose_heads(with_both, ["plain", "both"]) == 4
    assert models_of(with_both, PAPER) == ["plain"]


def test_baselines_have_no_heads():
    dataset = made_curves({"one-hot-mlp": {32: 1.0}, ("one-hot-mlp", 16): {8192: 1.1}})
    assert list(curve_of(dataset, "one-hot-mlp").n) == [32, 8192]
    assert models_of(dataset) == models_of(dataset, PAPER) == ["one-hot-mlp"]


def test_variants_that_differ_in_another_label_must_be_told_apart():
    dataset = made_curves({"plain": {64: 0.9}, ("plain", 4): {64: 0.2, 128: 0.1}}, labels={"width": [32.0, 64.0, 64.0]})
    with pytest.raises(BindscopeError, match="2 variants of n = 64; name their width"):
        curve_of(dataset, "plain")
    assert list(curve_of(dataset, "plain", width=64).values) == pytest.approx([0.2, 0.1])
    with pytest.raises(BindscopeError, match="no label 'depth'"):
        curve_of(dataset, "plain", depth=2)


def test_the_task_is_the_one_that_all_runs_change_it_to():
    dataset = made_curves({"plain": {128: 0.9}}, preset="templates-print-real")
    assert task_of(dataset).name == "print-real"
    dataset.attrs["common_changes"] = json.dumps({"task.name": "print-swapped", "training.save_every": 500})
    assert task_of(dataset).name == "print-swapped"  # the paper has no points of it to draw
    dataset.attrs["common_changes"] = json.dumps({"task.name": "copy"})
    assert measure_of(dataset) == "error"


def test_an_unknown_model_and_an_empty_curve_are_said():
    dataset = made_curves({"plain": {64: [math.nan]}, "both": {8: 0.1}}, n_seeds=1)
    with pytest.raises(BindscopeError, match=r"no model 'bth'.*both"):
        curve_of(dataset, "bth")
    with pytest.raises(BindscopeError, match="no run of this curve has ended"):
        half_loss_n(dataset, "plain")
    assert models_of(dataset) == ["both"]
