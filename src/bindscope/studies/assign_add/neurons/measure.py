"""Results about the Fourier components that sums are computed with: neurons, spectra, key frequencies, clock or pizza.

``source`` says whose numbers they are: ``model`` is the whole model on every literal sum behind PADs, ``circuit`` the
path OV2 e_n1 + OV2 e_n2 into the last MLP alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable, Result, every_step

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.literal_sums import LiteralSums
    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run
    from bindscope.tasks.assign_add import AssignAddTask

SOURCES = ("model", "circuit")
FITS = 0.8  # explained variance from which a neuron's pre-activation fits its Fourier component
N_PERMUTATIONS = 5
EXAMPLES: Mapping[str, float] = {"best": 1.0, "median": 0.5, "tenth percentile": 0.1}  # which neurons are shown whole
N_TRIPLES = 200
PACKED: dict[str, Any] = {"zlib": True, "complevel": 9}


def compute_neurons(context: Context) -> xr.Dataset:
    """Every neuron of the last checkpoint over (source, neuron), with a summary of all neurons over (step, source).

    For controls: ``permuted_explained_variance`` (draw, neuron), the same model with its numbers in a random order, and
    ``untrained_explained_variance`` (neuron), a fresh model of the same shape.
    """
    run, task = context.run, sums_task(context.run)
    over_steps = over_checkpoints(
        context, lambda model: summarise_neurons(describe_neurons(model, task)), context.before
    )
    last = neurons_at(run, run.steps[-1], context.rng)
    table = last.drop_vars([name for name in last.data_vars if "step" in last[name].dims]).drop_dims("step")
    dataset = over_steps.merge(table)
    dataset.attrs = last.attrs
    return _pack(dataset)


def neurons_at(run: Run, step: int, rng: np.random.Generator) -> xr.Dataset:
    """The same dataset of one kept step alone."""
    task, model = sums_task(run), run.checkpoint(step)
    described = describe_neurons(model, task)
    summary = summarise_neurons(described).expand_dims(step=[step])
    dataset = summary.merge(described.drop_vars(["accuracy", "fitted_accuracy"]))
    dataset = dataset.assign(_controls(run, model, task, rng)).assign(_examples(model, task, described))
    dataset.attrs = {**described.attrs, "title": "neurons as waves", "run": run.name, "step": step, "fits": FITS}
    return dataset


def compute_spectra(context: Context) -> xr.Dataset:
    """Norms of all frequencies in embeddings and unembedding over (step, matrix, frequency), and their Gini."""
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.spectra import embedding_spectra

    task = sums_task(context.run)
    numbers = CyclicNumbers.of(task)
    dataset = over_checkpoints(
        context, lambda model: embedding_spectra(SumForms.of(model, task), numbers), context.before
    )
    dataset.attrs = {"title": "spectra of weights over numbers", "ordered_by": numbers.ordered_by}
    return _pack(dataset)


def compute_key_frequencies(context: Context) -> xr.Dataset:
    """Loss and accuracy over (step, source, logits, pairs) with the key frequencies of the last checkpoint alone, and
    without them; ``is_key`` (frequency) says which they are.
    """
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.key_frequencies import find_key_frequencies

    task = sums_task(context.run)
    numbers = CyclicNumbers.of(task)
    key = find_key_frequencies(context.found["neurons"].sel(source="model"))
    before = context.before
    same = before is not None and before.frequency.values[before.is_key.values.astype(bool)].tolist() == key
    dataset = over_checkpoints(context, lambda model: measure_losses(model, task, key), before if same else None)
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
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers

    task = sums_task(context.run)
    triples = draw_triples(CyclicNumbers.of(task), context.rng, context.n)
    dataset = over_checkpoints(context, lambda model: measure_clock_pizza(model, task, triples), context.before)
    dataset.attrs = {"title": "clock or pizza", "n": context.n, "seed": context.seed}
    return _pack(dataset)


def describe_neurons(model: Transformer, task: AssignAddTask) -> xr.Dataset:
    """Over (source, neuron): its Fourier component, its output's phase and share; over (source): accuracy as it is and with every
    pre-activation replaced by its Fourier component.
    """
    from bindscope.measures.arithmetic.analytic import output_phases, output_weights
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.neurons import fit_neurons, fitted_preactivations

    numbers, forms, sums = CyclicNumbers.of(task), _forms_of(model, task), _sums_of(model, task)
    weights = output_weights(forms)
    parts = []
    for source in SOURCES:
        pre, residual = _given(source, forms, sums)
        fits = fit_neurons(pre, numbers)
        part = fits.merge(output_phases(fits, weights, numbers))
        moved = np.maximum(numbers.arrange(pre), 0).var(axis=(0, 1)) * (weights**2).sum(axis=1)  # [neuron]
        part["output_share"] = ("neuron", moved / max(moved.sum(), 1e-300))
        part["accuracy"] = _accuracy(forms, numbers, numbers.arrange(pre), numbers.arrange(residual))
        waves = fitted_preactivations(fits, numbers)
        part["fitted_accuracy"] = _accuracy(forms, numbers, waves, numbers.arrange(residual))
        parts.append(part)
    dataset = xr.concat(parts, xr.IndexVariable("source", list(SOURCES)), combine_attrs="override")
    dataset.attrs["n_pairs"] = numbers.modulus**2
    return dataset


def summarise_neurons(described: xr.Dataset) -> xr.Dataset:
    """Over (source): how many neurons fit, how well the median and the answer-weighted mean do, whether outputs keep the
    analytic phase; ``neurons_per_frequency`` (source, Fourier component) counts neurons that a Fourier component explains by half.
    """
    from bindscope.measures.arithmetic.analytic import concentration
    from bindscope.measures.arithmetic.key_frequencies import LEAST_FIT

    explained = described.explained_variance.fillna(0)
    frequencies = np.arange(1, (int(described.attrs["modulus"]) - 1) // 2 + 1)
    fitting = [described.frequency.values[row][explained.values[row] >= LEAST_FIT] for row in range(len(SOURCES))]
    counts = [[(found == k).sum() for k in frequencies] for found in fitting]
    agreement = [concentration(angles) for angles in described.phase_difference.values]
    return xr.Dataset(
        {
            "share_fitting": (explained >= FITS).mean("neuron"),
            "median_explained_variance": explained.median("neuron"),
            "weighted_explained_variance": (explained * described.output_share).sum("neuron"),
            "phase_agreement": ("source", np.array(agreement)),
            "neurons_per_frequency": (("source", "wave"), np.array(counts, dtype="int16")),
            "accuracy": described.accuracy,
            "fitted_accuracy": described.fitted_accuracy,
        },
        {"source": list(SOURCES), "wave": frequencies},
    )


def measure_losses(model: Transformer, task: AssignAddTask, key: Sequence[int]) -> xr.Dataset:
    """Full, restricted and excluded loss of the whole model and of the circuit, over (source, logits, pairs)."""
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.key_frequencies import frequency_losses

    numbers, forms, sums = CyclicNumbers.of(task), _forms_of(model, task), _sums_of(model, task)
    given = (_logits(source, forms, sums) for source in SOURCES)
    parts = [frequency_losses(logits, key, numbers, task.pairs.is_trained).drop_vars("n") for logits in given]
    return xr.concat(parts, xr.IndexVariable("source", list(SOURCES)))


def measure_clock_pizza(model: Transformer, task: AssignAddTask, triples: np.ndarray) -> xr.Dataset:
    """Distance irrelevance of the whole model and of the circuit, and gradient symmetricity of the whole model."""
    from bindscope.intervals import bootstrap_interval
    from bindscope.measures.arithmetic.clock_pizza import (
        correct_logits,
        distance_irrelevance,
        embedding_gradient_cosines,
    )
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers

    numbers, forms, sums = CyclicNumbers.of(task), _forms_of(model, task), _sums_of(model, task)
    irrelevance = [distance_irrelevance(correct_logits(_logits(source, forms, sums), numbers)) for source in SOURCES]
    variables: dict[str, Any] = {"distance_irrelevance": ("source", np.array(irrelevance))}
    for name, fixed in (("gradient_symmetricity", False), ("value_symmetricity", True)):
        cosines = embedding_gradient_cosines(model, task, triples, fixed)
        low, high = bootstrap_interval(cosines, np.random.default_rng(0))
        variables |= {name: float(cosines.mean()), f"{name}_low": low, f"{name}_high": high}
    return xr.Dataset(variables, {"source": list(SOURCES)})


def over_checkpoints(
    context: Context, measure: Callable[[Transformer], xr.Dataset], before: xr.Dataset | None
) -> xr.Dataset:
    """What ``measure`` says of every kept checkpoint, over ``step``; those in ``before`` are not measured again."""
    run = context.run
    known = {} if before is None else _parts_by_checkpoint(before)
    hashes = [run.manifest.checkpoints[step].sha256 for step in run.steps]
    parts = []
    for done, (step, sha256) in enumerate(zip(run.steps, hashes), start=1):
        parts.append(known[sha256] if sha256 in known else measure(run.checkpoint(step)))
        if context.on_progress:
            context.on_progress(done, len(hashes))
    joined = xr.concat(parts, xr.IndexVariable("step", list(run.steps)), data_vars="all", combine_attrs="drop")
    return joined.assign_coords({CHECKPOINT: ("step", hashes)})


def sums_task(run: Run) -> AssignAddTask:
    """The run's task, on sums with checkpoints to look at; anything else cannot be measured here."""
    from bindscope.tasks.assign_add import AssignAddTask

    task = run.config.task
    if not isinstance(task, AssignAddTask):
        raise NotTestable(
            f"{run.name}: its task is {task.family}; Fourier components are looked for in runs on modular addition"
        )
    if not run.steps:
        raise NotTestable("no checkpoint was kept yet")
    return task


def _parts_by_checkpoint(dataset: xr.Dataset) -> dict[str, xr.Dataset]:
    of_steps = dataset[[name for name in dataset.data_vars if "step" in dataset[name].dims]].drop_vars(CHECKPOINT)
    hashes = dataset[CHECKPOINT].values
    return {str(sha256): of_steps.isel(step=place, drop=True) for place, sha256 in enumerate(hashes)}


def _controls(run: Run, model: Transformer, task: AssignAddTask, rng: np.random.Generator) -> dict[str, Any]:
    import torch

    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.neurons import fit_neurons
    from bindscope.model.transformer import Transformer as Network

    numbers, pre = CyclicNumbers.of(task), _sums_of(model, task).pre
    permuted = [fit_neurons(pre, numbers.permute(rng)).explained_variance.values for _ in range(N_PERMUTATIONS)]
    fresh = Network(run.config.model, torch.Generator().manual_seed(int(rng.integers(2**31))))
    untrained = fit_neurons(_sums_of(fresh, task).pre, numbers).explained_variance.values
    return {
        "permuted_explained_variance": (("draw", "neuron"), np.array(permuted)),
        "untrained_explained_variance": ("neuron", untrained),
    }


def _examples(model: Transformer, task: AssignAddTask, described: xr.Dataset) -> dict[str, Any]:
    """The whole model's pre-activations of three neurons: the best fitted, the median one, and one of the worst."""
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers

    explained = described.explained_variance.sel(source="model").fillna(0).values
    order = np.argsort(explained)
    neurons = [int(order[round(rank * (len(order) - 1))]) for rank in EXAMPLES.values()]
    pre = CyclicNumbers.of(task).arrange(_sums_of(model, task).pre[:, :, neurons])
    return {
        "example_neuron": ("example", np.array(neurons)),
        "example_preactivation": (("example", "place_1", "place_2"), pre.transpose(2, 0, 1)),
    }


def _forms_of(model: Transformer, task: AssignAddTask) -> SumForms:
    from bindscope.measures.arithmetic.forms import SumForms

    return SumForms.of(model, task)


def _sums_of(model: Transformer, task: AssignAddTask) -> LiteralSums:
    from bindscope.measures.arithmetic.literal_sums import run_literal_sums

    return run_literal_sums(model, task)


def _given(source: str, forms: SumForms, sums: LiteralSums) -> tuple[np.ndarray, np.ndarray]:
    """Pre-activations [n1, n2, neuron], and the residual stream that the MLP's output is added to [n1, n2, d_model]."""
    from bindscope.measures.arithmetic.neurons import preactivations

    return (sums.pre, sums.residual) if source == "model" else (preactivations(forms), np.zeros_like(sums.residual))


def _logits(source: str, forms: SumForms, sums: LiteralSums) -> np.ndarray:
    pre, residual = _given(source, forms, sums)
    logits: np.ndarray = (residual + np.maximum(pre, 0) @ forms.down) @ forms.unembed
    return logits


def _accuracy(forms: SumForms, numbers: CyclicNumbers, pre: np.ndarray, residual: np.ndarray) -> float:
    """The share of pairs answered correctly from pre-activations over positions [position 1, position 2, neuron]."""
    logits = (residual + np.maximum(pre, 0) @ forms.down) @ forms.unembed
    return float((logits.argmax(axis=-1) == numbers.answer[numbers.sums]).mean())


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
    Result("neurons", "neurons as waves", compute_neurons, steps=every_step, grows=True),
    Result("spectra", "spectra of embeddings", compute_spectra, steps=every_step, grows=True),
    Result("key_frequencies", "restricted and excluded loss", compute_key_frequencies, steps=every_step,
           needs=("neurons",), grows=True),
    Result("clock_pizza", "clock or pizza", compute_clock_pizza, revision=2, n=N_TRIPLES, steps=every_step,
           grows=True),
)  # fmt: skip
