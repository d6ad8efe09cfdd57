"""Where a model of modular addition looks: does each position of the published circuit give its weight to the position it should?

Three looks make the circuit. In layer 1 `=` attends to the two operands (columns 13 and 14), and every number of the
prefix at the variable before it; in layer 2 `=` attends to the two numbers that the operands stand for. A look is *kept*
where the largest weights stand exactly there, and its *mass* is the weight they have together.

>>> looks = measure_looks(model, task, batch.tokens)
>>> looks.kept["values"].mean(), looks.mass["values"].mean()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.forms import refuse_other_shapes
from bindscope.measures.arithmetic.reading import read_sums
from bindscope.measures.evaluation import read_answers
from bindscope.measures.stats.fractions import fraction_variables, mean_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_PREFIX, OPERAND_POSITIONS
from bindscope.tasks.task import Batch

LAYOUT = "_ a=0 _ b=1 _ _ _ c=2 _ | {}"  # where assignments stand in the mean maps; names and numbers are drawn
FORMS = {"number + number": "3+4", "variable + number": "b+4", "number + variable": "3+c", "two variables": "b+c"}
LOOKS = ("operands", "numbers", "values")
SITES = ("L0.H0.pattern", f"L1.H0.pattern@{ANSWER_POSITION}")


@dataclass(frozen=True, eq=False)
class Looks:
    """By the look's name, one number a sequence [batch]; of ``numbers`` the mean over the prefix's numbers."""

    kept: Mapping[str, np.ndarray]  # 1 where the largest weights are where they should be
    mass: Mapping[str, np.ndarray]  # the weight that is there
    equals: np.ndarray  # [batch, key]: what `=` gives to each column in layer 2


def measure_looks(model: Transformer, task: AssignAddTask, tokens: np.ndarray) -> Looks:
    """The three looks of a model over sequences [batch, 16]."""
    refuse_other_shapes(model)
    first, last = read_sums(model, tokens, SITES)
    first = first.reshape(len(tokens), tokens.shape[1], -1)  # [batch, query, key]
    equals = last.reshape(len(tokens), -1)  # [batch, key]
    operands = np.broadcast_to(OPERAND_POSITIONS, (len(tokens), 2))
    looks = {
        "operands": look_at(first[:, ANSWER_POSITION], operands),
        "numbers": _look_back(first, task, tokens),
        "values": look_at(equals, task.sequences.value_positions(tokens)),
    }
    return Looks({name: kept for name, (kept, _) in looks.items()}, {n: mass for n, (_, mass) in looks.items()}, equals)


def look_at(weights: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of weights [batch, key]: whether the two largest stand at ``columns`` [batch, 2], and how much stands there.

    >>> look_at(np.array([[0.1, 0.5, 0.4]]), np.array([[2, 1]]))
    (array([1.]), array([0.9]))
    """
    largest = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :2], axis=1)
    kept = (largest == np.sort(columns, axis=1)).all(1)
    return kept.astype(float), np.take_along_axis(weights, columns, 1).sum(1).astype(float)


def _look_back(pattern: np.ndarray, task: AssignAddTask, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a pattern [batch, query, key]: how many of a sequence's assigned numbers attend to the token before them most."""
    assigned = tokens[:, :N_PREFIX] >= task.sequences.first_variable_token
    rows, variables = np.nonzero(assigned)  # a number stands after each assigned variable
    weights = pattern[rows, variables + 1]  # [number, key]
    n_numbers = np.maximum(assigned.sum(1), 1)
    hits = np.bincount(rows, weights.argmax(1) == variables, minlength=len(tokens))
    mass = np.bincount(rows, weights[np.arange(len(rows)), variables], minlength=len(tokens))
    return hits / n_numbers, mass / n_numbers


def describe_looks(
    model: Transformer, task: AssignAddTask, splits: dict[str, Batch], other: dict[str, np.ndarray]
) -> xr.Dataset:
    """Fraction and mass of each look in each split, how much of that a shuffled sequence has, and accuracy."""
    found = {name: measure_looks(model, task, batch.tokens) for name, batch in splits.items()}
    kept = np.array([[looks.kept[look] for look in LOOKS] for looks in found.values()])  # [split, look, sequence]
    mass = np.array([[looks.mass[look] for look in LOOKS] for looks in found.values()])
    shuffled = [
        look_at(found[name].equals, task.sequences.value_positions(batch.tokens[other[name]]))
        for name, batch in splits.items()
    ]
    right = [(read_answers(model, batch).argmax(1) == batch.targets[:, 0]).mean() for batch in splits.values()]
    by_split: dict[str, Any] = {"fraction": kept.mean(2), "mass": mass.mean(2), "accuracy": right}
    by_split |= {"shuffled_fraction": [k.mean() for k, _ in shuffled], "shuffled_mass": [m.mean() for _, m in shuffled]}
    variables: dict[str, Any] = {
        name: (("split", "look")[: np.ndim(values)], np.asarray(values, np.float32), {"units": "fraction"})
        for name, values in by_split.items()
    }
    n = kept.shape[0] * kept.shape[2]
    variables |= fraction_variables("overall_fraction", ("look",), kept.mean((0, 2)) * n, n)
    masses = np.moveaxis(mass, 1, 0).reshape(len(LOOKS), n)
    variables |= mean_variables("overall_mass", ("look",), masses, np.random.default_rng(0), units="fraction")
    return xr.Dataset(variables, {"split": list(splits), "look": list(LOOKS)})


def map_forms(model: Transformer, task: AssignAddTask, rng: np.random.Generator, n: int) -> xr.Dataset:
    """Mean maps of sums whose assignments stand in the same columns, with names and numbers drawn again each time."""
    sites = [f"L{layer}.H0.pattern" for layer in range(model.config.n_layers)]
    maps = []
    for sum_text in FORMS.values():
        tokens = fill_layout(task, task.parse(LAYOUT.format(sum_text)), rng, n)
        patterns = read_sums(model, tokens, sites)  # layer → [batch, 1, query, key]
        maps.append([pattern.reshape(len(tokens), *pattern.shape[-2:]).mean(0) for pattern in patterns])
    coordinates: dict[str, Any] = {
        "form": list(FORMS),
        "layer": np.arange(1, len(sites) + 1),
        "token": (("form", "query"), [_columns(task, text) for text in FORMS.values()]),
    }
    pattern = (("form", "layer", "query", "key"), np.asarray(maps, np.float32), {"units": "fraction"})
    return xr.Dataset({"mean_pattern": pattern}, coordinates)


def fill_layout(task: AssignAddTask, row: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """``n`` copies of a sequence [16] in which every name and every number is drawn again, the same name as the same."""
    first = task.sequences.first_variable_token
    names = np.unique(row[row >= first])
    drawn = np.argsort(rng.random((n, task.n_variables)), axis=1)[:, : len(names)] + first
    rows = np.where(row < task.modulus, rng.integers(task.modulus, size=(n, len(row))), row)
    for index, name in enumerate(names):
        rows[:, row == name] = drawn[:, index : index + 1]
    return rows


def _columns(task: AssignAddTask, sum_text: str) -> list[str]:
    """What stands in each column of the layout: v, n, or the token itself."""
    row = task.parse(LAYOUT.format(sum_text))
    symbols = task.vocabulary.decode(row.tolist())
    kinds = {"PAD": "·"} | {str(number): "n" for number in range(task.modulus)}
    return [kinds.get(symbol, symbol) for symbol in symbols]
