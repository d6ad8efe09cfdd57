"""Perplexity against a loop over tokens, and against models whose perplexity is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.perplexity import estimate_perplexity, score_text, sum_blocks, text_losses
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch, Layout

CONTEXT = 8
CONFIG = ModelConfig(
    d_vocab=23,
    n_positions=CONTEXT,
    n_layers=2,
    n_heads=2,
    d_model=16,
    d_head=8,
    d_mlp=16,
    positions="learned",
    tied=True,
)
TOKENS = np.random.default_rng(0).integers(23, size=45)


@pytest.fixture(scope="module")
def model() -> Transformer:
    made = Transformer(CONFIG, torch.Generator().manual_seed(3))
    with torch.no_grad():
        made.embed.weight.mul_(30)
    return made


def losses_by_loop(model: Transformer, tokens: np.ndarray, stride: int) -> np.ndarray:
    """Each token by itself, from the tokens that its window shows before it."""
    losses = []
    for index in range(1, len(tokens)):
        start = 0
        while index > start + CONTEXT:  # the first window that reaches it
            start += stride
        seen = torch.from_numpy(tokens[start:index])[None]
        with torch.no_grad():
            scores = model(seen)[0, -1].double().log_softmax(-1)
        losses.append(-float(scores[tokens[index]]))
    return np.array(losses)


@pytest.mark.parametrize("stride", [1, 3, 5, CONTEXT])
@pytest.mark.parametrize("n_tokens", [2, 7, 9, 17, 41, 45])
def test_losses_are_those_of_a_loop_over_tokens(model: Transformer, n_tokens: int, stride: int) -> None:
    tokens = TOKENS[:n_tokens]
    losses = text_losses(model, tokens, CONTEXT, stride)
    assert losses == pytest.approx(losses_by_loop(model, tokens, stride), abs=1e-4)


def test_how_many_windows_go_together_changes_nothing(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    together = text_losses(model, TOKENS, CONTEXT)
    monkeypatch.setattr("bindscope.measures.perplexity.LOGITS_AT_ONCE", 1)
    assert text_losses(model, TOKENS, CONTEXT) == pytest.approx(together, abs=1e-5)


def test_a_model_that_knows_nothing_has_the_vocabulary_s_size_as_perplexity() -> None:
    flat = Transformer(CONFIG)
    with torch.no_grad():
        flat.embed.weight.zero_()
    losses = text_losses(flat, TOKENS, CONTEXT)
    estimate = estimate_perplexity(*sum_blocks(losses, CONTEXT))
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((23, 23, 23), rel=1e-5)
    rows = TOKENS[np.arange(4)[:, None] * CONTEXT + np.arange(CONTEXT + 1)]
    batch = Batch(rows[:, :-1], Layout(np.arange(CONTEXT)), np.arange(CONTEXT), rows[:, 1:])
    assert score_text(flat, batch)["perplexity"] == pytest.approx(23, rel=1e-5)


def test_scores_of_windows_are_those_of_the_text_they_cut(model: Transformer) -> None:
    rows = TOKENS[np.arange(5)[:, None] * CONTEXT + np.arange(CONTEXT + 1)]
    batch = Batch(rows[:, :-1], Layout(np.arange(CONTEXT)), np.arange(CONTEXT), rows[:, 1:])
    scores = score_text(model, batch)
    losses = text_losses(model, TOKENS[:41], CONTEXT)
    assert scores["loss"] == pytest.approx(losses.mean(), abs=1e-5)
    assert scores["perplexity"] == pytest.approx(np.exp(losses.mean()), rel=1e-4)
    assert scores["n"] == 40
    with torch.no_grad():
        right = model(torch.from_numpy(rows[:, :-1])).argmax(-1).numpy() == rows[:, 1:]
    assert scores["accuracy"] == pytest.approx(right.mean(), abs=1e-6)
    assert scores["chance"] == pytest.approx(np.bincount(rows[:, 1:].ravel()).max() / 40, abs=1e-6)


def test_blocks_sum_to_the_whole() -> None:
    losses = np.random.default_rng(1).random(45)
    sums, counts = sum_blocks(losses, 10)
    assert counts.tolist() == [10, 10, 10, 10, 5]
    assert sums == pytest.approx([losses[start : start + 10].sum() for start in range(0, 45, 10)])


def test_the_interval_covers_the_true_perplexity_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(2), 0
    for _ in range(200):
        sums = rng.normal(3.0, 0.5, size=60) * 8
        estimate = estimate_perplexity(sums, np.full(60, 8), n_resamples=300)
        covered += estimate.low <= np.exp(3.0) <= estimate.high
    assert 0.88 <= covered / 200 <= 0.99


def test_bad_strides_and_texts_are_refused(model: Transformer) -> None:
    with pytest.raises(BindscopeError, match="stride: must lie between 1 and the context of 8 tokens, got 9"):
        text_losses(model, TOKENS, CONTEXT, 9)
    with pytest.raises(BindscopeError, match="fewer than two tokens"):
        text_losses(model, TOKENS[:1], CONTEXT)
