"""Whether trained neurons obey the one rule of a two-layer network that adds, written down instead of trained.

After Gromov 2023: neuron j squares cos(2πk n1/p + φ1) + cos(2πk n2/p + φ2), with a frequency k and two random phases of
its own, and gives cos(2πk q/p + φ1 + φ2) to output q. The cross term of the square, cos(2πk(n1 + n2)/p + φ1 + φ2), is in
step with that for q = n1 + n2 in every neuron; all other terms have random phases and cancel as neurons become many.

>>> concentration(output_phases(fits, output_weights(forms), numbers).phase_difference.values)
0.99…
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.forms import SumForms


def output_weights(forms: SumForms) -> np.ndarray:
    """[neuron, number]: what each neuron of the last MLP adds to each logit, without what it adds to all of them."""
    weights = forms.down @ forms.unembed
    return weights - weights.mean(axis=1, keepdims=True)


def output_phases(fits: xr.Dataset, weights: np.ndarray, numbers: CyclicNumbers) -> xr.Dataset:
    """Over ``neuron``: the phase of its output weights [neuron, number] at the frequency that it was fitted with
    (``phase_out``), the fraction of their variance at that frequency (``output_explained_variance``), and
    ``phase_difference``, phase_out − phase_1 − phase_2 in (−π, π], which is 0 in the analytic network.
    """
    placed = weights[:, numbers.answer].T  # [position, neuron]
    components = np.fft.rfft(placed - placed.mean(axis=0), axis=0)
    chosen = components[fits.frequency.values, np.arange(placed.shape[1])]
    total = np.maximum((abs(np.fft.fft(placed - placed.mean(axis=0), axis=0)) ** 2).sum(axis=0), 1e-300)
    difference = np.angle(chosen) - fits.phase_1.values - fits.phase_2.values
    return xr.Dataset(
        {
            "phase_out": ("neuron", np.angle(chosen)),
            "output_explained_variance": ("neuron", 2 * abs(chosen) ** 2 / total),
            "phase_difference": ("neuron", np.angle(np.exp(1j * difference))),
        },
        {"neuron": fits.neuron.values},
    )


def concentration(angles: np.ndarray) -> float:
    """The length of the mean of unit vectors at these angles: 1 if all are the same, about n^−½ if they are random."""
    return float(abs(np.exp(1j * np.asarray(angles)).mean())) if len(angles) else float("nan")
