"""The task of study 2: what is sampled for training and what is held out to test each kind of generalisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add.pairs import PairSplit
from bindscope.tasks.assign_add.sequence import (
    ANSWER_POSITION,
    MAX_ASSIGNMENTS,
    N_POSITIONS,
    N_PREFIX,
    OPERAND_POSITIONS,
    OPERATOR_POSITION,
    Operator,
    Sequence,
    SequenceFormat,
)
from bindscope.tasks.task import Batch, Layout
from bindscope.tasks.vocabulary import Vocabulary

LITERAL = -1  # stands for "a number, not a variable" wherever a variable's index is expected
N_RESTRICTED = 2  # a, b are never second operand in training; the last two variables never first
POOL_NAMES = ("0tr", "0add", "1tr", "1add", "1var", "2tr", "2add", "2var1", "2var2")


@dataclass(frozen=True, eq=False)
class _Pool:
    """Rows to draw from: an operand row (two variable indices or LITERAL) by weight, then a pair (n1, n2) uniformly."""

    operands: np.ndarray  # [row, 2] int64
    cumulative: np.ndarray  # [row] float64, ends at 1
    pairs: np.ndarray  # [pair, 2] int64


@dataclass(frozen=True)
class AssignAddTask:
    """Sums modulo ``modulus`` whose operands are numbers or variables assigned earlier in the sequence.

    Training rows are drawn uniformly over (variable, type, n1, n2), where (n1, n2) is a trained pair and a type is one
    of: two numbers; variable first; variable second; variable first and a second variable. A variable takes part in a
    type only where its position is allowed: with twelve variables, of which two are barred from either position, the
    types have 12, 10, 10 and 10 · two_variable_frequency rows, hence 12/42, 20/42 and 10/42 = 28.6 / 47.6 / 23.8 % of
    sums with none, one and two variables at frequency 1.

    >>> task = AssignAddTask()
    >>> batch = task.sample_batch(np.random.default_rng(0), n_examples=512)
    >>> task.render(batch.tokens[0])
    'k=23 f=29 _ _ e=51 l=50 c=19 | e+58'
    """

    family: ClassVar[str] = "assign_add"

    modulus: int = 59
    n_variables: int = 12
    pair_fraction: float = 0.7
    two_variable_frequency: float = 1.0
    split: Literal["ordered", "both_orders"] = "ordered"
    split_seed: int = 42
    operator: Operator = "+"

    def __post_init__(self) -> None:
        if self.modulus < 2:
            raise BindscopeError(f"task.modulus: must be at least 2, got {self.modulus}.")
        if not 2 * N_RESTRICTED <= self.n_variables <= 26:
            raise BindscopeError(f"task.n_variables: must lie in {2 * N_RESTRICTED}..26, got {self.n_variables}.")
        if not 0 < self.pair_fraction < 1:
            raise BindscopeError(f"task.pair_fraction: must lie strictly between 0 and 1, got {self.pair_fraction}.")
        if not len(self.pairs.trained) or not len(self.pairs.held_out):
            raise BindscopeError(
                f"task.pair_fraction: {self.pair_fraction} leaves no pair to train on or none to hold out at modulus"
                f" {self.modulus}; choose a value nearer 0.5."
            )
        if not 0 <= self.two_variable_frequency < float("inf"):
            raise BindscopeError(
                f"task.two_variable_frequency: must be a number ≥ 0, got {self.two_variable_frequency}."
            )

    @cached_property
    def sequences(self) -> SequenceFormat:
        return SequenceFormat(self.modulus, self.n_variables, self.operator)

    @cached_property
    def pairs(self) -> PairSplit:
        return PairSplit(self.modulus, self.pair_fraction, self.split, self.split_seed)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.sequences.vocabulary

    @property
    def n_positions(self) -> int:
        return N_POSITIONS

    @property
    def d_out(self) -> int:
        return self.modulus

    @property
    def target_kind(self) -> Literal["token", "real"]:
        return "token"

    @property
    def allowed_first(self) -> range:
        """Indices of the variables that training shows as first operand."""
        return range(self.n_variables - N_RESTRICTED)

    @property
    def allowed_second(self) -> range:
        """Indices of the variables that training shows as second operand."""
        return range(N_RESTRICTED, self.n_variables)

    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        """Training rows: trained pairs and allowed positions only."""
        return self._sample(rng, n_examples, self._training_pool)

    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """Nine pools of ``n_examples`` rows each, named by the number of variables and what is new in them.

        ``tr``: as in training. ``add``: the pair is held out. ``var``, ``var1``, ``var2``: one, exactly one, both
        variables stand where training never shows them (with trained pairs).
        """
        return {name: self._sample(rng, n_examples, pool) for name, pool in self._evaluation_pools.items()}

    def sample_pool(self, rng: np.random.Generator, n_examples: int, name: str) -> Batch:
        """One of the nine pools."""
        if name not in POOL_NAMES:
            raise BindscopeError(f"'{name}' is not an evaluation pool. Known: {', '.join(POOL_NAMES)}.")
        return self._sample(rng, n_examples, self._evaluation_pools[name])

    def parse(self, text: str) -> np.ndarray:
        """``c=1 b=17 | b+19`` to tokens [16]."""
        return self.sequences.parse(text)

    def render(self, tokens: np.ndarray) -> str:
        return self.sequences.render(tokens)

    def solve(self, tokens: np.ndarray) -> np.ndarray:
        """The true answers: tokens [..., 16] to numbers [...]."""
        return self.sequences.solve(tokens)

    def locate(self, tokens: np.ndarray) -> Sequence:
        """The structure of one sequence with the column of each of its parts."""
        return self.sequences.locate(tokens)

    def to_batch(self, tokens: np.ndarray) -> Batch:
        """Any valid rows [batch, 16] as a batch with its true answers and labels."""
        tokens = np.atleast_2d(tokens).astype(np.int64)
        values = self.sequences.operand_values(tokens)  # [batch, 2]
        operands = tokens[:, OPERAND_POSITIONS] - self.sequences.first_variable_token
        n_assignments = (tokens[:, :N_PREFIX] >= self.sequences.first_variable_token).sum(axis=1)
        return self._to_batch(tokens, np.maximum(operands, LITERAL), values, n_assignments)

    @cached_property
    def _training_pool(self) -> _Pool:
        none, one, two = self._rows(0), self._rows(1), self._rows(2)
        followers = np.bincount(two[:, 0])  # how many second variables each first one can have
        weights = np.concatenate(
            [[float(self.n_variables)], np.ones(len(one)), self.two_variable_frequency / followers[two[:, 0]]]
        )
        return _weighted_pool(np.concatenate([none, one, two]), weights, self.pairs.trained)

    @cached_property
    def _evaluation_pools(self) -> dict[str, _Pool]:
        trained, held_out = self.pairs.trained, self.pairs.held_out
        definitions = {
            "0tr": (self._rows(0), trained),
            "0add": (self._rows(0), held_out),
            "1tr": (self._rows(1), trained),
            "1add": (self._rows(1), held_out),
            "1var": (self._rows(1, n_invalid=1), trained),
            "2tr": (self._rows(2), trained),
            "2add": (self._rows(2), held_out),
            "2var1": (self._rows(2, n_invalid=1), trained),
            "2var2": (self._rows(2, n_invalid=2), trained),
        }
        return {name: _weighted_pool(rows, np.ones(len(rows)), pairs) for name, (rows, pairs) in definitions.items()}

    def _rows(self, n_operand_variables: int, n_invalid: int = 0) -> np.ndarray:
        """Every operand row with this many variables, of which ``n_invalid`` stand where training never shows them."""
        choices = range(LITERAL, self.n_variables)
        rows = [
            (first, second)
            for first in choices
            for second in choices
            if (first != LITERAL) + (second != LITERAL) == n_operand_variables
            and (first != second or first == LITERAL)
            and (first not in (LITERAL, *self.allowed_first)) + (second not in (LITERAL, *self.allowed_second))
            == n_invalid
        ]
        return np.array(rows, dtype=np.int64)  # [row, 2]

    def _sample(self, rng: np.random.Generator, n_examples: int, pool: _Pool) -> Batch:
        rows = np.searchsorted(pool.cumulative, rng.random(n_examples), side="right")
        operands = pool.operands[np.minimum(rows, len(pool.operands) - 1)]  # [batch, 2]
        values = pool.pairs[rng.integers(len(pool.pairs), size=n_examples)]  # [batch, 2]
        n_needed = np.where((operands == LITERAL).any(axis=1), 1, 2)
        n_most = min(MAX_ASSIGNMENTS, self.n_variables)
        n_assignments = n_needed + _draw_below(rng, n_most + 1 - n_needed, (n_examples,))  # [batch]
        variables, numbers = self._draw_assignments(rng, operands, values, n_assignments)
        starts = _draw_block_starts(rng, n_assignments)  # [batch, block]
        tokens = np.full((n_examples, N_POSITIONS), self.sequences.pad_token, dtype=np.int64)
        used = np.arange(MAX_ASSIGNMENTS) < n_assignments[:, None]  # [batch, block]
        flat_starts = (starts + N_POSITIONS * np.arange(n_examples)[:, None])[used]
        tokens.reshape(-1)[flat_starts] = self.sequences.first_variable_token + variables[used]
        tokens.reshape(-1)[flat_starts + 1] = numbers[used]
        tokens[:, OPERATOR_POSITION] = self.sequences.operator_token
        tokens[:, OPERAND_POSITIONS] = np.where(
            operands == LITERAL, values, self.sequences.first_variable_token + operands
        )
        tokens[:, ANSWER_POSITION] = self.sequences.equals_token
        return self._to_batch(tokens, operands, values, n_assignments)

    def _draw_assignments(
        self, rng: np.random.Generator, operands: np.ndarray, values: np.ndarray, n_assignments: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distinct variables and their numbers [batch, block], the operands' own among the first n_assignments."""
        n_examples = len(operands)
        rows = np.arange(n_examples)
        n_columns = max(MAX_ASSIGNMENTS, self.n_variables)
        keys = rng.random((n_examples, n_columns), dtype=np.float32)
        keys[:, self.n_variables :] = np.inf  # with fewer than six variables the last blocks are never used
        order = keys.argsort(axis=1)  # [batch, variable]
        numbers = rng.integers(self.modulus, size=(n_examples, MAX_ASSIGNMENTS))
        places = _draw_two_places(rng, n_assignments)  # [batch, 2]
        for operand in (0, 1):
            has_variable = operands[:, operand] != LITERAL
            row, place, wanted = rows[has_variable], places[has_variable, operand], operands[has_variable, operand]
            current = (order[row] == wanted[:, None]).argmax(axis=1)
            order[row, current] = order[row, place]
            order[row, place] = wanted
            numbers[row, place] = values[has_variable, operand]
        return order[:, :MAX_ASSIGNMENTS], numbers

    def _to_batch(
        self, tokens: np.ndarray, operands: np.ndarray, values: np.ndarray, n_assignments: np.ndarray
    ) -> Batch:
        n1, n2 = values[:, 0:1], values[:, 1:2]  # [batch, target]
        return Batch(
            tokens=tokens,
            layout=Layout(position_ids=np.arange(N_POSITIONS)),
            target_positions=np.array([ANSWER_POSITION]),
            targets=self.sequences.combine(n1, n2),
            labels={
                "n1": n1,
                "n2": n2,
                "n_variables": (operands[:, 0:1] != LITERAL).astype(np.int64) + (operands[:, 1:2] != LITERAL),
                "n_assignments": n_assignments[:, None],
                "first_variable": operands[:, 0:1],
                "second_variable": operands[:, 1:2],
                "swap_seen": self.pairs.swap_is_trained[n1, n2],
            },
        )


def split_by_swap(batch: Batch) -> dict[str, Batch]:
    """A pool of held-out pairs in two: those whose swap was trained, and those held out in both orders."""
    seen = batch.labels["swap_seen"][:, 0]
    return {"swap seen": batch.take(np.flatnonzero(seen)), "both held out": batch.take(np.flatnonzero(~seen))}


def _weighted_pool(operands: np.ndarray, weights: np.ndarray, pairs: np.ndarray) -> _Pool:
    return _Pool(operands, np.cumsum(weights / weights.sum()), pairs)


def _draw_two_places(rng: np.random.Generator, n_assignments: np.ndarray) -> np.ndarray:
    """Two different blocks among the first n_assignments of each row (the second is unused where there is one)."""
    first = _draw_below(rng, n_assignments, n_assignments.shape)
    step = 1 + _draw_below(rng, np.maximum(n_assignments - 1, 1), n_assignments.shape)
    return np.stack([first, (first + step) % n_assignments], axis=1)  # [batch, 2]


def _draw_block_starts(rng: np.random.Generator, n_assignments: np.ndarray) -> np.ndarray:
    """First columns of the blocks [batch, block]: every PAD falls into one of the n_assignments + 1 gaps."""
    n_examples, n_bins = len(n_assignments), MAX_ASSIGNMENTS + 2  # gaps 0..6, and one for the PADs a row does not have
    gaps = _draw_below(rng, n_assignments[:, None] + 1, (n_examples, N_PREFIX - 2))  # [batch, pad]
    gaps[np.arange(N_PREFIX - 2) >= N_PREFIX - 2 * n_assignments[:, None]] = n_bins - 1
    gaps += n_bins * np.arange(n_examples)[:, None]
    n_pads = np.bincount(gaps.reshape(-1), minlength=n_examples * n_bins).reshape(n_examples, n_bins)  # [batch, gap]
    return 2 * np.arange(MAX_ASSIGNMENTS) + n_pads[:, :MAX_ASSIGNMENTS].cumsum(axis=1)


def _draw_below(rng: np.random.Generator, bounds: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform integers from 0 to each bound (exclusive); several times faster than rng.integers with array bounds."""
    return (rng.random(shape) * bounds).astype(np.int64)
