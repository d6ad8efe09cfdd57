"""One sparse dictionary for the residual streams of several checkpoints: which features are there from when on.

A crosscoder (arXiv 2509.17196) reads the activations x_k of one token at all checkpoints k together and writes each of them with a
decoder of its own:

    f = ReLU(Σ_k (x_k − m_k) W_k + b)        x̂_k = m_k + f D_k
    loss = Σ_k |x_k − x̂_k|² + penalty · Σ_i f_i Σ_k |D_k,i|

So a feature means one thing at every checkpoint, and |D_k,i| tells how much of it checkpoint k has. Streams are centred, and scaled so that
their mean squared length is 1 at each checkpoint: a checkpoint with longer vectors does not count for more.

>>> found = fit_crosscoder(streams, CrosscoderSettings(features=128), torch.Generator().manual_seed(0))
>>> find_onsets(found.relative_norms)      # [feature], an index of checkpoints
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError

FIRES = 1e-3  # an activation above this counts; streams have length 1
SHORT = 0.3  # length of a decoder vector at the start
HALF = 0.5  # of its largest norm: a feature that has this much is there
RARE = 0.002  # a feature that fires on a smaller fraction of tokens is called unused
LEAST = 0.2  # of a feature's variance that a label must explain for the feature to be called after it
N_SHUFFLES = 20
UNEXPLAINED, UNUSED = "none", "unused"


@dataclass(frozen=True)
class CrosscoderSettings:
    """How a dictionary is fitted."""

    features: int = 128
    penalty: float = 0.2  # of the L1 norm; in units of a stream's squared length
    updates: int = 1000
    batch_size: int = 512
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        if min(self.features, self.updates, self.batch_size) < 1 or min(self.penalty, self.learning_rate) <= 0:
            raise BindscopeError(
                "a crosscoder needs positive numbers of features, updates and tokens, and a positive penalty."
            )


@dataclass(frozen=True, eq=False)
class Crosscoder:
    """A fitted dictionary."""

    mean: Tensor  # [checkpoint, d_model]
    scale: Tensor  # [checkpoint]
    encoder: Tensor  # [checkpoint, d_model, feature]
    bias: Tensor  # [feature]
    decoder: Tensor  # [checkpoint, feature, d_model]

    @property
    def relative_norms(self) -> Tensor:
        """Length of each feature's decoder as a fraction of its largest over checkpoints, [checkpoint, feature]."""
        norms = self.decoder.norm(dim=-1)
        return norms / norms.amax(0).clamp_min(1e-12)

    def activations(self, streams: Tensor) -> Tensor:
        """[token, feature] of streams [checkpoint, token, d_model]."""
        return self._encode(self._normalise(streams))

    def explained_variance(self, streams: Tensor) -> Tensor:
        """The fraction of the variance of these streams that is written back, [checkpoint]."""
        normalised = self._normalise(streams)
        error = (normalised - self._encode(normalised) @ self.decoder).square().sum((1, 2))
        return 1 - error / (normalised - normalised.mean(1, keepdim=True)).square().sum((1, 2))

    def _normalise(self, streams: Tensor) -> Tensor:
        return (streams - self.mean[:, None]) / self.scale[:, None, None]

    def _encode(self, normalised: Tensor) -> Tensor:
        return torch.relu(_join(normalised) @ self.encoder.flatten(0, 1) + self.bias)


def fit_crosscoder(streams: Tensor, settings: CrosscoderSettings, generator: torch.Generator) -> Crosscoder:
    """A dictionary of ``streams`` [checkpoint, token, d_model]: the same tokens at every checkpoint, in the same order."""
    n_checkpoints, n_tokens, d_model = streams.shape
    mean = streams.mean(1)
    scale = (streams - mean[:, None]).square().sum(-1).mean(1).sqrt().clamp_min(1e-12)
    tokens = _join((streams - mean[:, None]) / scale[:, None, None])  # [token, checkpoint · d_model]
    decoder = torch.randn(settings.features, n_checkpoints, d_model, generator=generator)
    decoder = (SHORT * decoder / decoder.norm(dim=-1, keepdim=True)).requires_grad_()
    encoder = (decoder.detach().flatten(1).T / n_checkpoints**0.5).clone().requires_grad_()
    bias = torch.zeros(settings.features, requires_grad=True)
    optimizer = torch.optim.Adam([encoder, bias, decoder], lr=settings.learning_rate)
    for update in range(settings.updates):
        done = update / settings.updates
        optimizer.param_groups[0]["lr"] = settings.learning_rate * min(1.0, 5 * (1 - done))
        batch = tokens[torch.randint(n_tokens, (settings.batch_size,), generator=generator)]
        active = torch.relu(batch @ encoder + bias)
        error = (batch - active @ decoder.flatten(1)).square().sum(1)
        length = active @ decoder.norm(dim=-1).sum(1)
        loss = (error + settings.penalty * min(1.0, 4 * done) * length).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    by_checkpoint = encoder.detach().unflatten(0, (n_checkpoints, d_model))
    return Crosscoder(mean, scale, by_checkpoint, bias.detach(), decoder.detach().transpose(0, 1).contiguous())


def find_onsets(relative_norms: Tensor) -> Tensor:
    """The checkpoint from which on each feature has half of its largest norm without a break until it has the largest, [feature].

    A feature that was there, went and came back to its largest norm counts from when it came back; one that fades, from when it came.
    """
    index = torch.arange(len(relative_norms))[:, None]
    before_peak = index < relative_norms.argmax(0)
    missing = before_peak & (relative_norms < HALF)
    return torch.where(missing, index + 1, 0).amax(0)


def match_features(decoder: Tensor, other: Tensor) -> Tensor:
    """The highest cosine of each feature of a decoder [checkpoint, feature, d_model] with one of another, over all checkpoints."""
    own, others = (torch.nn.functional.normalize(part.transpose(0, 1).flatten(1), dim=1) for part in (decoder, other))
    return (own @ others.T).amax(1)


@dataclass(frozen=True, eq=False)
class FeatureLabels:
    """What features fire on."""

    kind: np.ndarray  # [feature]: the label that explains it best, "none", or "unused"
    explained: np.ndarray  # [feature, label]: the fraction of its variance that a label explains
    control: np.ndarray  # [feature, label]: the highest of that with shuffled labels


def label_features(
    activations: np.ndarray, labels: Mapping[str, np.ndarray], rng: np.random.Generator, least: float = LEAST
) -> FeatureLabels:
    """Features [token, feature] called after the label [token] that explains them best; tokens with the label −1 are left out.

    A label must explain ``least`` of a feature's variance, and more than any of ``N_SHUFFLES`` orders of the same labels do.
    """
    explained, control = (np.zeros((activations.shape[1], len(labels))) for _ in range(2))
    for index, label in enumerate(labels.values()):
        present = label >= 0
        values, kinds = activations[present], label[present]
        explained[:, index] = explain_variance(values, kinds)
        shuffled = [explain_variance(values, rng.permutation(kinds)) for _ in range(N_SHUFFLES)]
        control[:, index] = np.max(shuffled, axis=0)
    passes = (explained >= least) & (explained > control)
    best = np.where(passes, explained - control, -1.0).argmax(1)
    kind = np.where(passes.any(1), np.array(list(labels))[best], UNEXPLAINED)
    used = (activations > FIRES).mean(0) >= RARE
    return FeatureLabels(np.where(used, kind, UNUSED), explained, control)


def explain_variance(values: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The fraction of the variance of each column of ``values`` [token, feature] that lies between the groups of ``label`` [token]."""
    groups, index = np.unique(label, return_inverse=True)
    member = (index == np.arange(len(groups))[:, None]).astype(values.dtype)  # [group, token]
    centred = values - values.mean(0)
    between = ((member @ centred) ** 2 / member.sum(1, keepdims=True)).sum(0)
    total = (centred**2).sum(0)
    return np.divide(between, total, out=np.zeros_like(total), where=total > 0)


def _join(streams: Tensor) -> Tensor:
    """[token, checkpoint · d_model] of streams [checkpoint, token, d_model]."""
    return streams.transpose(0, 1).flatten(1)
