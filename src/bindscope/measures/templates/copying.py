"""What early training changes in a model that copies: does it work for symbols that training never shows?

A symbol is copied when attention reads it and what the heads write raises its own logit. With Δ the change of
Σ_h W_V,h W_O,h, r_x the direction in which attention reads symbol x and w_x the one in which the answer x is read,
the *reading* of x is r_xᵀ Δ w_x. The paper's argument (arXiv 2310.09753) is that Δ lies in span{r_x w_xᵀ} of training symbols, to
which the r_t w_tᵀ of unseen symbols become orthogonal as the model gets wider. Measured are the readings of training
and unseen symbols, of random directions and of unseen symbols with one another's answers, and the fraction of ‖Δ‖² in the spans.

>>> seen, unseen = (find_directions(model, tokens) for tokens in (trained_symbols, test_symbols))
>>> read_update(product_of(after) - product_of(before), seen[0], unseen[0], np.random.default_rng(0))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bindscope.errors import BindscopeError
from bindscope.model.run import run, to_host
from bindscope.model.transformer import Attention, Transformer

N_RANDOM = 256  # directions of the control
TOLERANCE = 1e-9  # of the largest eigenvalue: what counts as none


@dataclass(frozen=True)
class Directions:
    """Of some symbols: where attention reads each and where its answer is read, unit vectors, [symbol, d_model] both."""

    read: Tensor
    write: Tensor

    def __post_init__(self) -> None:
        if self.read.shape != self.write.shape or self.read.ndim != 2 or not len(self.read):
            raise BindscopeError(
                f"directions: one of each kind for every symbol, got {list(self.read.shape)} and {list(self.write.shape)}."
            )

    def of(self, symbols: Sequence[int] | np.ndarray) -> Directions:
        return Directions(self.read[list(symbols)], self.write[list(symbols)])


@dataclass(frozen=True)
class Readings:
    """What one update does, relative to its norm."""

    seen: float  # mean over training symbols of r_xᵀ Δ w_x / ‖Δ‖
    unseen: float  # … over symbols that training never shows
    random: float  # … with one random direction for both: what any direction gets
    mismatched: float  # … with the answer of another unseen symbol
    seen_fraction: float  # of ‖Δ‖² in span{r_x w_xᵀ} of training symbols
    unseen_fraction: float  # … of as many unseen ones
    chance_fraction: float  # … in a random span of as many dimensions
    identity_fraction: float  # … along the identity

    @property
    def ratio(self) -> float:
        """How much of a training symbol's reading an unseen one gets: 1 is copying whatever the symbol."""
        return self.unseen / self.seen


def read_update(update: Tensor, seen: Directions, unseen: Directions, rng: np.random.Generator) -> Readings:
    """The readings of a change of Σ_h W_V W_O, [d_model, d_model], on training and on unseen symbols."""
    update = update.double()
    size, width = float(update.norm()), len(update)
    if size == 0:
        raise BindscopeError("an update of zero has no direction: train at least one step.")
    random = torch.from_numpy(rng.normal(size=(N_RANDOM, width)))
    random = functional.normalize(random, dim=1)
    n_seen = len(seen.read)
    seen_fraction, rank = span_fraction(update, seen)
    return Readings(
        seen=float(_read(update, seen.read, seen.write).mean()) / size,
        unseen=float(_read(update, unseen.read, unseen.write).mean()) / size,
        random=float(_read(update, random, random).mean()) / size,
        mismatched=float(_read(update, unseen.read, unseen.write.roll(1, 0)).mean()) / size,
        seen_fraction=seen_fraction,
        unseen_fraction=span_fraction(update, Directions(unseen.read[:n_seen], unseen.write[:n_seen]))[0],
        chance_fraction=rank / width**2,
        identity_fraction=float(update.trace()) ** 2 / (width * size**2),
    )


def span_fraction(update: Tensor, directions: Directions) -> tuple[float, int]:
    """The fraction of ‖Δ‖² in span{r_x w_xᵀ}, and how many dimensions that span has.

    The Gram matrix of r_x w_xᵀ is (R Rᵀ)∘(W Wᵀ), so the projection needs no matrix larger than symbols by symbols.
    """
    read, write, update = directions.read.double(), directions.write.double(), update.double()
    gram = (read @ read.T) * (write @ write.T)
    eigenvalues, vectors = torch.linalg.eigh(gram)
    kept = eigenvalues > TOLERANCE * eigenvalues[-1]
    along = vectors[:, kept].T @ _read(update, read, write)
    return float((along**2 / eigenvalues[kept]).sum() / update.square().sum()), int(kept.sum())


@torch.no_grad()
def find_directions(model: Transformer, sequences: np.ndarray, position: int = 0) -> list[Directions]:
    """Of every symbol and for each layer: its vector as attention reads it, and as the answer is read, both centred.

    ``sequences`` [symbol, position] holds one sequence for each symbol, which stands at ``position``. What all symbols share
    (their position, the mean embedding) tells none of them apart and is taken away: give all symbols there are.
    """
    tokens = torch.from_numpy(np.asarray(sequences))
    sites = [f"L{layer}.resid_pre@{position}" for layer in range(model.config.n_layers)]
    trace = run(model, tokens, read=sites)
    write = _centre(to_host(model.W_U).T[tokens[:, position]])
    return [
        Directions(_centre(to_host(block.norm1(trace[site])).flatten(1)), write)
        for block, site in zip(model.layers, sites)
    ]


def product_of(attention: Attention) -> Tensor:
    """W_V W_O of each head with its multiple of the identity, [head, d_model, d_model], on the CPU."""
    identity = torch.eye(attention.config.d_model).to(attention.W_O)
    return to_host((attention.W_V @ attention.W_O + attention.scaled_b[:, None, None] * identity).detach())


def step_of_product(attention: Attention, gradients: Mapping[str, Tensor]) -> Tensor:
    """What a small step down the gradients does to ``product_of``, over its size: [head, d_model, d_model].

    ``gradients`` are those of the attention's parameters by name. To first order W_V W_O changes by dW_V W_O + W_V dW_O.
    """
    config = attention.config
    value = attention.split_rows(gradients["qkv.weight"])[2].transpose(1, 2)
    out = gradients["out.weight"].T.view(config.n_heads, config.d_head, config.d_model)
    step = -(value @ attention.W_O + attention.W_V @ out)
    if "identity_b" in gradients:
        scaled = -config.identity_gain * gradients["identity_b"]
        step = step + scaled[:, None, None] * torch.eye(config.d_model).to(scaled)
    return to_host(step.detach())


def _read(update: Tensor, read: Tensor, write: Tensor) -> Tensor:
    """r_xᵀ Δ w_x of every pair, [symbol]."""
    return ((read.double() @ update) * write.double()).sum(1)


def _centre(vectors: Tensor) -> Tensor:
    return functional.normalize((vectors - vectors.mean(0)).double(), dim=1)
