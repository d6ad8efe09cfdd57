"""Fourier components in a model of modular addition: all its neurons, one of them, its logits, clock or pizza.

``source`` says whose numbers they are: ``model`` is the whole model on every literal sum behind PADs, ``circuit`` the
path OV2 e_n1 + OV2 e_n2 into the last MLP alone.

>>> described = describe_neurons(run.checkpoint("last"), task)
>>> summarise_neurons(described).fraction_fitting.sel(source="model")
>>> describe_neuron(run.checkpoint("last"), task, 70).explained_variance.sel(source="circuit")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from bindscope.intervals import bootstrap_interval
from bindscope.measures.arithmetic.analytic import concentration, output_phases, output_weights
from bindscope.measures.arithmetic.clock_pizza import correct_logits, distance_irrelevance, embedding_gradient_cosines
from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.key_frequencies import LEAST_FIT, frequency_losses
from bindscope.measures.arithmetic.literal_sums import LiteralSums, run_literal_sums
from bindscope.measures.arithmetic.neurons import (
    EXAMPLES,
    FITS,
    NeuronFit,
    fit_neuron,
    fit_neurons,
    fitted_preactivations,
    preactivation,
    preactivations,
)
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask

SOURCES = ("model", "circuit")
N_PERMUTATIONS = 20
FITTED = (
    "frequency", "phase_1", "phase_2", "amplitude_1", "amplitude_2", "explained_variance", "free_explained_variance",
    "mean", "amplitude",
)  # fmt: skip


def describe_neurons(model: Transformer, task: AssignAddTask) -> xr.Dataset:
    """Over (source, neuron): its Fourier component, its output's phase and fraction; over (source): accuracy as it is and with every
    pre-activation replaced by its Fourier component.
    """
    numbers, forms, sums = CyclicNumbers.of(task), SumForms.of(model, task), run_literal_sums(model, task)
    weights = output_weights(forms)
    parts = []
    for source in SOURCES:
        pre, residual = _given(source, forms, sums)
        fits = fit_neurons(pre, numbers)
        part = fits.merge(output_phases(fits, weights, numbers))
        moved = np.maximum(numbers.arrange(pre), 0).var(axis=(0, 1)) * (weights**2).sum(axis=1)  # [neuron]
        part["output_fraction"] = ("neuron", moved / max(moved.sum(), 1e-300))
        part["accuracy"] = _accuracy(forms, numbers, numbers.arrange(pre), numbers.arrange(residual))
        components = fitted_preactivations(fits, numbers)
        part["fitted_accuracy"] = _accuracy(forms, numbers, components, numbers.arrange(residual))
        parts.append(part)
    dataset = xr.concat(parts, xr.IndexVariable("source", list(SOURCES)), combine_attrs="override")
    dataset.attrs["n_pairs"] = numbers.modulus**2
    return dataset


def summarise_neurons(described: xr.Dataset) -> xr.Dataset:
    """Over (source): how many neurons fit, how well the median and the answer-weighted mean do, whether outputs keep the
    analytic phase; ``neurons_per_frequency`` (source, Fourier component) counts neurons that a Fourier component explains by half.
    """
    explained = described.explained_variance.fillna(0)
    frequencies = np.arange(1, (int(described.attrs["modulus"]) - 1) // 2 + 1)
    fitting = [described.frequency.values[row][explained.values[row] >= LEAST_FIT] for row in range(len(SOURCES))]
    counts = [[(found == k).sum() for k in frequencies] for found in fitting]
    agreement = [concentration(angles) for angles in described.phase_difference.values]
    return xr.Dataset(
        {
            "fraction_fitting": (explained >= FITS).mean("neuron"),
            "median_explained_variance": explained.median("neuron"),
            "weighted_explained_variance": (explained * described.output_fraction).sum("neuron"),
            "phase_agreement": ("source", np.array(agreement)),
            "neurons_per_frequency": (("source", "component"), np.array(counts, dtype="int16")),
            "accuracy": described.accuracy,
            "fitted_accuracy": described.fitted_accuracy,
        },
        {"source": list(SOURCES), "component": frequencies},
    )


def describe_neuron(model: Transformer, task: AssignAddTask, neuron: int) -> xr.Dataset:
    """``preactivation`` and ``fitted`` over (source, index_1, index_2), and the numbers of the fit over (source).

    The sources are ``model``, the whole of it on literal sums, and ``circuit``, OV2 e_n1 + OV2 e_n2 alone. Indices count
    the numbers in the order that the operator makes a circle of: for + the numbers themselves.
    """
    numbers = CyclicNumbers.of(task)
    circuit = preactivation(SumForms.of(model, task), neuron)  # refuses a neuron that is not there
    given = {"model": run_literal_sums(model, task).pre[..., neuron], "circuit": circuit}
    placed = {source: numbers.arrange(values) for source, values in given.items()}
    fits = {source: fit_neuron(values) for source, values in placed.items()}
    return xr.Dataset(
        {
            "preactivation": (("source", "index_1", "index_2"), list(placed.values())),
            "fitted": (("source", "index_1", "index_2"), [fit.values for fit in fits.values()]),
            **{name: ("source", [getattr(fit, name) for fit in fits.values()]) for name in FITTED},
        },
        {"source": list(fits), "n1": ("index_1", numbers.first), "n2": ("index_2", numbers.second)},
        {"neuron": neuron, "ordered_by": numbers.ordered_by},
    )


def read_fit(dataset: xr.Dataset, source: str = "model") -> NeuronFit:
    """The fit in a dataset of ``describe_neuron``."""
    one = dataset.sel(source=source)
    numbers = {name: float(one[name]) for name in FITTED if name != "frequency"}
    return NeuronFit(modulus=dataset.sizes["index_1"], frequency=int(one.frequency), **numbers)


def explain_controls(model: Transformer, task: AssignAddTask, rng: np.random.Generator) -> dict[str, Any]:
    """How well Fourier components fit where there is nothing to find: numbers in random orders, and a model that was never trained."""
    numbers, sums, forms = CyclicNumbers.of(task), run_literal_sums(model, task), SumForms.of(model, task)
    orders = [numbers.permute(rng) for _ in range(N_PERMUTATIONS)]
    fits = [fit_neurons(sums.pre, order) for order in orders]
    permuted = [fit.explained_variance.values for fit in fits]
    replaced = [_replaced_accuracy(forms, sums, fit, order, task) for fit, order in zip(fits, orders)]
    fresh = Transformer(model.config, torch.Generator().manual_seed(int(rng.integers(2**31))))
    untrained = fit_neurons(
        run_literal_sums(fresh.to(model.W_E.device, model.W_E.dtype), task).pre, numbers
    ).explained_variance.values
    return {
        "permuted_explained_variance": (("draw", "neuron"), np.array(permuted)),
        "permuted_fitted_accuracy": ("draw", np.array(replaced)),
        "untrained_explained_variance": ("neuron", untrained),
    }


def show_examples(model: Transformer, task: AssignAddTask, described: xr.Dataset) -> dict[str, Any]:
    """The whole model's pre-activations of three neurons: the best fitted, the median one, and one of the worst."""
    explained = described.explained_variance.sel(source="model").fillna(0).values
    order = np.argsort(explained)
    neurons = [int(order[round(rank * (len(order) - 1))]) for rank in EXAMPLES.values()]
    pre = CyclicNumbers.of(task).arrange(run_literal_sums(model, task).pre[:, :, neurons])
    return {
        "example_neuron": ("example", np.array(neurons)),
        "example_preactivation": (("example", "index_1", "index_2"), pre.transpose(2, 0, 1)),
    }


def measure_losses(model: Transformer, task: AssignAddTask, key: Sequence[int]) -> xr.Dataset:
    """Full, restricted and excluded loss of the whole model and of the circuit, over (source, logits, pairs)."""
    numbers, forms, sums = CyclicNumbers.of(task), SumForms.of(model, task), run_literal_sums(model, task)
    given = (_logits(source, forms, sums) for source in SOURCES)
    parts = [frequency_losses(logits, key, numbers, task.pairs.is_trained).drop_vars("n") for logits in given]
    return xr.concat(parts, xr.IndexVariable("source", list(SOURCES)))


def measure_clock_pizza(model: Transformer, task: AssignAddTask, triples: np.ndarray) -> xr.Dataset:
    """Distance irrelevance of the whole model and of the circuit, and gradient symmetricity of the whole model."""
    numbers, forms, sums = CyclicNumbers.of(task), SumForms.of(model, task), run_literal_sums(model, task)
    irrelevance = [distance_irrelevance(correct_logits(_logits(source, forms, sums), numbers)) for source in SOURCES]
    variables: dict[str, Any] = {"distance_irrelevance": ("source", np.array(irrelevance))}
    for name, fixed in (("gradient_symmetricity", False), ("value_symmetricity", True)):
        cosines = embedding_gradient_cosines(model, task, triples, fixed)
        low, high = bootstrap_interval(cosines, np.random.default_rng(0))
        variables |= {name: float(cosines.mean()), f"{name}_low": low, f"{name}_high": high}
    return xr.Dataset(variables, {"source": list(SOURCES)})


def _given(source: str, forms: SumForms, sums: LiteralSums) -> tuple[np.ndarray, np.ndarray]:
    """Pre-activations [n1, n2, neuron], and the residual stream that the MLP's output is added to [n1, n2, d_model]."""
    return (sums.pre, sums.residual) if source == "model" else (preactivations(forms), np.zeros_like(sums.residual))


def _logits(source: str, forms: SumForms, sums: LiteralSums) -> np.ndarray:
    pre, residual = _given(source, forms, sums)
    logits: np.ndarray = (residual + np.maximum(pre, 0) @ forms.down) @ forms.unembed
    return logits


def _replaced_accuracy(
    forms: SumForms, sums: LiteralSums, fits: xr.Dataset, order: CyclicNumbers, task: AssignAddTask
) -> float:
    """The fraction of pairs answered correctly with the Fourier components of another order of the numbers."""
    pre, residual = fitted_preactivations(fits, order), order.arrange(sums.residual)
    logits = (residual + np.maximum(pre, 0) @ forms.down) @ forms.unembed
    answers = task.sequences.combine(*np.indices((task.modulus, task.modulus)))
    return float((logits.argmax(axis=-1) == order.arrange(answers)).mean())


def _accuracy(forms: SumForms, numbers: CyclicNumbers, pre: np.ndarray, residual: np.ndarray) -> float:
    """The fraction of pairs answered correctly from pre-activations over [index 1, index 2, neuron]."""
    logits = (residual + np.maximum(pre, 0) @ forms.down) @ forms.unembed
    return float((logits.argmax(axis=-1) == numbers.answer[numbers.sums]).mean())
