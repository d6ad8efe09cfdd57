"""Does a model keep the state of all variables as it reads, or look values up when it is asked?

Linear probes at every layer, fitted on some programs and tested on others:

``local``    the value that this line takes over (lines such as ``y=x``), at its right-hand side and at its end
``global``   what *other* variables hold at that point, at the same positions of line 4 and later, and at the colon; a probe
             for each variable
``asked``    what the queried variable holds, at the colon

Global counts only variables whose value comes from line 3 or later and from another constant than this line's (at the colon:
the answer's), so that neither the first lines nor the line's own value can stand for it. A line's end is its line break.

Programs use few letters, so that each is assigned in most of them. ``shuffled labels`` and ``untrained model`` are the
controls; ``excess`` is how far the trained model is above the better one. Intervals are over programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.measures.binding.probes import CONDITIONS, ProbePlan, predict_linear, read_streams, shuffle_digits
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, columns_of, programs_of
from bindscope.tasks.binding.accounts import N_EARLY
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH
from bindscope.tasks.binding.programs import Programs
from bindscope.tasks.binding.sampler import sample_questions
from bindscope.tasks.task import Batch

STATES = ("local", "global", "asked")
PLACES = ("right-hand side", "line end", "colon")
IN_LINE = {"right-hand side": LINE_PARTS.index("rhs"), "line end": LINE_PARTS.index("newline")}
N_LETTERS = 8
FIRST_LINE = N_EARLY + 1  # the first line, counted from 0, before which others may have late values
FITTED = 0.75  # of the programs
TRAINED, SHUFFLED, UNTRAINED = CONDITIONS
Hits = tuple[np.ndarray, np.ndarray]  # right answers and questions, both [program]
Cell = tuple[str, str]  # state and place
Found = dict[tuple[Cell, int], Hits]  # by cell and layer


@dataclass(frozen=True, eq=False)
class StatePrograms:
    """Programs to fit probes on, and to test them on."""

    fit: Batch
    test: Batch


@dataclass(frozen=True, eq=False)
class Labels:
    """The digits [program, label] that probes read at one position, −1 where there is none to read."""

    cell: Cell
    position: int
    digits: np.ndarray


def draw_state_programs(task: BindingTask, rng: np.random.Generator, n: int) -> StatePrograms:
    """``n`` programs of the task over its first letters, with one question each."""
    n_letters = min(task.n_variables, N_LETTERS)
    known = task.grammar.assignable
    grammar = replace(task.grammar, n_variables=n_letters, assignable=None if known is None else known[:n_letters])
    batch = task.ask(*sample_questions(rng, grammar, n, task.lines, balance="weights"))
    n_fit = int(FITTED * n)
    return StatePrograms(batch.take(slice(n_fit)), batch.take(slice(n_fit, None)))


def measure_states(
    model: Transformer, drawn: StatePrograms, untrained: Found, generator: torch.Generator
) -> xr.Dataset:
    """``accuracy`` over (condition, state, place, layer) and ``excess``, with its interval, over (state, place, layer).

    ``untrained`` is what ``probe_states`` gives of a fresh model; it is the same for every checkpoint.
    """
    labels = label_states(drawn.fit)
    shuffled = [replace(each, digits=shuffle_digits(each.digits, generator)) for each in labels]
    trained, control = probe_states(model, drawn, labels, shuffled)
    found = {TRAINED: trained, SHUFFLED: control, UNTRAINED: untrained}
    return tabulate_states(found, model.config.n_layers + 1).assign_attrs(n_fit=len(drawn.fit), n_test=len(drawn.test))


def probe_states(model: Transformer, drawn: StatePrograms, *kinds: list[Labels]) -> list[Found]:
    """What probes fitted to each kind of labels read: right answers and questions of each program, by cell and layer."""
    answers, found = label_states(drawn.test), [Found() for _ in kinds]
    layers, positions = range(model.config.n_layers + 1), range(len(columns_of(drawn.fit)))
    for layer, fit, test in read_streams(model, drawn.fit, drawn.test, layers, positions):
        for by_cell, scored in zip(found, score_probes(fit, test, kinds, answers)):
            by_cell.update({(cell, layer): hits for cell, hits in scored.items()})
    return found


def score_probes(
    fit: Tensor, test: Tensor, kinds: Sequence[list[Labels]], answers: list[Labels]
) -> list[dict[Cell, Hits]]:
    """What probes on streams [position, program, feature], fitted to each kind of labels, read of the test programs."""
    found: list[dict[Cell, Hits]] = [{} for _ in kinds]
    for index, answer in enumerate(answers):
        at = slice(answer.position, answer.position + 1)
        predictions = predict_linear(fit[at], [labels[index].digits for labels in kinds], test[at], ProbePlan().ridge)
        there = answer.digits >= 0  # [program, label]
        for by_cell, predicted in zip(found, predictions):
            right, asked = by_cell.get(answer.cell, (0, 0))
            hits = ((predicted[0] == answer.digits) & there).sum(1)
            by_cell[answer.cell] = (right + hits, asked + there.sum(1))
    return found


def label_states(batch: Batch) -> list[Labels]:
    """What there is to read where, in programs with one question each."""
    programs, queries = programs_of(batch)
    held, roots = trace_states(programs)
    rows, labels = np.arange(len(programs)), []
    for line in range(FIRST_LINE, programs.n_lines):
        copied = np.where(programs.is_constant[:, line], -1, programs.value[:, line])[:, None]
        others = _other_digits(held[line], roots[line], programs.root[:, line])
        for place, part in IN_LINE.items():
            position = LINE_WIDTH * line + part
            labels += [Labels(("local", place), position, copied), Labels(("global", place), position, others)]
    asked_root, colon = programs.root[rows, queries[:, 0]], len(columns_of(batch)) - 1
    asked = np.where(asked_root >= N_EARLY, programs.value[rows, queries[:, 0]], -1)[:, None]
    return [
        *labels,
        Labels(("asked", "colon"), colon, asked),
        Labels(("global", "colon"), colon, _other_digits(held[-1], roots[-1], asked_root)),
    ]


def trace_states(programs: Programs) -> tuple[np.ndarray, np.ndarray]:
    """What each letter holds after each line, and the line its value comes from: [line, program, letter], −1 for nothing."""
    held, roots = (np.full((programs.n_lines, len(programs), N_LETTERS), -1) for _ in range(2))
    rows = np.arange(len(programs))
    for line in range(programs.n_lines):
        if line:
            held[line], roots[line] = held[line - 1], roots[line - 1]
        held[line, rows, programs.variables[:, line]] = programs.value[:, line]
        roots[line, rows, programs.variables[:, line]] = programs.root[:, line]
    return held, roots


def tabulate_states(found: Mapping[str, Found], n_layers: int) -> xr.Dataset:
    """Accuracies and excess of what was read under each of ``CONDITIONS``."""
    shape = (len(STATES), len(PLACES), n_layers)
    accuracy = np.full((len(CONDITIONS), *shape), np.nan)
    excess = np.full((3, *shape), np.nan)  # value, low, high
    for (state, place), layer in found[TRAINED]:
        cell = STATES.index(state), PLACES.index(place), layer
        hits = {name: by_cell[(state, place), layer] for name, by_cell in found.items()}
        for index, name in enumerate(CONDITIONS):
            accuracy[(index, *cell)] = _ratio(*hits[name])[0]
        best = max((SHUFFLED, UNTRAINED), key=lambda name: hits[name][0].sum())
        excess[(slice(None), *cell)] = _ratio(hits[TRAINED][0] - hits[best][0], hits[TRAINED][1])
    dims = ("state", "place", "layer")
    variables: dict[str, Any] = {}
    variables["accuracy"] = (("condition", *dims), accuracy, {"units": "fraction"})
    for end, values in zip(("", "_low", "_high"), excess):
        variables[f"excess{end}"] = (dims, values, {"units": "fraction"})
    coords = {"condition": list(CONDITIONS), "state": list(STATES), "place": list(PLACES), "layer": np.arange(n_layers)}
    return xr.Dataset(variables, coords)


def _other_digits(held: np.ndarray, roots: np.ndarray, own_root: np.ndarray) -> np.ndarray:
    """The digits [program, letter] of variables whose value is late and comes from another constant than ``own_root``."""
    return np.where((roots >= N_EARLY) & (roots != own_root[:, None]), held, -1)


def _ratio(hits: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """Σ hits / Σ counts over programs, with the normal interval of a ratio; missing without any count."""
    n = counts.sum()
    if n == 0:
        return np.nan, np.nan, np.nan
    ratio = hits.sum() / n
    margin = 1.96 * np.sqrt(((hits - ratio * counts) ** 2).sum()) / n
    return ratio, ratio - margin, ratio + margin
