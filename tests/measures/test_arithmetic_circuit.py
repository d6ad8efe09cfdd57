"""The matrices of the routing circuit, entry by entry and on weights written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.measures.arithmetic.circuit import (
    KINDS,
    circuit_matrices,
    contested_fraction,
    identity_margin,
    mean_by_kind,
    position_margin,
    shuffled_identity,
    shuffled_previous,
)
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from measures.written_sums import STRONG, TASK, written_forms

CONFIG = find_preset("assign-add").config


def test_entries_are_the_scores_of_the_embeddings_they_name():
    model = Transformer(CONFIG.model, torch.Generator().manual_seed(1))
    forms = SumForms.of(model, CONFIG.task)
    matrices = circuit_matrices(forms, CONFIG.task)
    assert matrices.qk1.shape == (90, 90)
    vectors = {"17": forms.numbers[17], "=": forms.equals, "PAD": forms.pad, "+": forms.operator}
    vectors |= {"c": forms.variables[2], "position 13": forms.positions[13]}
    for query, left in vectors.items():
        for key, right in vectors.items():
            assert float(matrices.qk1.sel(query=query, key=key)) == pytest.approx(left @ forms.qk1 @ right)
    assert float(matrices.equals_to.sel(embedding="c")) == float(matrices.qk1.sel(query="=", key="c"))
    assert float(matrices.positions.sel(query_position=4, key_position=3)) == float(
        matrices.qk1.sel(query="position 4", key="position 3")
    )
    score = forms.variables[1] @ forms.ov1 @ forms.qk2 @ forms.ov1.T @ forms.variables[3]
    assert float(matrices.variable_identity.sel(query_variable="b", key_variable="d")) == pytest.approx(score)
    counts = {kind: int((matrices.kind == kind).sum()) for kind in KINDS}
    assert counts == {"number": 59, "operator": 1, "equals": 1, "pad": 1, "variable": 12, "position": 16}


def test_allowed_are_the_positions_before_but_for_two_before():
    allowed = circuit_matrices(written_forms(), TASK).allowed.values
    for i in range(16):
        for j in range(16):
            assert allowed[i, j] == (1 <= i <= 11 and j < i and j != i - 2)


def test_margins_of_the_written_circuit():
    matrices = circuit_matrices(written_forms(forgotten=(2,)), TASK)
    assert identity_margin(matrices.variable_identity.values).tolist() == [STRONG, STRONG, -STRONG, STRONG]
    margins = position_margin(matrices.positions.values)
    assert np.flatnonzero(np.isfinite(margins)).tolist() == list(range(3, 12))
    assert margins[3:12].tolist() == [STRONG] * 9
    assert (
        position_margin(circuit_matrices(written_forms(previous=-1), TASK).positions.values)[3:12].tolist() == [-1] * 9
    )


def test_means_by_kind_are_those_of_plain_loops():
    rng = np.random.default_rng(0)
    kinds = np.array([KINDS[index % len(KINDS)] for index in range(20)])
    scores = rng.normal(size=(20, 20))
    means = mean_by_kind(scores, kinds, kinds)
    for a in KINDS:
        for b in KINDS:
            cells = [scores[i, j] for i in range(20) for j in range(20) if kinds[i] == a and kinds[j] == b]
            assert float(means.sel(query_kind=a, key_kind=b)) == pytest.approx(np.mean(cells))


def test_a_random_matching_finds_one_in_as_many_as_there_are():
    rng = np.random.default_rng(0)
    assert shuffled_identity(np.eye(12), rng, 2000).mean() == pytest.approx(1 / 12, abs=0.01)
    assert contested_fraction(circuit_matrices(written_forms(), TASK).positions.values) == 1
    shuffled = shuffled_previous(circuit_matrices(written_forms(), TASK).positions.values, rng, 300)
    assert shuffled.mean() < 0.5
