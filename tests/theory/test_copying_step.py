"""The first step of a model that copies: autograd on one side, the closed form and its predictions on the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.theory.copying import (
    ATTENTION,
    CopyModel,
    identity_strength,
    predict_fraction,
    predict_ratio,
)


def autograd_step(model: CopyModel, gain: float) -> np.ndarray:
    """What a small step down the loss does to Σ_h (W_V W_O + gain·b I), by automatic differentiation."""
    embeddings = torch.from_numpy(model.embeddings)
    values, outputs = (torch.from_numpy(part).requires_grad_() for part in (model.values, model.outputs))
    b = torch.zeros(len(values), dtype=torch.float64, requires_grad=True)
    identity = torch.eye(model.width, dtype=torch.float64)
    product = (values @ outputs).sum(0) + gain * b.sum() * identity
    seen = embeddings[: model.n_symbols]
    logits = model.scale * ATTENTION * (seen @ product) @ embeddings.T
    torch.nn.functional.cross_entropy(logits, torch.arange(model.n_symbols)).backward()
    with torch.no_grad():
        step = -(values.grad @ outputs + values @ outputs.grad).sum(0) - gain * b.grad.sum() * identity
    return step.numpy()


def read(update: np.ndarray, embeddings: np.ndarray) -> float:
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return float(np.einsum("xd,de,xe->x", unit, update, unit).mean())


@pytest.mark.parametrize("scale", [1e-3, 5.0])
@pytest.mark.parametrize("gain", [0.0, 3.0])
def test_the_step_is_that_of_autograd(scale: float, gain: float) -> None:
    model = replace(CopyModel.draw(20, 7, 5, np.random.default_rng(0), n_heads=3, d_head=4), scale=scale)
    expected = autograd_step(model, gain)
    assert np.allclose(model.update(gain), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_small_logits_leave_the_softmax_flat() -> None:
    model = replace(CopyModel.draw(20, 7, 5, np.random.default_rng(0)), scale=1e-6)
    seen = model.embeddings[: model.n_symbols]
    flat = model.scale * ATTENTION / model.n_symbols * seen.T @ (seen - model.embeddings.mean(0))
    assert np.allclose(model.gradient, flat, rtol=1e-4, atol=1e-4 * np.abs(model.gradient).max())


@pytest.mark.parametrize(
    ("width", "n_symbols", "gain"), [(32, 64, 0.0), (256, 64, 0.0), (256, 16, 0.0), (256, 16, 0.1)]
)
def test_an_unseen_symbol_gets_the_predicted_part_of_a_reading(width: int, n_symbols: int, gain: float) -> None:
    seen, unseen = [], []
    for seed in range(12):
        model = CopyModel.draw(width, n_symbols, 64, np.random.default_rng(seed))
        update = model.update(gain)
        seen.append(read(update, model.embeddings[:n_symbols]))
        unseen.append(read(update, model.embeddings[n_symbols:]))
    strength = identity_strength(width, n_heads=4, d_head=32, gain=gain)
    assert np.mean(unseen) / np.mean(seen) == pytest.approx(predict_ratio(n_symbols, width, strength), rel=0.1)


def test_the_part_falls_with_width_and_rises_with_symbols() -> None:
    assert predict_ratio(64, 64) == pytest.approx(64 / 127)
    assert predict_ratio(64, 1024) == pytest.approx(64 / 1087)
    assert predict_ratio(10**6, 64) == pytest.approx(1, abs=1e-4)
    assert predict_ratio(1, 1024) == pytest.approx(1 / 1024)
    assert predict_ratio(64, 1024, identity=10.0) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("width", "n_heads", "d_head"), [(64, 4, 64), (64, 1, 8), (128, 4, 8)])
def test_the_fraction_in_the_span_is_as_predicted_for_orthonormal_embeddings(
    width: int, n_heads: int, d_head: int
) -> None:
    fractions = []
    for seed in range(30):
        drawn = CopyModel.draw(width, 8, 0, np.random.default_rng(seed), n_heads, d_head)
        gradient = np.zeros((width, width))
        gradient[np.arange(8), np.arange(8)] = 1
        read_by = np.einsum("hed,hef->df", drawn.outputs, drawn.outputs)
        written = np.einsum("hde,hfe->df", drawn.values, drawn.values)
        update = gradient @ read_by + written @ gradient
        fractions.append([(np.diag(update)[:8] ** 2).sum(), (update**2).sum()])
    along, whole = np.mean(fractions, axis=0)
    assert along / whole == pytest.approx(predict_fraction(width, n_heads * d_head), rel=0.06)


def test_a_model_without_symbols_is_refused() -> None:
    with pytest.raises(BindscopeError, match="at least 1"):
        CopyModel.draw(8, 0, 4, np.random.default_rng(0))
    drawn = CopyModel.draw(8, 4, 4, np.random.default_rng(0))
    with pytest.raises(BindscopeError, match="n_symbols"):
        replace(drawn, n_symbols=9)
