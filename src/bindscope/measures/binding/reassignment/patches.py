"""Which write's value is carried where, and which activations hold that a variable was overwritten.

Every patch takes the residual stream of one position (or of all lines after one) from the source of a pair
(``tasks/binding/rewrites.py``), at every layer in turn, and the answer says what came along:

``write``    *first* or *last*: the source's digit of that write; *unchanged*: the base's own answer; *rival*: the base's
             digit of the other write; *other*: none of these
``undone``   the answer is the source's, in which nothing was overwritten: the first write's

>>> drawn = draw_write_pairs(task, np.random.default_rng(0), 80)
>>> measure_writes(model, drawn).write.sel(situation="query", position="last write", came="last")   # over layers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.joint import joint_answers
from bindscope.measures.binding.writes import RewrittenQuestions, fraction_of_writes, sample_rewritten
from bindscope.measures.evaluation import read_answers
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, CounterfactualPairs, to_digits
from bindscope.tasks.binding.rewrites import (
    OPERATION_POSITIONS,
    OPERATIONS,
    SITUATIONS,
    WRITE_POSITIONS,
    OverwritePairs,
    WritePairs,
    sample_overwrites,
    sample_write_pairs,
)

CAME = ("first", "last", "unchanged", "rival", "other")
N_ASKED = 5  # questions for each pair: answering takes one pass, patching many


@dataclass(frozen=True, eq=False)
class DrawnWrites:
    """What one measurement is made on: drawn once, and used at every checkpoint."""

    questions: RewrittenQuestions
    writes: Mapping[str, WritePairs]
    overwrites: Mapping[str, OverwritePairs]


def draw_write_pairs(task: BindingTask, rng: np.random.Generator, n: int) -> DrawnWrites:
    """``n`` pairs of each situation and operation, and ``N_ASKED`` times as many questions of each situation."""
    return DrawnWrites(
        sample_rewritten(task, rng, N_ASKED * n, task.reassign),
        {situation: sample_write_pairs(task, rng, n, situation) for situation in SITUATIONS},
        {operation: sample_overwrites(task, rng, n, operation) for operation in OPERATIONS},
    )


def measure_writes(model: Transformer, drawn: DrawnWrites) -> xr.Dataset:
    """Fractions with Wilson intervals: ``answered`` over (situation, outcome), ``write`` over (situation, position, layer,
    came), ``undone`` over (operation, part, layer), and ``solved`` over (operation): both programs of a pair are answered
    correctly. Layers count what enters them; the last is what leaves the model.
    """
    asked = fraction_of_writes(model, drawn.questions)
    came = np.stack([label_writes(model, each) for each in drawn.writes.values()])  # [situation, position, layer, pair]
    undone = np.stack([undo_overwrites(model, each) for each in drawn.overwrites.values()])
    n = came.shape[-1]
    hits = (came[..., None] == np.arange(len(CAME))).sum(-2)  # [situation, position, layer, came]
    trials = np.where((came[..., :1] >= 0), n, 0)
    n_asked = asked.n_write.values[:, None]
    solved = [answers_both(model, each.pairs).sum() for each in drawn.overwrites.values()]
    variables: dict[str, Any] = {
        **fraction_variables("answered", ("situation", "outcome"), asked.write_fraction.values * n_asked, n_asked),
        **fraction_variables("write", ("situation", "position", "layer", "came"), hits, trials),
        **fraction_variables("undone", ("operation", "part", "layer"), undone.sum(-1), n),
        **fraction_variables("solved", ("operation",), solved, n),
    }
    coords = {
        "situation": list(SITUATIONS), "outcome": asked.outcome.values, "position": list(WRITE_POSITIONS), "came": list(CAME),
        "operation": list(OPERATIONS), "part": list(OPERATION_POSITIONS), "layer": np.arange(came.shape[2]),
    }  # fmt: skip
    return xr.Dataset(variables, coords, {"n": n, "n_asked": int(n_asked[0, 0]), "interval": "95 %, Wilson"})


def label_writes(model: Transformer, drawn: WritePairs) -> np.ndarray:
    """Which of ``CAME`` each patched answer is [position, layer, pair]; −1 where a pair has no such position."""
    marks = drawn.marks()
    digits = patched_digits(model, drawn.pairs, marks)
    own = to_digits(drawn.pairs.base, drawn.pairs.base_answers)
    rival = np.where(own == drawn.old[:, 0], drawn.old[:, 1], drawn.old[:, 0])
    labels = np.full(digits.shape, len(CAME) - 1)
    for index, digit in enumerate((drawn.new[:, 0], drawn.new[:, 1], own, rival)):
        labels[digits == digit] = index
    has = np.stack([mark.any(1) for mark in marks.values()])  # [position, pair]
    return np.where(has[:, None], labels, -1)


def undo_overwrites(model: Transformer, drawn: OverwritePairs) -> np.ndarray:
    """Whether the patched answer is the source's [part, layer, pair]."""
    digits = patched_digits(model, drawn.pairs, drawn.marks())
    undone: np.ndarray = digits == to_digits(drawn.pairs.base, drawn.pairs.counterfactual_answers)
    return undone


def patched_digits(model: Transformer, pairs: CounterfactualPairs, marks: Mapping[str, np.ndarray]) -> np.ndarray:
    """The digit that each patch makes the base answer, −1 for none: [set of marks, layer, pair]."""
    return to_digits(pairs.base, joint_answers(model, contrast_pairs(pairs), marks).values)


def answers_both(model: Transformer, pairs: CounterfactualPairs) -> np.ndarray:
    """Whether both programs of a pair [pair] are answered correctly."""
    sides = (pairs.base, pairs.counterfactual)
    base, source = (read_answers(model, side).argmax(1) == side.targets[:, 0] for side in sides)
    return base & source
