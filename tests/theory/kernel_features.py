"""The kernel's own random model at finite width: its features' Gram matrix tends to K_trans like 1/√width.

A head h looks with softmax(βu_h), u_h = Xw_h + γp_h, and hands each neuron j a random combination ω_jh of what it sees:
the tokens' one-hot vectors beside γ times those of their positions. Neuron j gets a_j = Σ_h ⟨ω_jh, seen_h⟩/√H and answers
φ(a_j). Width m means m heads and m neurons. Given the heads, the a_j are independent Gaussians over sequences with
covariance Σ_h ⟨seen_h(X), seen_h(Y)⟩/H, and are drawn as such.

>>> features = random_features([("a", "a"), ("a", "b")], KernelSettings(), width=1000, rng=rng)
>>> features @ features.T / 1000  # about sequence_kernel of the pairs
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import Template
from bindscope.theory.kernel import KernelSettings, String, canonical_pair, parse_templates, sequence_kernel

if TYPE_CHECKING:
    import xarray as xr

MOST_WIDTH = 2**17
HEADS_AT_ONCE = 4096


def random_features(
    sequences: Sequence[String], settings: KernelSettings, width: int, rng: np.random.Generator
) -> np.ndarray:
    """φ(a) of every neuron, [sequence, neuron], for sequences of equal length."""
    seen = sample_attention(sequences, settings, width, rng)
    values, vectors = np.linalg.eigh(seen)
    spread = vectors * np.sqrt(np.maximum(values, 0))
    return settings.phi.function(spread @ rng.standard_normal((len(sequences), width)))


def sample_attention(
    sequences: Sequence[String], settings: KernelSettings, n_heads: int, rng: np.random.Generator
) -> np.ndarray:
    """[sequence, sequence]: the mean over random heads of ⟨seen(X), seen(Y)⟩."""
    if not 1 <= n_heads <= MOST_WIDTH:
        raise BindscopeError(f"width: must lie in 1..{MOST_WIDTH}, got {n_heads}.")
    number: dict[str, int] = {}
    for sequence in sequences:
        canonical_pair(sequences[0], sequence)  # refuses different lengths
    ends = (" end",) if settings.cls else ()
    rows = np.array([[number.setdefault(token, len(number)) for token in (*sequence, *ends)] for sequence in sequences])
    one_hot = np.eye(len(number))[rows]  # [sequence, position, symbol]
    total = np.zeros((len(sequences), len(sequences)))
    for start in range(0, n_heads, HEADS_AT_ONCE):
        n = min(HEADS_AT_ONCE, n_heads - start)
        symbols, positions = rng.standard_normal((n, len(number))), rng.standard_normal((n, rows.shape[1]))
        logits = settings.beta * (
            symbols[:, rows] + settings.gamma * positions[:, None, :]
        )  # [head, sequence, position]
        attention = np.exp(logits - logits.max(2, keepdims=True))
        attention /= attention.sum(2, keepdims=True)
        seen = np.concatenate([np.einsum("hsp,spc->hsc", attention, one_hot), settings.gamma * attention], axis=2)
        total += np.tensordot(seen, seen, axes=([0, 2], [0, 2]))
    return total / n_heads


def features_converge(
    templates: Sequence[str | Template],
    settings: KernelSettings | None = None,
    widths: Sequence[int] = (64, 256, 1024, 4096, 16384),
    n_seeds: int = 8,
) -> xr.Dataset:
    """Gram matrices of random features against K_trans, over widths and seeds.

    Two sequences of every template are compared, with fresh symbols. ``kernel`` (sequence, other) with ``kernel_error``,
    ``features`` (width, seed, sequence, other) and ``root_mean_square`` (width, seed) of their difference.
    """
    import xarray as xr

    settings = settings or KernelSettings()
    sequences = fresh_sequences(parse_templates(templates))
    pairs = list(combinations_with_replacement(range(len(sequences)), 2))
    estimate = sequence_kernel([(sequences[i], sequences[j]) for i, j in pairs], settings)
    kernel, error = (_symmetric(values, pairs, len(sequences)) for values in (estimate.value, estimate.standard_error))
    found = np.empty((len(widths), n_seeds, len(sequences), len(sequences)))
    for seed in range(n_seeds):
        rng = np.random.default_rng([settings.seed, seed])
        for index, width in enumerate(widths):
            features = random_features(sequences, settings, width, rng)
            found[index, seed] = features @ features.T / width
    names = [" ".join(sequence) for sequence in sequences]
    upper = np.triu_indices(len(sequences))
    gaps = (found - kernel)[:, :, upper[0], upper[1]]
    arrays = {
        "kernel": (("sequence", "other"), kernel),
        "kernel_error": (("sequence", "other"), error),
        "features": (("width", "seed", "sequence", "other"), found),
        "root_mean_square": (("width", "seed"), np.sqrt((gaps**2).mean(2))),
    }
    coordinates = {"width": list(widths), "seed": np.arange(n_seeds), "sequence": names, "other": names}
    attributes = {"beta": settings.beta, "gamma": settings.gamma, "activation": settings.phi.name}
    return xr.Dataset(arrays, coords=coordinates, attrs=attributes)  # type: ignore[arg-type]


def fresh_sequences(templates: Sequence[Template]) -> list[tuple[str, ...]]:
    """Two sequences of each template; no wildcard's symbol occurs in another sequence."""
    return [
        template.substitute({name: f"{name}{2 * row + copy}" for name in template.wildcards})
        for row, template in enumerate(templates)
        for copy in range(2)
    ]


def _symmetric(values: np.ndarray, pairs: Sequence[tuple[int, int]], size: int) -> np.ndarray:
    matrix = np.empty((size, size))
    for value, (row, column) in zip(values, pairs):
        matrix[row, column] = matrix[column, row] = value
    return matrix
