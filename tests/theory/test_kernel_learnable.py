"""Verdicts about templates, against cases whose answer is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.theory.kernel import KernelSettings
from bindscope.theory.kernel_learnable import learnable

COARSE = KernelSettings(points=128, inner_points=8)
BLIND = KernelSettings(points=64, gamma=0.0, cls=False)  # sequences without a common symbol tell nothing of each other
FLAT = KernelSettings(points=16, beta=0.0, activation="identity")  # every template looks the same


def test_the_tasks_of_the_study_are_learnable():
    for templates in (["AA", "AB"], ["ABA", "ABB"], ["AABB", "ABAB"]):
        report = learnable(templates, [1, -1], COARSE)
        assert report.verdict == "learnable"
        assert 1e-3 < report.smallest.low < report.smallest.value < report.smallest.high < 4e-3
        assert f"{report.smallest.value:.3g}" in report.why


def test_templates_that_share_nothing_cannot_be_learned():
    report = learnable(["AA", "AB"], [1, -1], BLIND)
    assert report.verdict == "not learnable"
    assert "labels have a component" in report.why
    assert report.null_directions.shape == (1, 2)
    assert report.matrix.value @ report.null_directions[0] == pytest.approx(0, abs=1e-14)
    assert report.label_fraction == pytest.approx(abs(report.null_directions[0] @ [1, -1]) / np.sqrt(2))
    assert learnable(["AA", "AB"], None, BLIND).verdict == "not learnable"


def test_labels_outside_the_null_directions_are_still_learned():
    assert learnable(["AA", "AB"], [1, 1], FLAT).verdict == "learnable"
    assert learnable(["AA", "AB"], [1, -1], FLAT).verdict == "not learnable"
    report = learnable(["AAB", "ABA", "ABB"], [1, 1, 1], FLAT)
    assert report.verdict == "learnable"
    assert len(report.null_directions) == 2
    assert report.label_fraction == pytest.approx(0, abs=1e-12)


def test_a_kernel_that_is_nothing_learns_nothing():
    nothing = KernelSettings(points=16, gamma=0.0, cls=False, activation="identity")
    assert learnable(["AA", "AB"], [1, 1], nothing).verdict == "not learnable"


def test_what_the_points_cannot_tell_stays_undecided():
    templates = ["ABCDE", "ABCDA", "ABCDB", "ABCDC", "ABCDD", "ABCCC", "AABCD", "ABBCD"]
    report = learnable(templates, settings=KernelSettings(points=16, inner_points=1))
    assert report.smallest.low < 0 < report.smallest.high
    assert report.verdict == "undecided"
    assert "more points" in report.why
    assert not len(report.null_directions)


def test_templates_that_overlap_are_not_covered():
    report = learnable(["AB", "Ax"], [1, -1], COARSE)
    assert report.verdict == "not covered"
    assert "AB and Ax both match s0 x" in report.why
    assert [(o.first, o.second, o.sequence) for o in report.overlaps] == [("AB", "Ax", ("s0", "x"))]
    assert learnable(["AA", "AB"], [1, -1], COARSE).overlaps == ()


def test_a_report_becomes_labelled_arrays():
    report = learnable(["AA", "AB"], [1, -1], COARSE)
    dataset = report.to_dataset()
    assert dataset.kernel.dims == ("template", "other")
    assert list(dataset.template.values) == ["AA", "AB"]
    assert (dataset.kernel.values == report.matrix.value).all()
    assert (dataset.eigenvalue_low < dataset.eigenvalue_value).all()
    rebuilt = np.einsum("e,ei,ej->ij", dataset.eigenvalue_value, dataset.eigenvector, dataset.eigenvector)
    assert rebuilt == pytest.approx(report.matrix.value)
    assert dataset.attrs["verdict"] == "learnable"
    assert (dataset.label.values == [1, -1]).all()


def test_eight_long_templates_are_judged_at_once():
    templates = ["ABCDABCD", "ABCDDCBA", "ABCDEFGH", "AABBCCDD", "AAAABBBB", "ABABABAB", "ABCABCAB", "ABCDEFFF"]
    start = time.process_time()
    report = learnable(templates)
    assert time.process_time() - start < 1.5  # 0.25 s on a quiet core
    assert report.verdict == "learnable"


@pytest.mark.parametrize(
    ("labels", "sentence"), [([1], "as many labels"), (["A", "B"], "must be numbers"), ([1, float("nan")], "finite")]
)
def test_labels_that_do_not_fit_are_refused(labels, sentence):
    with pytest.raises(BindscopeError, match=sentence):
        learnable(["AA", "AB"], labels, COARSE)
