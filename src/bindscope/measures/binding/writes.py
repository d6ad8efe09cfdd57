"""Which write wins when a variable is assigned more than once.

A reference takes the value its variable holds *there*: the last write before it. A model may take another one. Three
situations tell, each with a rival value that differs from the right one:

- ``query``: the queried variable was written before; rival: every name means its first write;
- ``earlier``: a variable inside the chain was written before; rival as above;
- ``later``: a variable inside the chain is written again after it was referred to; rival: every name means its last
  write, also one that comes after the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run, to_host
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, columns_of, constants_by_line, programs_of, rows_of, to_digits
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH
from bindscope.tasks.binding.programs import Programs
from bindscope.tasks.binding.rewrites import SITUATIONS
from bindscope.tasks.binding.sampler import Grammar, sample_questions
from bindscope.tasks.task import Batch

OUTCOMES = ("right", "rival", "another constant of the program", "none of its constants")
N_CANDIDATES = 40_000  # programs that the questions are chosen from


@dataclass(frozen=True, eq=False)
class RewrittenQuestions:
    """Questions in which exactly one situation holds, with the rival's answer."""

    batch: Batch
    situation: np.ndarray  # [question] index into SITUATIONS
    rival: np.ndarray  # [question] digit


def sample_rewritten(
    task: BindingTask, rng: np.random.Generator, n_each: int, reassign: float = 0.3
) -> RewrittenQuestions:
    """``n_each`` questions of each situation, drawn from programs like the task's with reassignment.

    >>> questions = sample_rewritten(BindingTask(lines=6, max_depth=3), np.random.default_rng(0), 400)
    >>> fraction_of_writes(model, questions).right.values
    """
    grammar = Grammar(task.n_variables, task.n_constants, task.max_depth, task.p_constant, task.exponent, reassign)
    programs, queries = sample_questions(rng, grammar, N_CANDIDATES, task.lines, balance="weights")
    situation, rival = classify_rewrites(programs, queries[:, 0])
    found = [np.flatnonzero(situation == index)[:n_each] for index in range(len(SITUATIONS))]
    if min(map(len, found)) < n_each:
        raise BindscopeError(
            f"reassignment: {N_CANDIDATES:,} programs of {task.lines} lines hold fewer than {n_each} questions of each "
            "situation; use more lines, a larger max_depth or fewer questions."
        )
    rows = np.concatenate(found)
    return RewrittenQuestions(task.ask(programs.take(rows), queries[rows]), situation[rows], rival[rows])


def fraction_of_writes(model: Transformer, questions: RewrittenQuestions) -> xr.Dataset:
    """Which value the model answers with: fractions over (situation, outcome) and how many questions each has."""
    batch = questions.batch
    predicted = to_digits(batch, read_answers(model, batch).argmax(1))  # [question]
    constants = constants_by_line(rows_of(batch), int(batch.labels["lines"][0, 0]))  # [question, line]
    present = (predicted[:, None] == constants).any(1) & (predicted >= 0)  # -1: neither a digit nor a constant
    is_right, is_rival = predicted == to_digits(batch, batch.targets[:, 0]), predicted == questions.rival
    outcome = np.select([is_right, is_rival, present], [0, 1, 2], 3)
    count = np.zeros((len(SITUATIONS), len(OUTCOMES)))
    np.add.at(count, (questions.situation, outcome), 1)
    n = count.sum(1)
    return xr.Dataset(
        {"write_fraction": (("situation", "outcome"), count / n[:, None]), "n_write": ("situation", n)},
        {"situation": list(SITUATIONS), "outcome": list(OUTCOMES)},
    )


def attention_to_writes(model: Transformer, questions: RewrittenQuestions, n_most: int = 64) -> xr.Dataset:
    """Where the queried variable looks when it was written before: attention over (layer, head, write).

    From its position in the query to what stands right of its first and of its last assignment, over the first ``n_most``
    questions of the situation ``query``.
    """
    rows = np.flatnonzero(questions.situation == SITUATIONS.index("query"))[:n_most]
    batch = questions.batch.take(rows)
    programs, queries = programs_of(batch)
    asked = programs.variables[np.arange(len(rows)), queries[:, 0]]
    first = (programs.variables == asked[:, None]).argmax(1)  # [question]: line
    at = columns_of(batch)
    columns = at[np.stack([first, queries[:, 0]]) * LINE_WIDTH + LINE_PARTS.index("rhs")]  # [write, question]
    query = int(at[-2])
    sites = [f"L{layer}.pattern@{query}" for layer in range(model.config.n_layers)]
    with torch.no_grad():
        trace = run(model, torch.from_numpy(batch.tokens), read=sites)
    patterns = np.stack([to_host(trace[site][:, :, 0]).numpy() for site in sites])  # [layer, question, head, key]
    looks = np.stack(
        [patterns[:, np.arange(len(rows)), :, column].mean(0) for column in columns]
    )  # [write, layer, head]
    return xr.Dataset(
        {"write_attention": (("write", "layer", "head"), looks)},
        {"write": ["first", "last"], "layer": range(model.config.n_layers), "head": range(model.config.n_heads)},
        {"n_attention": len(rows)},
    )


def classify_rewrites(programs: Programs, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The situation of each question (−1: none, or several, or the rival agrees) and the rival's digit, both [program].

    ``queries`` [program] are the queried lines.
    """
    earlier, later = _other_writes(programs)  # [program, line]: is the line's variable written before it, after it
    inner = chain_lines(programs, queries)  # [program, line]: lines that the chain refers to, without the queried one
    rows = np.arange(len(programs))
    holds = np.stack([earlier[rows, queries], (inner & earlier).any(1), (inner & later).any(1)])  # [situation, program]
    first, last = resolve(programs, queries, "first"), resolve(programs, queries, "last")
    situation = np.where(holds.sum(0) == 1, holds.argmax(0), -1)
    rival = np.where(situation == SITUATIONS.index("later"), last, first)
    tells = (rival >= 0) & (rival != programs.value[rows, queries])
    return np.where(tells, situation, -1), rival


def resolve(programs: Programs, queries: np.ndarray, write: str) -> np.ndarray:
    """The answer [program] if every name meant its ``first`` or its ``last`` write; −1 where that runs in a circle."""
    rows = np.arange(len(programs))
    same = programs.variables[:, :, None] == programs.variables[:, None, :]  # [program, line, other line]
    lines = np.arange(programs.n_lines)
    found = same.argmax(2) if write == "first" else np.where(same, lines, -1).max(2)  # [program, line]
    line = found[rows, queries]
    for _ in lines:
        origin = programs.reference[rows, line]
        line = np.where(origin < 0, line, found[rows, origin])
    return np.where(programs.is_constant[rows, line], programs.source[rows, line], -1).astype(np.int64)


def chain_lines(programs: Programs, queries: np.ndarray) -> np.ndarray:
    """[program, line]: whether the chain of the queried line goes through the line, without the queried one itself."""
    rows = np.arange(len(programs))
    inside = np.zeros(programs.variables.shape, bool)
    line = programs.reference[rows, queries]
    while (line >= 0).any():
        inside[rows[line >= 0], line[line >= 0]] = True
        line = np.where(line < 0, -1, programs.reference[rows, line])
    return inside


def _other_writes(programs: Programs) -> tuple[np.ndarray, np.ndarray]:
    same = programs.variables[:, :, None] == programs.variables[:, None, :]  # [program, line, other line]
    before = np.tri(programs.n_lines, k=-1, dtype=bool)  # [line, other line]
    return (same & before).any(2), (same & before.T).any(2)
