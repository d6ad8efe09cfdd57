"""How much of each frequency there is in weights over numbers, and how unevenly it is spread.

The norm of frequency k in a matrix with one row a number is the length of its cosine and sine components together, over
all columns; squared norms of all frequencies add up to the squared deviation of the rows from their mean.

>>> spectra = embedding_spectra(SumForms.of(model, task), CyclicNumbers.of(task))
>>> spectra.norm.sel(matrix="mapped"), spectra.gini
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.forms import SumForms

MATRICES = ("numbers", "mapped", "neurons", "unembed")
N_COMPONENTS = 4  # principal components whose circularity is measured, as in "The Clock and the Pizza"


def embedding_spectra(forms: SumForms, numbers: CyclicNumbers) -> xr.Dataset:
    """Norms of all frequencies in the embeddings of numbers, those after OV2 (``mapped``), those after the last MLP's
    input weights (``neurons``) and the unembedding; ``gini`` of each is near 0 when all frequencies are alike and near
    1 when few hold everything. ``circularity`` (matrix, principal) is that of the first principal components.
    """
    rows = forms.numbers[numbers.first]  # [position, d_model]
    matrices = (rows, rows @ forms.ov2, rows @ forms.ov2 @ forms.up, forms.unembed.T[numbers.answer])
    norms = np.stack([fourier_norms(matrix) for matrix in matrices])
    return xr.Dataset(
        {
            "norm": (("matrix", "frequency"), norms),
            "gini": ("matrix", np.array([gini(row) for row in norms])),
            "circularity": (("matrix", "principal"), np.array([circularity(matrix) for matrix in matrices])),
        },
        {"matrix": list(MATRICES), "frequency": numbers.frequencies, "principal": np.arange(1, N_COMPONENTS + 1)},
    )


def fourier_norms(rows: np.ndarray) -> np.ndarray:
    """The norm of each frequency 1 … ⌊(m − 1)/2⌋ in rows [position, column].

    >>> fourier_norms(np.cos(2 * np.pi * 2 * np.arange(5) / 5)[:, None]).round(3)
    array([0.   , 1.581])
    """
    modulus = len(rows)
    components = np.fft.rfft(rows, axis=0, norm="ortho")[1 : (modulus - 1) // 2 + 1]
    norms: np.ndarray = np.sqrt(2 * (abs(components) ** 2).sum(axis=1))
    return norms


def gini(amounts: np.ndarray) -> float:
    """The Gini coefficient: half the mean difference of two amounts, over their mean; 0 for nothing at all."""
    ordered = np.sort(np.asarray(amounts, float))
    n, total = len(ordered), ordered.sum()
    if total == 0:
        return 0.0
    return float(((2 * np.arange(1, n + 1) - n - 1) * ordered).sum() / (n * total))


def circularity(vectors: np.ndarray, n_components: int = N_COMPONENTS) -> np.ndarray:
    """How much of each of the first principal components of [number, d_model] is one Fourier component, from 0 to 1.

    With c_j the component's coordinate of number j: max_k 2/(p Σ c_j²) · |Σ c_j e^{2πi jk/p}|² (Zhong et al. 2023).
    """
    centred = vectors - vectors.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    coordinates = left[:, :n_components] * sizes[:n_components]  # [number, component]
    modulus = len(vectors)
    power = np.abs(np.fft.rfft(coordinates, axis=0)[1 : (modulus - 1) // 2 + 1]) ** 2  # [frequency, component]
    whole = np.maximum((coordinates**2).sum(0), 1e-300)
    found: np.ndarray = 2 * power.max(0) / (modulus * whole)
    return found
