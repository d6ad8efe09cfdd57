"""One neuron of the last MLP over all pairs of numbers, beside the Fourier component that fits it best.

>>> dataset = describe_neuron(run.checkpoint("last"), task, 70)
>>> dataset.explained_variance.sel(source="model"), dataset.fitted.sel(source="circuit")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.literal_sums import run_literal_sums
from bindscope.measures.arithmetic.neurons import NeuronFit, fit_neuron, preactivation

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.assign_add import AssignAddTask

FITTED = (
    "frequency", "phase_1", "phase_2", "amplitude_1", "amplitude_2", "explained_variance", "free_explained_variance",
    "mean", "amplitude",
)  # fmt: skip


def describe_neuron(model: Transformer, task: AssignAddTask, neuron: int) -> xr.Dataset:
    """``preactivation`` and ``fitted`` over (source, place_1, place_2), and the numbers of the fit over (source).

    The sources are ``model``, the whole of it on literal sums, and ``circuit``, OV2 e_n1 + OV2 e_n2 alone. Places are the
    numbers in the order that the operator makes a circle of: for + the numbers themselves.
    """
    numbers = CyclicNumbers.of(task)
    circuit = preactivation(SumForms.of(model, task), neuron)  # refuses a neuron that is not there
    given = {"model": run_literal_sums(model, task).pre[..., neuron], "circuit": circuit}
    placed = {source: numbers.arrange(values) for source, values in given.items()}
    fits = {source: fit_neuron(values) for source, values in placed.items()}
    return xr.Dataset(
        {
            "preactivation": (("source", "place_1", "place_2"), list(placed.values())),
            "fitted": (("source", "place_1", "place_2"), [fit.values for fit in fits.values()]),
            **{name: ("source", [getattr(fit, name) for fit in fits.values()]) for name in FITTED},
        },
        {"source": list(fits), "n1": ("place_1", numbers.first), "n2": ("place_2", numbers.second)},
        {"neuron": neuron, "ordered_by": numbers.ordered_by},
    )


def read_fit(dataset: xr.Dataset, source: str = "model") -> NeuronFit:
    """The fit in a dataset of ``describe_neuron``."""
    one = dataset.sel(source=source)
    numbers = {name: float(one[name]) for name in FITTED if name != "frequency"}
    return NeuronFit(modulus=dataset.sizes["place_1"], frequency=int(one.frequency), **numbers)
