"""Programs unlike those of training: other lengths and depths, and combinations that were held out.

>>> grid = length_depth_grid(model, task, range(2, 26), range(1, 14), n=50, rng=np.random.default_rng(0))
>>> grid.accuracy.sel(lines=20, depth=2), grid.line_1_where_wrong.sel(lines=20, depth=2)

A cell asks about chains of one depth in programs of one length. Chains deeper than the task's own are allowed for
by raising ``max_depth`` to the asked depth. Where the task's own grammar hardly ever makes such a chain, the first of
``GRAMMARS`` that does takes its place; ``p_constant`` and ``exponent`` of every cell are in the dataset. Cells that no
program can fill, or that the model has no positions for, are NaN with n = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.measures.binding.predictions import SELECTIONS, Predictions, Selection, predict_answers
from bindscope.measures.binding.random_variable import count_holders
from bindscope.measures.stats.fractions import CONFIDENCE, count_variable, fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, Grammar, Programs, sample_programs, sample_questions
from bindscope.tasks.binding.rules import nearest_constants
from bindscope.tasks.binding.sampler import LineFilter
from bindscope.tasks.task import Batch

GRAMMARS = (
    (0.4, 3.0),
    (0.3, 3.0),
    (0.2, 3.0),
    (0.1, 3.0),
    (0.1, 6.0),
    (0.03, 9.0),
    (0.0, 12.0),
)  # p_constant, exponent
COMMON = 0.001  # a grammar serves a cell when at least this fraction of its programs has the asked chain …
N_TRIED = 4000  # … among so many


def length_depth_grid(
    model: Transformer,
    task: BindingTask,
    lengths: Sequence[int],
    depths: Sequence[int],
    n: int,
    rng: np.random.Generator,
    on_progress: Callable[[int, int], None] | None = None,
    selection: Selection = "all",
) -> xr.Dataset:
    """Accuracy and the line-1 heuristic over (lines, depth), with Wilson intervals.

    ``accuracy``; ``line_1``: the fraction of predictions that are line 1's constant; ``line_1_right``: how often that is
    the answer. Among the ``n_wrong`` programs where it is not: ``line_1_where_wrong``, the fraction of that constant, and
    ``accuracy_where_wrong``; among those of them that are answered incorrectly, ``line_1_by_chance``, how often the value of
    a random variable that does not hold the answer would be line 1's. The deeper the chain, the more often it starts on line 1, so that guessing line 1 looks
    like following the chain: ``selection`` = "misleading" or "conflict" asks only what tells the two apart.
    """
    _check_grid(task, lengths, depths, n)
    eligible = _line_filter(selection)
    most_lines = longest_program(model, task)
    drawn = [(row, column) for row in range(len(lengths)) for column in range(len(depths))]
    counts = {name: np.zeros((len(lengths), len(depths)), np.int64) for name in _COUNTS}
    settings = np.full((2, len(lengths), len(depths)), np.nan)
    by_chance = np.full((len(lengths), len(depths)), np.nan)
    for done, (row, column) in enumerate(drawn, start=1):
        fits = most_lines is None or lengths[row] <= most_lines
        grammar = find_grammar(task, lengths[row], depths[column], rng, eligible) if fits else None
        if grammar is not None:
            settings[:, row, column] = grammar.p_constant, grammar.exponent
            questions = _ask(task, grammar, lengths[row], depths[column], n, rng, eligible)
            predictions = predict_answers(model, questions)
            for name, count in _count(predictions).items():
                counts[name][row, column] = count
            by_chance[row, column] = _line_1_by_chance(predictions, questions)
        if on_progress is not None:
            on_progress(done, len(drawn))
    if not counts["n"].any():
        raise BindscopeError(
            f"generalisation: {_say_missing(model, most_lines, lengths)}, and that is all that was asked for; "
            "ask for longer programs or smaller depths."
            if most_lines is None or min(lengths) <= most_lines
            else f"generalisation: this model has positions for {most_lines} lines at most; ask for shorter programs."
        )
    dataset = _label_grid(counts, lengths, depths)
    dataset["p_constant"] = (("lines", "depth"), settings[0], {"units": "fraction"})
    dataset["line_1_by_chance"] = (("lines", "depth"), by_chance, {"units": "fraction"})
    dataset["exponent"] = (("lines", "depth"), settings[1], {"units": "1"})
    dataset.attrs |= {
        "selection": selection,
        "trained_lines": task.lines,
        "trained_min_lines": task.min_lines or task.lines,
        "trained_max_depth": task.max_depth,
        "missing": _say_missing(model, most_lines, lengths),
    }
    return dataset


def compare_held_out(model: Transformer, task: BindingTask, n: int, rng: np.random.Generator) -> xr.Dataset:
    """Accuracy over (split, depth) and (split,) on combinations that training showed (test) and never did (held_out)."""
    if not task.held_out:
        raise BindscopeError("generalisation: this task holds out no combinations; train one with task.held_out = 0.1.")
    splits = {name: predict_answers(model, batch) for name, batch in task.sample_evaluation(rng, n).items()}
    depths = np.arange(1, task.max_depth + 1)

    def count(mask: Callable[[Predictions], np.ndarray]) -> np.ndarray:
        return np.array(
            [[int((mask(p) & (p.attributes["depth"] == d)).sum()) for d in depths] for p in splits.values()]
        )

    right, total = count(lambda p: p.right), count(lambda p: np.ones(len(p), bool))  # [split, depth]
    dataset = xr.Dataset(
        {
            "n": count_variable(["split"], total.sum(1)),
            "n_by_depth": count_variable(["split", "depth"], total),
            **fraction_variables("accuracy", ["split"], right.sum(1), total.sum(1)),
            **fraction_variables("accuracy_by_depth", ["split", "depth"], right, total),
        },
        {"split": list(splits), "depth": depths},
    )
    dataset.attrs = {"title": "held-out combinations", "held_out": task.held_out, "confidence": CONFIDENCE}
    return dataset


def longest_program(model: Transformer, task: BindingTask) -> int | None:
    """The most lines whose tokens the model has positions for; None where positions rotate or are absent: no end."""
    if model.config.positions in ("rope", "none"):
        return None
    one, two = task.count_tokens(1), task.count_tokens(2)
    return (model.config.n_positions - one) // (two - one) + 1


def find_grammar(
    task: BindingTask, n_lines: int, depth: int, rng: np.random.Generator, eligible: LineFilter | None = None
) -> Grammar | None:
    """The task's own grammar, or the first of ``GRAMMARS`` that makes such chains often enough; None if none can."""
    if depth > n_lines or (n_lines > task.n_variables and not task.reassign):
        return None
    own = replace(task.grammar, max_depth=max(task.max_depth, depth))
    easier = [(p, e) for p, e in GRAMMARS if p < own.p_constant]
    for p_constant, exponent in [(own.p_constant, own.exponent), *easier]:
        grammar = replace(own, p_constant=p_constant, exponent=max(exponent, own.exponent))
        programs = sample_programs(rng, grammar, N_TRIED, n_lines)
        asked = (programs.depth == depth) & programs.live
        asked = asked if eligible is None else asked & eligible(programs)
        if asked.any(1).mean() >= COMMON:
            return grammar
    return None


_COUNTS = ("n", "right", "line_1", "line_1_right", "n_wrong", "line_1_where_wrong", "right_where_wrong")


def _line_filter(selection: Selection) -> LineFilter | None:
    """Which lines a selection allows to be asked about, as ``Predictions.select`` takes them."""

    def misleading(programs: Programs) -> np.ndarray:
        second = np.where(programs.is_constant[:, 1:2], programs.value[:, 1:2], -1)  # [program, 1]
        wrong = programs.value != programs.value[:, :1]  # [program, line]
        return wrong & (programs.value != second) if programs.n_lines > 1 else wrong

    def conflict(programs: Programs) -> np.ndarray:
        line_1, positional = programs.value[:, :1], nearest_constants(programs)
        return (line_1 != positional) & (programs.value != line_1) & (programs.value != positional)

    if selection not in SELECTIONS:
        raise BindscopeError(f"selection '{selection}': choose one of {', '.join(SELECTIONS)}.")
    return {"all": None, "misleading": misleading, "conflict": conflict}[selection]


def _ask(
    task: BindingTask,
    grammar: Grammar,
    n_lines: int,
    depth: int,
    n: int,
    rng: np.random.Generator,
    eligible: LineFilter | None,
) -> Batch:
    return task.ask(*sample_questions(rng, grammar, n, n_lines, depths=range(depth, depth + 1), eligible=eligible))


def _count(predictions: Predictions) -> dict[str, int]:
    line_1 = predictions.rules["line_1"]
    follows, wrong = predictions.predicted == line_1, line_1 != predictions.answers
    every, right = np.ones(len(predictions), bool), predictions.right
    masks = (every, right, follows, ~wrong, wrong, follows & wrong, right & wrong)
    return {name: int(mask.sum()) for name, mask in zip(_COUNTS, masks)}


def _line_1_by_chance(predictions: Predictions, questions: Batch) -> float:
    """How often line 1's constant would be given instead of the answer, were mistakes the values of random variables."""
    line_1 = predictions.rules["line_1"]
    mistaken = (line_1 != predictions.answers) & ~predictions.right
    if not mistaken.any():
        return float("nan")
    asked = questions.take(mistaken)
    held, rightly = (count_holders(asked, digits[mistaken]) for digits in (line_1, predictions.answers))
    return float((held / (1 - rightly)).mean())


def _label_grid(counts: dict[str, np.ndarray], lengths: Sequence[int], depths: Sequence[int]) -> xr.Dataset:
    dims = ["lines", "depth"]
    dataset = xr.Dataset(
        {
            "n": count_variable(dims, counts["n"]),
            "n_wrong": count_variable(dims, counts["n_wrong"]),
            **fraction_variables("accuracy", dims, counts["right"], counts["n"]),
            **fraction_variables("line_1", dims, counts["line_1"], counts["n"]),
            **fraction_variables("line_1_right", dims, counts["line_1_right"], counts["n"]),
            **fraction_variables("line_1_where_wrong", dims, counts["line_1_where_wrong"], counts["n_wrong"]),
            **fraction_variables("accuracy_where_wrong", dims, counts["right_where_wrong"], counts["n_wrong"]),
        },
        {"lines": list(lengths), "depth": list(depths)},
    )
    dataset.attrs = {"title": "accuracy by program length and depth", "confidence": CONFIDENCE}
    return dataset


def _check_grid(task: BindingTask, lengths: Sequence[int], depths: Sequence[int], n: int) -> None:
    if "programs" not in family_of(task).kinds:
        raise BindscopeError("generalisation: program length and depth belong to runs on programs.")
    if n < 1:
        raise BindscopeError(f"generalisation: n must be at least 1, got {n}.")
    if not lengths or not depths or min(*lengths, *depths, 1) < 1:
        raise BindscopeError("generalisation: give at least one length and one depth, all at least 1.")


def _say_missing(model: Transformer, most_lines: int | None, lengths: Sequence[int]) -> str:
    words = "cells deeper than their program is long, with more lines than variables, or hardly ever drawn, are empty"
    if most_lines is not None and max(lengths) > most_lines:
        kind = model.config.positions
        words += f"; so are those above {most_lines} lines, for which this model has no {kind} positions"
    return words
