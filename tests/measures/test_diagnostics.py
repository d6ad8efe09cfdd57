"""Plateau diagnostics give the values that are known for made vectors, gradients and losses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bindscope.errors import BindscopeError
from bindscope.measures.diagnostics.announce import announce, base_rate, find_departure
from bindscope.measures.diagnostics.gradients import fisher_trace, hessian_trace, jackknife, signal_to_noise
from bindscope.measures.diagnostics.measure import measure_diagnostics
from bindscope.measures.diagnostics.representations import (
    attention_entropy,
    mean_pairwise_cosine,
    participation_ratio,
    repetition,
)
from bindscope.measures.learning_coefficient.calibration import Polynomial
from bindscope.measures.learning_coefficient.examples import draw_examples
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import PRESETS
from bindscope.tasks.task import Batch, Layout
from bindscope.theory.constructed import construct_dereferencer
from bindscope.training.loss import answer_accuracy
from studies.made_runs import TASK


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_parallel_vectors_have_cosine_one_and_random_ones_none():
    parallel = randn(1, 64) * torch.rand(20, 1, generator=torch.Generator().manual_seed(1))
    assert float(mean_pairwise_cosine(parallel)) == pytest.approx(1, abs=1e-6)
    assert float(mean_pairwise_cosine(randn(200, 4096))) == pytest.approx(0, abs=0.01)
    assert float(mean_pairwise_cosine(torch.tensor([[1.0, 0], [-2.0, 0]]))) == pytest.approx(-1)


def test_the_mean_cosine_is_that_of_all_pairs():
    vectors = randn(7, 5)
    pairs = [torch.cosine_similarity(vectors[i], vectors[j], 0) for i in range(7) for j in range(i)]
    assert float(mean_pairwise_cosine(vectors)) == pytest.approx(float(torch.stack(pairs).mean()), abs=1e-6)


def test_isotropic_vectors_take_part_in_all_directions_and_a_line_in_one():
    assert participation_ratio(randn(50_000, 12)) == pytest.approx(12, rel=0.01)
    assert participation_ratio(randn(500, 1) * randn(1, 12, seed=1) + 3) == pytest.approx(1)
    assert participation_ratio(torch.cat([randn(50_000, 3), torch.zeros(50_000, 9)], 1)) == pytest.approx(3, rel=0.01)


def test_even_attention_has_the_logarithm_of_its_keys_and_one_key_none():
    assert float(attention_entropy(torch.full((8,), 1 / 8))) == pytest.approx(np.log(8))
    assert float(attention_entropy(torch.eye(4)[0])) == 0


def test_answers_that_never_change_repeat_always_and_different_ones_never():
    assert repetition(np.full((5, 4), 7)) == 1
    assert repetition(np.arange(20).reshape(5, 4)) == 0
    assert repetition(np.array([[1], [1], [2]])) == pytest.approx(1 / 3)  # one answer each: examples are compared


def test_signal_to_noise_of_known_noise():
    mean = torch.zeros(400)
    mean[:100] = 0.5  # |μ| = 5, σ = √400 · 0.5 = 10
    draws = [signal_to_noise(mean + 0.5 * randn(16, 400, seed=seed)) for seed in range(20)]
    assert np.mean(draws) == pytest.approx(0.5, rel=0.05)
    none = [signal_to_noise(0.5 * randn(16, 400, seed=seed)) for seed in range(20)]
    assert np.mean(none) < 0.1


def test_the_standard_error_of_the_ratio_is_its_spread_over_samples():
    mean = torch.full((50,), 0.5)
    found = np.array([jackknife(mean + randn(12, 50, seed=seed)) for seed in range(200)])
    assert found[:, 1].mean() == pytest.approx(found[:, 0].std(), rel=0.3)


def test_the_trace_of_a_quadratic_is_exact():
    trace = hessian_trace(Polynomial([2] * 30), 0, 3, torch.Generator().manual_seed(0))
    np.testing.assert_allclose(trace, 30, rtol=1e-8)  # ½ Σ w² has the Hessian 1


def test_hutchinsons_probes_average_to_the_trace_where_directions_mix():
    matrix = randn(6, 6).double()
    matrix = matrix @ matrix.T

    class Quadratic(Polynomial):
        def losses_and_gradients(self, weights, batches):
            return np.zeros(len(weights)), weights @ matrix

    found = hessian_trace(Quadratic([2] * 6), 0, 4000, torch.Generator().manual_seed(0))
    assert found.mean() == pytest.approx(float(matrix.trace()), rel=0.05)


class Softmax(nn.Module):
    """Logits that are a row of a table for each token: a model whose Fisher matrix can be written down."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, tokens, layout=None, at=None):
        return self.table[tokens][:, at]


def test_the_fisher_trace_of_a_softmax_is_one_minus_the_sum_of_squares():
    table = randn(5, 4)
    tokens = np.repeat(np.arange(5), 40)[:, None]
    batch = Batch(tokens, Layout(np.arange(1)), np.array([0]), np.zeros((200, 1), np.int64))
    exact = float((1 - table.softmax(-1).square().sum(-1)).mean())  # E|e_y − p|² = 1 − Σ p²
    draws = [fisher_trace(Softmax(table), batch, torch.Generator().manual_seed(seed)) for seed in range(300)]
    assert np.mean(draws) == pytest.approx(exact, rel=0.1)


def test_a_model_that_dereferences_repeats_no_more_than_the_truth():
    solved = construct_dereferencer(TASK.lines, TASK.max_depth)
    examples = draw_examples(TASK, np.random.default_rng(0), 64, n_batches=4)
    assert all(answer_accuracy(solved, batch) == 1 for batch in examples.batches)
    found = measure_diagnostics(solved, examples)
    assert float(found.repetition) == float(found.repetition_true)


def test_every_diagnostic_has_an_interval_around_it():
    config = PRESETS["assign-add-small"].config
    fresh = Transformer(config.model, torch.Generator().manual_seed(0))
    found = measure_diagnostics(fresh, draw_examples(config.task, np.random.default_rng(0), 32, n_batches=4))
    for name in found.data_vars:
        if f"{name}_low" in found:
            assert bool((found[f"{name}_low"] <= found[name] + 1e-9).all()), name
            assert bool((found[name] <= found[f"{name}_high"] + 1e-9).all()), name
    assert list(found.group.values[:2]) == ["all", "attention"]
    assert all(parameter.grad is None for parameter in fresh.parameters())


def test_a_number_departs_where_it_first_leaves_the_range_of_the_first_half():
    steps = np.arange(0, 1100, 100)
    values = np.array([0, 5, 1, 2, 1, 2, 1, 1.5, 2.5, 9, 9], dtype=float)
    found = find_departure(steps, values, (200, 800))
    assert (found.step, found.low, found.high, found.n_range) == (800, 1, 2, 4)
    early = announce(steps, values, (200, 800), answers_depart=900)
    assert (early.lead, early.announces, early.n_before) == (100, True, 3)
    late = announce(steps, values, (200, 800), answers_depart=700)
    assert (late.lead, late.announces) == (-100, False)
    at_once = announce(steps, values, (200, 800), answers_depart=600)
    assert (at_once.n_before, at_once.announces) == (0, False)
    assert np.isnan(at_once.base_rate)  # nothing could have departed before, so nothing can be told
    never = announce(steps, np.ones(11), (200, 800), answers_depart=900)
    assert (never.lead, never.announces) == (None, False)


def test_a_number_that_drifts_fires_where_nothing_follows_too():
    steps = np.arange(0, 1100, 100)
    drifting, still = steps.astype(float), np.where(steps > 850, 9.0, steps % 200)
    assert announce(steps, drifting, (0, 800), answers_depart=900).fires_early is True
    assert announce(steps, still, (0, 800), answers_depart=900).fires_early is False
    assert announce(steps, drifting, (0, 300), answers_depart=400).fires_early is None  # two steps make no quarter


def test_the_base_rate_is_what_shuffled_values_give():
    rng = np.random.default_rng(0)
    k, m = 5, 4
    fired = 0
    for _ in range(4000):
        values = rng.normal(size=k + m)
        fired += bool(((values[k:] < values[:k].min()) | (values[k:] > values[:k].max())).any())
    assert fired / 4000 == pytest.approx(base_rate(k, m), abs=0.03)
    assert base_rate(k, 0) == 0


def test_a_plateau_with_too_few_steps_has_no_range():
    with pytest.raises(BindscopeError, match="fewer than two steps"):
        find_departure(np.array([0, 100]), np.array([1.0, 2.0]), (50, 400))
