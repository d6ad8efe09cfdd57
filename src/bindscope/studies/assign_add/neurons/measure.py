"""Results about the Fourier components that sums are computed with: neurons, spectra, key frequencies, clock or pizza.

``source`` is the whole ``model`` or its ``circuit`` alone, as in ``measures/arithmetic/components.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.neurons import FITS
from bindscope.studies.framework.measuring import PACKED, measure_every_step
from bindscope.studies.framework.results import Context, NotTestable, Result, every_step
from bindscope.tasks.assign_add import AssignAddTask

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

N_TRIPLES = 200


def compute_neurons(context: Context) -> xr.Dataset:
    """Every neuron of the last checkpoint over (source, neuron), with a summary of all neurons over (step, source).

    For controls: ``permuted_explained_variance`` (draw, neuron), the same model with its numbers in a random order,
    ``permuted_fitted_accuracy`` (draw), its answers with those components in place of its pre-activations, and
    ``untrained_explained_variance`` (neuron), a fresh model of the same shape.
    """
    from bindscope.measures.arithmetic.components import describe_neurons, summarise_neurons

    run, task = context.run, sums_task(context.run)
    over_steps = measure_every_step(context, lambda model: summarise_neurons(describe_neurons(model, task)))
    last = neurons_at(run, run.steps[-1], context.rng)
    table = last.drop_vars([name for name in last.data_vars if "step" in last[name].dims]).drop_dims("step")
    dataset = over_steps.merge(table)
    dataset.attrs = last.attrs
    return _pack(dataset)


def neurons_at(run: Run, step: int, rng: np.random.Generator) -> xr.Dataset:
    """The same dataset of one saved step alone."""
    from bindscope.measures.arithmetic.components import (
        describe_neurons,
        explain_controls,
        show_examples,
        summarise_neurons,
    )

    task, model = sums_task(run), run.checkpoint(step)
    described = describe_neurons(model, task)
    summary = summarise_neurons(described).expand_dims(step=[step])
    dataset = summary.merge(described.drop_vars(["accuracy", "fitted_accuracy"]))
    dataset = dataset.assign(explain_controls(model, task, rng)).assign(show_examples(model, task, described))
    dataset.attrs = {
        **described.attrs,
        "title": "neurons as Fourier components",
        "run": run.name,
        "step": step,
        "fits": FITS,
    }
    return dataset


def compute_spectra(context: Context) -> xr.Dataset:
    """Norms of all frequencies in embeddings and unembedding over (step, matrix, frequency), and their Gini."""
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.spectra import embedding_spectra

    task = sums_task(context.run)
    numbers = CyclicNumbers.of(task)
    dataset = measure_every_step(context, lambda model: embedding_spectra(SumForms.of(model, task), numbers))
    dataset.attrs = {"title": "spectra of weights over numbers", "ordered_by": numbers.ordered_by}
    return _pack(dataset)


def compute_key_frequencies(context: Context) -> xr.Dataset:
    """Loss and accuracy over (step, source, logits, pairs) with the key frequencies of the last checkpoint alone, and
    without them; ``is_key`` (frequency) says which they are.
    """
    from bindscope.measures.arithmetic.components import measure_losses
    from bindscope.measures.arithmetic.key_frequencies import find_key_frequencies

    task = sums_task(context.run)
    numbers = CyclicNumbers.of(task)
    key = find_key_frequencies(context.found["neurons"].sel(source="model"))
    before = context.before
    same = before is not None and before.frequency.values[before.is_key.values.astype(bool)].tolist() == key
    dataset = measure_every_step(context, lambda model: measure_losses(model, task, key), reuse=same)
    dataset["is_key"] = ("frequency", np.isin(numbers.frequencies, key).astype("int8"))
    dataset = dataset.assign_coords(frequency=numbers.frequencies)
    trained = numbers.arrange(task.pairs.is_trained)
    dataset["n"] = ("pairs", np.array([trained.sum(), (~trained).sum()]))
    dataset.attrs = {"title": "restricted and excluded loss", "step": context.run.steps[-1]}
    return _pack(dataset)


def compute_clock_pizza(context: Context) -> xr.Dataset:
    """``distance_irrelevance`` (step, source), and of the whole model, with bootstrap intervals over triples,
    ``gradient_symmetricity`` (step) and the same with attention held fixed, ``value_symmetricity`` (step). The circuit
    treats both operands alike, so that its gradients are always the same.
    """
    from bindscope.measures.arithmetic.clock_pizza import draw_triples
    from bindscope.measures.arithmetic.components import measure_clock_pizza

    task = sums_task(context.run)
    triples = draw_triples(CyclicNumbers.of(task), context.rng, context.n)
    dataset = measure_every_step(context, lambda model: measure_clock_pizza(model, task, triples))
    dataset.attrs = {"title": "clock or pizza", "n": context.n, "seed": context.seed}
    return _pack(dataset)


def sums_task(run: Run) -> AssignAddTask:
    """The run's task, on sums with checkpoints to look at; anything else cannot be measured here."""
    task = run.config.task
    if not isinstance(task, AssignAddTask):
        raise NotTestable(
            f"{run.name}: its task is {task.family}; Fourier components are looked for in runs on modular addition"
        )
    if not run.steps:
        raise NotYet("no checkpoint was saved yet")
    return task


def _pack(dataset: xr.Dataset) -> xr.Dataset:
    for name, variable in dataset.data_vars.items():
        if variable.dtype == np.float64:
            dataset[name] = variable.astype("float32")
        elif variable.dtype == np.int64:
            dataset[name] = variable.astype("int32")
        if variable.size > 2000:
            dataset[name].encoding = dict(PACKED)
    return dataset


RESULTS = (
    Result("neurons", "neurons as Fourier components", compute_neurons, revision=2, steps=every_step,
           grows=True),
    Result("spectra", "spectra of embeddings", compute_spectra, revision=2, steps=every_step, grows=True),
    Result("key_frequencies", "restricted and excluded loss", compute_key_frequencies, steps=every_step,
           needs=("neurons",), grows=True),
    Result("clock_pizza", "clock or pizza", compute_clock_pizza, revision=2, n=N_TRIPLES, steps=every_step,
           grows=True),
)  # fmt: skip
