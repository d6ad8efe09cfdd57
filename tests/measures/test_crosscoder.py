"""A dictionary over checkpoints: known features and their onsets come back, and shuffled labels explain as much as noise does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.measures.crosscoder import (
    LEAST,
    N_SHUFFLES,
    CrosscoderSettings,
    explain_variance,
    find_onsets,
    fit_crosscoder,
    label_features,
    match_features,
)

N_CHECKPOINTS, N_FEATURES, D_MODEL, N_TOKENS, BORN = 4, 24, 24, 4000, 2


def known_streams() -> tuple[Tensor, Tensor, Tensor]:
    """Streams [checkpoint, token, d_model] of a dictionary whose second half appears at ``BORN``; its decoder, what fires."""
    generator = torch.Generator().manual_seed(1)
    decoder = torch.randn(N_CHECKPOINTS, N_FEATURES, D_MODEL, generator=generator)
    decoder /= decoder.norm(dim=-1, keepdim=True)
    decoder[:BORN, N_FEATURES // 2 :] = 0
    fires = torch.rand(N_TOKENS, N_FEATURES, generator=generator) < 0.06
    active = fires * (0.5 + torch.rand(N_TOKENS, N_FEATURES, generator=generator))
    noise = 0.02 * torch.randn(N_CHECKPOINTS, N_TOKENS, D_MODEL, generator=generator)
    return active @ decoder + noise, decoder, active


@pytest.mark.parametrize("penalty", [0.05, 0.2])
def test_a_known_dictionary_and_its_onsets_are_recovered(penalty: float) -> None:
    streams, decoder, active = known_streams()
    streams = 3 * streams + 5  # neither the length nor the mean of a stream matters
    settings = CrosscoderSettings(features=48, penalty=penalty, updates=800, batch_size=256)
    found = fit_crosscoder(streams, settings, torch.Generator().manual_seed(0))
    scaled = decoder / found.scale[:, None, None]
    cosine = match_features(scaled, found.decoder)
    assert (cosine > 0.9).float().mean() > 0.9
    nearest = _nearest(scaled, found.decoder)
    onsets = find_onsets(found.relative_norms[:, nearest])
    born = torch.tensor([0] * (N_FEATURES // 2) + [BORN] * (N_FEATURES // 2))
    assert (onsets == born).float().mean() > 0.9
    assert found.explained_variance(streams).min() > 0.85
    fired = (found.activations(streams) > 1e-3).float().sum(1).mean()
    assert fired < 4 * (active > 0).float().sum(1).mean()


def test_streams_without_onsets_get_none() -> None:
    streams, _, _ = known_streams()
    constant = streams[-1:].repeat(N_CHECKPOINTS, 1, 1)
    settings = CrosscoderSettings(features=48, penalty=0.1, updates=400, batch_size=256)
    found = fit_crosscoder(constant, settings, torch.Generator().manual_seed(0))
    used = (found.activations(constant) > 1e-3).float().mean(0) > 0.01
    assert (find_onsets(found.relative_norms)[used] == 0).float().mean() > 0.95


def test_an_onset_is_where_the_stretch_that_leads_to_the_largest_norm_begins() -> None:
    norms = (
        torch.tensor([[1, 0.9, 0.4], [0.6, 0.1, 1], [0, 0, 1]]),
        torch.tensor([[0.6, 0.1, 0.7, 1], [0.3, 0.4, 0.2, 1]]),
    )
    assert find_onsets(norms[0].T).tolist() == [0, 2, 2]
    assert find_onsets(norms[1].T).tolist() == [2, 3]


def test_a_fitted_dictionary_depends_on_the_generator_alone() -> None:
    streams, _, _ = known_streams()
    settings = CrosscoderSettings(features=8, updates=5)
    first, again, other = (fit_crosscoder(streams, settings, torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(first.decoder, again.decoder)
    assert not torch.equal(first.decoder, other.decoder)
    assert match_features(first.decoder, again.decoder) == pytest.approx(1, abs=1e-5)


def test_variance_between_groups_is_that_of_their_means() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 5, 200)
    values = rng.normal(size=(200, 3)) + label[:, None] * np.array([0, 1, 3])
    means = np.array([values[label == group].mean(0) for group in range(5)])
    np.testing.assert_allclose(explain_variance(values, label), means[label].var(0) / values.var(0))
    np.testing.assert_allclose(explain_variance(np.eye(5)[label], label), 1)


def test_features_are_called_after_what_they_fire_on() -> None:
    rng = np.random.default_rng(0)
    name, token = rng.integers(0, 26, 2000), rng.integers(0, 36, 2000)
    value = np.where(token >= 10, rng.integers(0, 10, 2000), -1)  # known only where it is not the token
    planted = [name == 3, token == 7, (value == 4) & (rng.random(2000) < 0.8), rng.random(2000) < 0.1, name == 99]
    labels = label_features(np.stack(planted, 1).astype(float), {"name": name, "token": token, "value": value}, rng)
    assert labels.kind.tolist() == ["name", "token", "value", "none", "unused"]


def test_labels_that_mean_nothing_explain_no_feature_though_they_are_many() -> None:
    rng = np.random.default_rng(0)
    noise = np.maximum(rng.normal(size=(120, 400)), 0)
    label = rng.integers(0, 40, 120)  # three tokens each, which explain a third of any variance
    found = label_features(noise, {"name": label}, rng)
    assert (found.explained >= LEAST).mean() > 0.9  # the least alone would let them pass
    assert (found.kind == "name").mean() < 3 / (N_SHUFFLES + 1)
    found = label_features(noise + 5 * (label == 3)[:, None], {"name": label}, rng)
    assert (found.kind == "name").mean() > 0.9


def test_a_dictionary_without_features_is_refused() -> None:
    with pytest.raises(BindscopeError, match="positive"):
        CrosscoderSettings(features=0)


def _nearest(decoder: Tensor, other: Tensor) -> Tensor:
    own, others = (torch.nn.functional.normalize(part.transpose(0, 1).flatten(1), dim=1) for part in (decoder, other))
    return (own @ others.T).argmax(1)
