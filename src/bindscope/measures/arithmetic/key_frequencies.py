"""Which frequencies a model computes with, and its loss with these alone or without them.

After the progress measures of Nanda et al. 2023: the part of the logits that is a function of the sum is written in
Fourier components of the sum. *Restricted* logits keep the constant and the Fourier components of the key frequencies and nothing else; *excluded*
logits lack exactly these Fourier components. A model that answers by the key frequencies has a low restricted and a high excluded
loss; one that has learned pairs by heart has it the other way round.

>>> key = find_key_frequencies(fit_neurons(sums.pre))
>>> frequency_losses(sums.logits, key, CyclicNumbers.of(task), task.pairs.is_trained).loss.sel(logits="restricted")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers

LEAST_FIT = 0.5  # explained variance from which a neuron counts for its frequency
LEAST_NEURONS = 0.01  # fraction of neurons that make a frequency a key one
LOGITS = ("full", "restricted", "excluded")
PAIRS = ("trained", "held_out")


def find_key_frequencies(fits: xr.Dataset) -> list[int]:
    """Frequencies that at least one neuron in a hundred has, counting those whose Fourier component explains half of them."""
    counted = fits.frequency.values[fits.explained_variance.values >= LEAST_FIT]
    found, counts = np.unique(counted, return_counts=True)
    return [int(k) for k in found[counts >= LEAST_NEURONS * fits.sizes["neuron"]]]


def frequency_losses(
    logits: np.ndarray, key: Sequence[int], numbers: CyclicNumbers, is_trained: np.ndarray
) -> xr.Dataset:
    """Mean cross-entropy in nats and accuracy over (logits, pairs), from logits [n1, n2, number] by value.

    ``is_trained`` [n1, n2] says which pairs training shows. Where the circle lacks a number (0 under products) its pairs
    and its answer are left out.
    """
    placed = numbers.arrange(logits)[:, :, numbers.answer]  # [position 1, position 2, position of the answer]
    restricted, excluded = split_logits(placed, key)
    trained = numbers.arrange(is_trained)
    loss, accuracy = np.empty((2, len(LOGITS), len(PAIRS)))
    for row, values in enumerate((placed, restricted, excluded)):
        losses, right = _score(values, numbers.sums)
        for column, chosen in enumerate((trained, ~trained)):
            loss[row, column], accuracy[row, column] = losses[chosen].mean(), right[chosen].mean()
    dims = ("logits", "pairs")
    dataset = xr.Dataset(
        {
            "loss": (dims, loss, {"units": "nat"}),
            "accuracy": (dims, accuracy, {"units": "fraction"}),
            "n": ("pairs", np.array([trained.sum(), (~trained).sum()])),
        },
        {"logits": list(LOGITS), "pairs": list(PAIRS)},
    )
    dataset.attrs["key"] = [int(k) for k in key]
    return dataset


def split_logits(placed: np.ndarray, key: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Restricted and excluded logits, of logits over [index 1, index 2, output]."""
    modulus = len(placed)
    indices = np.arange(modulus)
    partner = (indices[:, None] - indices) % modulus  # [sum, index 1]: the index 2 that gives the sum
    by_sum = placed[indices, partner].mean(axis=1)  # [sum, output]
    components = np.fft.rfft(by_sum, axis=0)
    kept = np.zeros_like(components)
    chosen = np.asarray(key, dtype=int)
    kept[chosen] = components[chosen]
    of_key = np.fft.irfft(kept, n=modulus, axis=0)[(indices[:, None] + indices) % modulus]
    return by_sum.mean(axis=0) + of_key, placed - of_key


def _score(logits: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cross-entropy and whether the top answer is right, pair by pair."""
    centred = logits - logits.max(axis=-1, keepdims=True)
    right = np.take_along_axis(centred, answers[..., None], axis=-1)[..., 0]
    return np.log(np.exp(centred).sum(axis=-1)) - right, logits.argmax(axis=-1) == answers
