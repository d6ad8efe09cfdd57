"""Results ``equivalence``, ``addition`` and ``answer_probes``: what the last MLP gets, and what it makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.studies.framework.measuring import measure_every_step, untrained_model
from bindscope.studies.framework.results import Context, Result, every_step, last_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_COMPARED = 300  # sequences with each number of variables
N_PROBED = 6000  # sequences, of which about 30 % test the probes
UNTRAINED = "untrained_"
COMPARED = {0: "0tr", 1: "1tr", 2: "2tr"}  # number of variables → split


def compute_equivalence(context: Context) -> xr.Dataset:
    """Mean cosines with intervals and their histograms at every checkpoint: ``sum_cosine`` over (step, vector,
    n_variables, sum_pairing), ``form_cosine`` over (step, n_variables, form_pairing), and those of a fresh model.
    """
    from bindscope.measures.arithmetic.equivalence import compare_vectors

    task: Any = context.run.config.task
    rng = context.rng
    batches = {count: task.sample_split(rng, context.n, split) for count, split in COMPARED.items()}

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
    from bindscope.measures.arithmetic.addition import add_alone

    task: Any = context.run.config.task
    dataset = measure_every_step(context, lambda model: add_alone(model, task))
    fresh = add_alone(untrained_model(context), task)
    for name in ("accuracy", "accuracy_low", "accuracy_high"):
        dataset[f"{UNTRAINED}{name}"] = fresh[name]
    dataset["is_trained"] = (("n1", "n2"), task.pairs.is_trained.astype(np.int8))
    return dataset


def compute_answer_probes(context: Context) -> xr.Dataset:
    """Over (condition, position) what linear probes read of the answer, last checkpoint; pairs are fitted on or tested on."""
    from bindscope.measures.arithmetic.addition import PROBED, ProbeSums, probe_answers
    from bindscope.measures.evaluation import read_answers

    run = context.run
    if not run.steps:
        raise NotYet("no checkpoint was saved yet")
    task: Any = run.config.task
    rng, model = context.rng, run.checkpoint("last")
    sums = ProbeSums.draw(task, rng, context.n)
    shuffled = sums.answers[rng.permutation(len(sums.answers))]
    probed = {
        "trained": probe_answers(model, sums),
        "shuffled labels": probe_answers(model, sums, shuffled),
        "untrained model": probe_answers(untrained_model(context), sums),
    }
    hits = [[found[site].right.sum() for site in PROBED] for found in probed.values()]
    n_test = int(sums.tested.sum())
    dims = ("condition", "site")
    dataset = xr.Dataset(
        fraction_variables("accuracy", dims, hits, n_test), {"condition": list(probed), "site": list(PROBED)}
    )
    dataset["fit_accuracy"] = (dims, [[found[site].fit_accuracy for site in PROBED] for found in probed.values()])
    tested = task.to_batch(sums.tokens[sums.tested])
    right = read_answers(model, tested).argmax(1) == sums.answers[sums.tested]
    dataset = dataset.merge(fraction_variables("model_accuracy", (), right.sum(), n_test))
    dataset.attrs = {"step": run.steps[-1], "n_fit": len(sums.tested) - n_test, "n_test": n_test, "seed": context.seed}
    return dataset


RESULTS = (
    Result("equivalence", "what the last MLP gets", compute_equivalence, n=N_COMPARED, steps=every_step, grows=True,
           passes=7),
    Result("addition", "addition alone, pair by pair", compute_addition, steps=every_step, grows=True),
    Result("answer_probes", "probes before and after the MLP", compute_answer_probes, n=N_PROBED, steps=last_step),
)  # fmt: skip
