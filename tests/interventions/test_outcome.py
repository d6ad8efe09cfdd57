"""What is said about changed answers follows from the logits, and its intervals cover what they should."""

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.metrics import METRICS
from bindscope.interventions.outcome import label_outcomes, measure_outcomes, summarise_outcomes
from bindscope.tasks.binding import BindingTask, sample_root_pairs


def example_contrast(n_pairs: int = 6) -> tuple[Contrast, torch.Tensor, torch.Tensor]:
    contrast = contrast_pairs(sample_root_pairs(BindingTask(lines=4, max_depth=2), np.random.default_rng(1), n_pairs))
    generator = torch.Generator().manual_seed(0)
    base, source = torch.randn(2, n_pairs, 40, generator=generator)
    return contrast, base, source


def test_putting_nothing_in_moves_nothing_and_putting_all_in_gives_the_source():
    contrast, base, source = example_contrast()
    nothing = measure_outcomes(base, base, source, contrast)
    everything = measure_outcomes(source, base, source, contrast)
    for metric in ("logit_difference", "new_logit"):
        assert nothing[metric] == pytest.approx(0, abs=1e-5)
        assert everything[metric] == pytest.approx(1, abs=1e-5)
    assert nothing["kl"] == pytest.approx(0, abs=1e-9)
    assert (everything["kl"] > 0).all()


def test_success_counts_only_the_source_answer_on_top():
    contrast, base, source = example_contrast()
    pairs = torch.arange(len(contrast))
    logits = torch.zeros(3, len(contrast), 40)
    logits[0, pairs, contrast.source_answers] = 5.0
    logits[1, pairs, contrast.base_answers] = 5.0
    logits[2, :, 39] = 5.0
    outcomes = measure_outcomes(logits, base, source, contrast)
    assert outcomes["success"].mean(1).tolist() == [1, 0, 0]
    assert outcomes["kept"].mean(1).tolist() == [0, 1, 0]


def test_the_divergence_is_torchs():
    contrast, base, source = example_contrast()
    expected = torch.nn.functional.kl_div(
        source.log_softmax(-1), base.log_softmax(-1), reduction="none", log_target=True
    )
    measured = measure_outcomes(source, base, source, contrast)["kl"]
    assert measured == pytest.approx(expected.sum(-1).numpy(), rel=1e-5)


def test_a_range_near_nothing_counts_as_missing():
    contrast, base, _ = example_contrast()
    outcomes = measure_outcomes(base + 1, base, base, contrast)
    assert np.isnan(outcomes["logit_difference"]).all()
    summary = summarise_outcomes(label_outcomes(outcomes, (), {}), np.random.default_rng(0))
    assert np.isnan(summary.logit_difference)
    assert np.isfinite(summary.kl)


def test_both_directions_hold_the_same_programs():
    pairs = sample_root_pairs(BindingTask(lines=4, max_depth=2), np.random.default_rng(1), 6)
    noising, denoising = contrast_pairs(pairs), contrast_pairs(pairs, "denoising")
    assert torch.equal(noising.base, denoising.source)
    assert torch.equal(noising.source_answers, denoising.base_answers)
    assert noising.first_difference.tolist() == pairs.chain_positions[:, 0].tolist()


def test_a_bootstrap_interval_of_a_fraction_covers_it_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    samples = rng.random((200, 80)) < 0.3  # [repetition, pair]
    outcomes = {"success": samples.astype(np.float32)}
    summary = summarise_outcomes(label_outcomes(outcomes, ("cell",), {}), rng)
    covered = ((summary.success_low <= 0.3) & (summary.success_high >= 0.3)).mean()
    assert 0.88 <= float(covered) <= 0.99
    assert summary.success.values == pytest.approx(samples.mean(1))
    assert (summary.n == 80).all()
    assert set(METRICS) >= {"success"}


def test_contrasts_of_equal_or_unequal_rows_are_refused():
    rows, answers = torch.arange(6).view(2, 3), torch.tensor([1, 2])
    with pytest.raises(BindscopeError, match="pair 0 has the same program twice"):
        Contrast(rows, rows.clone(), answers, answers, 2)
    with pytest.raises(BindscopeError, match="equal length"):
        Contrast(rows, torch.zeros(2, 5, dtype=torch.long), answers, answers, 2)
