"""The first gradient step of a transformer that learns to copy (arXiv 2310.09753, symbolic labels), in closed form.

One layer without LayerNorm and MLP reads a symbol x and must answer x. Attention puts a fraction α on x, the heads map its
embedding by W = Σ_h W_V,h W_O,h, and the embeddings also read the answer: logits = λα·(e_x W) Eᵀ. While logits are small
the softmax is flat, and with m training symbols the negative gradient of W is

    G = (λα/m)·Σ_x e_x (e_x − ē)ᵀ        ē: the mean of all embeddings

so it lies in span{e_x e_xᵀ} of the symbols that training shows, as the paper says. The heads' matrices are what is
trained, and to first order one step of size η changes their product by η(G S_O + S_V G), with S_O = Σ W_Oᵀ W_O and
S_V = Σ W_V W_Vᵀ. How much better does a symbol then answer with itself? With embeddings of length 1 in random
directions, and S_O, S_V multiples of the identity on average,

    e_xᵀ Δ e_x ∝ 1/m + (1 − 1/m)/d   for a training symbol      e_tᵀ Δ e_t ∝ 1/d   for one never seen

An unseen symbol gets what any direction gets, tr Δ/d, and of a training symbol's reading it gets the fraction
m/(m + d − 1): training has to show as many symbols as the model is wide. A trained multiple of the identity has the
gradient tr G and acts on all symbols alike.

>>> predict_ratio(n_symbols=64, width=64), predict_ratio(n_symbols=64, width=1024)
(0.503…, 0.058…)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bindscope.errors import BindscopeError

ATTENTION = 0.5  # a fresh model attends alike to the symbol and to CLS
SMALL_SCALE = 1e-3  # a λ at which the softmax is flat to three digits
TORCH_VARIANCE = 1 / 3  # of a linear weight, times its fan-in, as torch draws it


@dataclass(frozen=True, eq=False)
class CopyModel:
    """One layer that copies; the first ``n_symbols`` of its embeddings are those of training."""

    embeddings: np.ndarray  # [symbol, d_model]
    values: np.ndarray  # [head, d_model, d_head]
    outputs: np.ndarray  # [head, d_head, d_model]
    n_symbols: int
    scale: float = SMALL_SCALE

    def __post_init__(self) -> None:
        if not 1 <= self.n_symbols <= len(self.embeddings):
            raise BindscopeError(
                f"n_symbols: must lie between 1 and the {len(self.embeddings)} embeddings, got {self.n_symbols}."
            )

    @classmethod
    def draw(
        cls, width: int, n_symbols: int, n_unseen: int, rng: np.random.Generator, n_heads: int = 4, d_head: int = 32
    ) -> CopyModel:
        """Embeddings of length about 1 and weights as torch draws them.

        >>> CopyModel.draw(width=128, n_symbols=64, n_unseen=64, rng=np.random.default_rng(0))
        """
        if min(width, n_symbols, n_heads, d_head) < 1:
            raise BindscopeError("a model that copies needs a width, symbols, heads and d_head of at least 1 each.")
        inner = n_heads * d_head
        return cls(
            rng.normal(0, width**-0.5, (n_symbols + n_unseen, width)),
            rng.normal(0, (TORCH_VARIANCE / width) ** 0.5, (n_heads, width, d_head)),
            rng.normal(0, (TORCH_VARIANCE / inner) ** 0.5, (n_heads, d_head, width)),
            n_symbols,
        )

    @property
    def width(self) -> int:
        return self.embeddings.shape[1]

    @property
    def logits(self) -> np.ndarray:
        """Of every training symbol, [symbol, answer]."""
        product = np.einsum("hde,hef->df", self.values, self.outputs)
        return self.scale * ATTENTION * (self.embeddings[: self.n_symbols] @ product) @ self.embeddings.T

    @cached_property
    def gradient(self) -> np.ndarray:
        """G, the negative gradient of the mean loss by W, [d_model, d_model]: with the softmax as it is."""
        fractions = np.exp(self.logits - self.logits.max(1, keepdims=True))
        fractions /= fractions.sum(1, keepdims=True)
        seen = self.embeddings[: self.n_symbols]
        missing = seen - fractions @ self.embeddings  # e_x − Σ_v p_v e_v
        return self.scale * ATTENTION / self.n_symbols * seen.T @ missing

    def update(self, identity_gain: float = 0.0) -> np.ndarray:
        """What a small step does to W, over its size: heads' products and, with a gain, their multiples of the identity.

        A multiple is gain·b_h with b_h trained: each head adds gain²·tr G.
        """
        read = np.einsum("hed,hef->df", self.outputs, self.outputs)  # S_O
        write = np.einsum("hde,hfe->df", self.values, self.values)  # S_V
        identity = len(self.values) * identity_gain**2 * np.trace(self.gradient) * np.eye(self.width)
        return self.gradient @ read + write @ self.gradient + identity


def predict_ratio(n_symbols: int, width: int, identity: float = 0.0) -> float:
    """How much of a training symbol's reading an unseen one gets after the first step.

    ``identity`` is the size of the identity's own step, beside that of the heads' products (``identity_strength``).
    """
    seen = 1 / n_symbols + (1 - 1 / n_symbols) / width
    return (1 / width + identity) / (seen + identity)


def identity_strength(width: int, n_heads: int, d_head: int, gain: float) -> float:
    """The step of the identity's multiples over that of the heads' products: H·gain² over the mean of S_O and S_V."""
    return n_heads * gain**2 / _mean_size(width, n_heads * d_head)


def predict_fraction(width: int, inner: int) -> float:
    """Of the squared norm of G S_O + S_V G, the fraction in span{e_x e_xᵀ}, for orthonormal embeddings.

    The products have few dimensions (``inner`` = heads · d_head), so S_O and S_V are noisy multiples of the identity;
    in a wide model most of the step is that noise. For one head alone ``inner`` is d_head.

    >>> predict_fraction(width=64, inner=1024), predict_fraction(width=1024, inner=128)
    (0.94…, 0.13…)
    """
    variances = np.array([TORCH_VARIANCE / inner, TORCH_VARIANCE / width])  # of W_O and W_V
    mean, spread = inner * variances.sum(), inner * (variances**2).sum()
    return float((mean**2 + 2 * spread) / (mean**2 + (width + 1) * spread))


def _mean_size(width: int, inner: int) -> float:
    """S_O + S_V is this many times the identity on average."""
    return TORCH_VARIANCE * (1 + inner / width)
