"""Result ``score_terms``: why = attends in layer 2 to an operand's value, by variable and operand, at every checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from bindscope.measures.arithmetic.by_variable import OPERANDS, ask_one_variable
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import PACKED, measure_every_step, round_bits
from bindscope.studies.framework.results import Context, Result, every_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_SUMS = 60  # of each variable as each operand
N_BITS = 12


def compute_score_terms(context: Context) -> xr.Dataset:
    """Over (step, variable, operand) the nine terms of the score, ``term`` (…, query_part, key_part), and over (step,
    variable) ``last_position_to_variable``; of the last checkpoint ``token_ov`` and ``token_qk2`` (``measures``'
    ``token_matrices``).
    """
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.score_terms import describe_scores, token_matrices

    task: Any = context.run.config.task
    rng = context.rng
    sums = {
        (name, operand): ask_one_variable(task, rng, context.n, index, operand).tokens[: context.n]
        for index, name in enumerate(task.sequences.variables)
        for operand in OPERANDS
    }

    def measure(model: Transformer) -> xr.Dataset:
        return describe_scores(SumForms.of(model, task), task, sums)

    dataset = measure_every_step(context, measure)
    dataset = dataset.merge(token_matrices(SumForms.of(context.run.checkpoint("last"), task), task))
    for name in dataset.data_vars:
        attributes = dataset[name].attrs
        dataset[name] = (dataset[name].dims, round_bits(dataset[name].values, N_BITS), attributes)
        dataset[name].encoding = {**PACKED, "shuffle": True}
    dataset.attrs = {"title": "the score of = in layer 2 by its nine terms", "n": context.n, "seed": context.seed}
    return dataset


RESULTS = (
    Result("score_terms", "the score of = in layer 2 by its nine terms", compute_score_terms, n=N_SUMS,
           steps=every_step, passes=12, grows=True),
)  # fmt: skip

DRAWINGS = (
    Drawing(
        "score-terms",
        "The score that = gives a value in layer 2, by its nine terms",
        ("score_terms", "trajectory"),
        defer(f"{__package__}.draw", "draw_terms"),
    ),
    Drawing(
        "token-maps",
        "What both layers make of every token, and the scores between tokens and their copies",
        ("score_terms",),
        defer(f"{__package__}.draw_tokens", "draw_token_maps"),
    ),
)
