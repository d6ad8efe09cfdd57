"""Results ``equivalence``, ``addition`` and ``answer_probes``: what the last MLP gets, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.intervals import bootstrap_interval
from bindscope.measures.stats.shares import count_variable, share_variables
from bindscope.studies.framework.every_step import measure_every_step, small, untrained_model
from bindscope.studies.framework.results import Context, NotTestable, Result, every_step, last_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.assign_add import AssignAddTask
    from bindscope.tasks.task import Batch

N_COMPARED = 300  # sequences with each number of variables
N_PROBED = 6000  # sequences, of which about 30 % test the probes
N_RESAMPLES = 400
EDGES = np.linspace(-1, 1, 51)
UNTRAINED = "untrained_"
COMPARED = {0: "0tr", 1: "1tr", 2: "2tr"}  # number of variables → pool


def compute_equivalence(context: Context) -> xr.Dataset:
    """Mean cosines with intervals and their histograms at every checkpoint: ``sum_cosine`` over (step, vector,
    n_variables, sum_pairing), ``form_cosine`` over (step, n_variables, form_pairing), and those of a fresh model.
    """
    task: Any = context.run.config.task
    rng = context.rng
    batches = {count: task.sample_pool(rng, context.n, pool) for count, pool in COMPARED.items()}

    def measure(model: Transformer) -> xr.Dataset:
        return compare_vectors(model, task, batches, np.random.default_rng(context.seed))

    dataset = measure_every_step(context, measure)
    for name, variable in measure(untrained_model(context)).data_vars.items():
        dataset[f"{UNTRAINED}{name}"] = variable
    dataset.attrs = {"n": context.n, "seed": context.seed}
    return dataset


def compute_addition(context: Context) -> xr.Dataset:
    """Over (step, group) how many pairs the circuit alone adds, ``accuracy``, and without its MLP, ``direct_accuracy``;
    pair by pair ``correct`` over (step, n1, n2); and those of a fresh model.
    """
    task: Any = context.run.config.task

    def measure(model: Transformer) -> xr.Dataset:
        return add_alone(model, task)

    dataset = measure_every_step(context, measure)
    fresh = measure(untrained_model(context))
    for name in ("accuracy", "accuracy_low", "accuracy_high"):
        dataset[f"{UNTRAINED}{name}"] = fresh[name]
    dataset["is_trained"] = (("n1", "n2"), task.pairs.is_trained.astype(np.int8))
    return dataset


def compute_answer_probes(context: Context) -> xr.Dataset:
    """Over (condition, position) what linear probes read of the answer, last checkpoint; pairs are fitted on or tested on."""
    from bindscope.measures.arithmetic.addition import PLACES, ProbeSums, probe_answers
    from bindscope.measures.evaluation import read_answers

    run = context.run
    if not run.steps:
        raise NotTestable("no checkpoint was kept yet")
    task: Any = run.config.task
    rng, model = context.rng, run.checkpoint("last")
    sums = ProbeSums.draw(task, rng, context.n)
    shuffled = sums.answers[rng.permutation(len(sums.answers))]
    probed = {
        "trained": probe_answers(model, sums),
        "shuffled labels": probe_answers(model, sums, shuffled),
        "untrained model": probe_answers(untrained_model(context), sums),
    }
    hits = [[found[place].right.sum() for place in PLACES] for found in probed.values()]
    n_test = int(sums.tested.sum())
    dims = ("condition", "place")
    dataset = xr.Dataset(
        share_variables("accuracy", dims, hits, n_test), {"condition": list(probed), "place": list(PLACES)}
    )
    dataset["fit_accuracy"] = (dims, [[found[place].fit_accuracy for place in PLACES] for found in probed.values()])
    tested = task.to_batch(sums.tokens[sums.tested])
    right = read_answers(model, tested).argmax(1) == sums.answers[sums.tested]
    dataset = dataset.merge(share_variables("model_accuracy", (), right.sum(), n_test))
    dataset.attrs = {"step": run.steps[-1], "n_fit": len(sums.tested) - n_test, "n_test": n_test, "seed": context.seed}
    return dataset


def compare_vectors(
    model: Transformer, task: AssignAddTask, batches: Mapping[int, Batch], rng: np.random.Generator
) -> xr.Dataset:
    """Both comparisons of one model, for sums with none, one and two variables."""
    from bindscope.measures.arithmetic.equivalence import (
        FORM_PAIRINGS,
        SUM_PAIRINGS,
        VECTORS,
        compare_forms,
        compare_sums,
    )
    from bindscope.measures.evaluation import read_answers

    sums = {count: compare_sums(model, task, batch, rng) for count, batch in batches.items()}
    forms = {count: compare_forms(model, task, batch, rng) for count, batch in batches.items() if count}
    sum_cosines = np.array([[[found[v][p] for p in SUM_PAIRINGS] for found in sums.values()] for v in VECTORS])
    form_cosines = np.array([[found[p] for p in FORM_PAIRINGS] for found in forms.values()])
    right = [(read_answers(model, batch).argmax(1) == batch.targets[:, 0]).mean() for batch in batches.values()]
    variables = {
        **_mean_variables("sum", ("vector", "n_variables", "sum_pairing"), sum_cosines, rng),
        **_mean_variables("form", ("form_variables", "form_pairing"), form_cosines, rng),
        "sum_count": (("n_variables", "sum_pairing", "bin"), _histograms(sum_cosines[VECTORS.index("attention")])),
        "form_count": (("form_variables", "form_pairing", "bin"), _histograms(form_cosines)),
        "accuracy": ("n_variables", small(right)),
    }
    coordinates = {
        "vector": list(VECTORS),
        "n_variables": list(sums),
        "form_variables": list(forms),
        "sum_pairing": list(SUM_PAIRINGS),
        "form_pairing": list(FORM_PAIRINGS),
        "bin": (EDGES[1:] + EDGES[:-1]) / 2,
    }
    return xr.Dataset(variables, coordinates)


def add_alone(model: Transformer, task: AssignAddTask) -> xr.Dataset:
    """The circuit alone on all pairs."""
    from bindscope.measures.arithmetic.addition import answers_alone, pair_groups, right_answers
    from bindscope.measures.arithmetic.forms import SumForms

    forms, right, groups = SumForms.of(model, task), right_answers(task), pair_groups(task)
    correct = answers_alone(forms) == right
    direct = answers_alone(forms, with_mlp=False) == right
    sizes = [group.sum() for group in groups.values()]
    variables = {
        **share_variables("accuracy", ("group",), [correct[group].sum() for group in groups.values()], sizes),
        **share_variables("direct_accuracy", (), direct.sum(), direct.size),
        "n": count_variable(("group",), sizes),
        "correct": (("n1", "n2"), correct.astype(np.int8)),
    }
    return xr.Dataset(variables, {"group": list(groups)})


def _mean_variables(name: str, dims: tuple[str, ...], cosines: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """Means over the last axis of ``cosines`` with bootstrap intervals."""
    ends = np.array(
        [bootstrap_interval(row, rng, n_resamples=N_RESAMPLES) for row in cosines.reshape(-1, cosines.shape[-1])]
    )
    ends = ends.reshape(*cosines.shape[:-1], 2)
    values = {"": cosines.mean(-1), "_low": ends[..., 0], "_high": ends[..., 1]}
    return {f"{name}_cosine{suffix}": (dims, small(value), {"units": "1"}) for suffix, value in values.items()}


def _histograms(cosines: np.ndarray) -> np.ndarray:
    """Counts in ``EDGES`` along the last axis."""
    rows = cosines.reshape(-1, cosines.shape[-1])
    counts = [np.histogram(np.clip(row, -1, 1), EDGES)[0] for row in rows]
    return np.array(counts, np.int16).reshape(*cosines.shape[:-1], -1)


RESULTS = (
    Result("equivalence", "what the last MLP gets", compute_equivalence, n=N_COMPARED, steps=every_step, grows=True,
           passes=7),
    Result("addition", "addition alone, pair by pair", compute_addition, steps=every_step, grows=True),
    Result("answer_probes", "probes before and after the MLP", compute_answer_probes, n=N_PROBED, steps=last_step),
)  # fmt: skip
