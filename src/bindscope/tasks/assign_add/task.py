"""The task of study 2: what is sampled for training and what is held out to test each kind of generalisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.tasks.assign_add.choice import WeightedChoice
from bindscope.tasks.assign_add.drawing import LITERAL, draw_sources, make_batch
from bindscope.tasks.assign_add.kept_rows import KeptRows
from bindscope.tasks.assign_add.operators import Operator, commutes, refuse_modulus
from bindscope.tasks.assign_add.pairs import PairSplit
from bindscope.tasks.assign_add.placement import Placements, list_placements
from bindscope.tasks.assign_add.sequence import (
    MAX_ASSIGNMENTS,
    N_POSITIONS,
    N_PREFIX,
    OPERAND_POSITIONS,
    Sequence,
    SequenceFormat,
)
from bindscope.tasks.task import Batch, Task
from bindscope.tasks.vocabulary import Vocabulary

MOST_NUMBERS = 1000  # all pairs of them are listed
SPLIT_NAMES = ("0tr", "0add", "1tr", "1add", "1var", "2tr", "2add", "2var1", "2var2")


@dataclass(frozen=True, eq=False)
class _Split:
    """Rows to draw from: an operand row (two variable indices or LITERAL) by weight, then a pair (n1, n2) uniformly."""

    operands: np.ndarray  # [row, 2] int64
    n_variables: np.ndarray  # [row] int64: how many of the two are variables
    choice: WeightedChoice  # of a row
    pairs: np.ndarray  # [pair, 2] int64
    answers: np.ndarray  # [pair] int64
    swap_seen: np.ndarray | None  # [pair] bool; None where the operator does not commute

    def draw(self, rng: np.random.Generator, n_examples: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices of operand rows and of pairs, [batch] each."""
        rows = self.choice.draw(rng, n_examples)
        return rows, rng.integers(len(self.pairs), size=n_examples)


@dataclass(frozen=True)
class AssignAddTask(Task):
    """Sums modulo ``modulus`` whose operands are numbers or variables assigned earlier in the sequence.

    ``operator`` may also be a difference, a product, or the composition of a group with ``modulus`` elements (see
    ``operators``). In training the first ``n_restricted`` variables are never second operand, the last ones never first.

    Training rows are drawn uniformly over (variable, type, n1, n2), where (n1, n2) is a trained pair and a type is one
    of: two numbers; variable first; variable second; variable first and a second variable. A variable takes part in a
    type only where its position is allowed: with twelve variables, of which two are barred from either position, the
    types have 12, 10, 10 and 10 · two_variable_frequency rows, hence 12/42, 20/42 and 10/42 = 28.6 / 47.6 / 23.8 % of
    sums with none, one and two variables at frequency 1.

    ``two_variable_rows`` says what a lower frequency leaves: with ``rarer`` every sum of two variables is shown, less
    often; with ``removed``, as the authors have it, that fraction of the rows (first variable, n1, n2) is kept, drawn once
    with ``split_seed``, and the others are never shown.

    >>> task = AssignAddTask()
    >>> batch = task.sample_batch(np.random.default_rng(0), n_examples=512)
    >>> task.render(batch.tokens[0])
    'i=24 h=14 l=6 f=20 e=58 b=47 | 51+e'
    """

    family: ClassVar[str] = "assign_add"

    modulus: int = 59
    n_variables: int = 12
    pair_fraction: float = 0.7
    two_variable_frequency: float = 1.0
    split: Literal["ordered", "both_orders"] = "ordered"
    split_seed: int = 42
    operator: Operator = "+"
    n_restricted: int = 2
    two_variable_rows: Literal["rarer", "removed"] = "rarer"

    def __post_init__(self) -> None:
        if self.modulus < 2:
            raise BindscopeError(f"task.modulus: must be at least 2, got {self.modulus}.")
        if self.modulus > MOST_NUMBERS:
            raise BindscopeError(f"task.modulus: must be at most {MOST_NUMBERS}, got {self.modulus}.")
        refuse_modulus(self.operator, self.modulus)
        if self.n_restricted < 1:
            raise BindscopeError(f"task.n_restricted: must be at least 1, got {self.n_restricted}.")
        fewest = max(3, 2 * self.n_restricted)
        if not fewest <= self.n_variables <= 26:
            raise BindscopeError(
                f"task.n_variables: must lie in {fewest}..26 with task.n_restricted={self.n_restricted}, got "
                f"{self.n_variables}."
            )
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
        if self.two_variable_rows == "removed" and self.two_variable_frequency > 1:
            raise BindscopeError(
                "task.two_variable_frequency: with task.two_variable_rows 'removed' it is the fraction of rows that is "
                f"kept and must be at most 1, got {self.two_variable_frequency}."
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
        return range(self.n_variables - self.n_restricted)

    @property
    def allowed_second(self) -> range:
        """Indices of the variables that training shows as second operand."""
        return range(self.n_restricted, self.n_variables)

    def sample_batch(self, rng: np.random.Generator, n_examples: int) -> Batch:
        """Training rows: trained pairs and allowed positions only."""
        split, kept = self._training_split, self._kept_rows
        rows, pairs = split.draw(rng, n_examples)
        if kept is not None:
            rows, pairs = kept.redraw(rng, rows, pairs, split.n_variables.take(rows) == 2)
        return self._write(rng, split, rows, pairs)

    def sample_evaluation(self, rng: np.random.Generator, n_examples: int) -> dict[str, Batch]:
        """Nine splits of ``n_examples`` rows each, named by the number of variables and what is new in them.

        ``tr``: as in training. ``add``: the pair is held out. ``var``, ``var1``, ``var2``: one, exactly one, both
        variables stand where training never shows them (with trained pairs).
        """
        return {name: self._sample(rng, n_examples, split) for name, split in self._evaluation_splits.items()}

    def sample_split(self, rng: np.random.Generator, n_examples: int, name: str) -> Batch:
        """One of the nine splits."""
        return self._sample(rng, n_examples, self._find_split(name))

    def list_split(self, rng: np.random.Generator, name: str) -> Batch:
        """Every sum of one of the nine splits once: each operand row with each pair, its assignments placed at random.

        >>> len(AssignAddTask().list_split(rng, "0add"))   # all held-out pairs
        1045
        """
        split = self._find_split(name)
        n_rows, n_pairs = len(split.operands), len(split.pairs)
        return self._write(rng, split, np.repeat(np.arange(n_rows), n_pairs), np.tile(np.arange(n_pairs), n_rows))

    def count_split(self, name: str) -> int:
        """How many sums a split has, told apart by their operands and numbers."""
        split = self._find_split(name)
        return len(split.operands) * len(split.pairs)

    def parse(self, text: str) -> np.ndarray:
        """``c=1 b=17 | b+19`` to tokens [16]."""
        return self.sequences.parse(text)

    def read(self, text: str, n_positions: int | None = None) -> np.ndarray:
        """A sum that a person typed, as tokens [16]; all sums are equally long, so every model reads them."""
        return self.parse(text)

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
        operands = np.maximum(tokens[:, OPERAND_POSITIONS] - self.sequences.first_variable_token, LITERAL)
        return make_batch(
            tokens,
            operands,
            values,
            answers=self.sequences.combine(values[:, 0], values[:, 1]),
            n_variables=(operands != LITERAL).sum(axis=1),
            n_assignments=(tokens[:, :N_PREFIX] >= self.sequences.first_variable_token).sum(axis=1),
            swap_seen=self._swap_seen(values),
        )

    @cached_property
    def _kept_rows(self) -> KeptRows | None:
        """Which rows of two variables training shows; None where it shows all."""
        if self.two_variable_rows == "rarer":
            return None
        two, offset = self._rows(2), len(self._rows(0)) + len(self._rows(1))
        return KeptRows.draw(two, offset, len(self.pairs.trained), self.two_variable_frequency, self.split_seed)

    @cached_property
    def _training_split(self) -> _Split:
        none, one, two = self._rows(0), self._rows(1), self._rows(2)
        followers = np.bincount(two[:, 0])  # how many second variables each first one can have
        frequency, kept = self.two_variable_frequency, self._kept_rows
        if kept is not None:
            frequency = len(kept) / len(self.pairs.trained) / len(kept.starts)
        weights = np.concatenate([[float(self.n_variables)], np.ones(len(one)), frequency / followers[two[:, 0]]])
        return self._make_split(np.concatenate([none, one, two]), weights, self.pairs.trained)

    @cached_property
    def _evaluation_splits(self) -> dict[str, _Split]:
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
        return {name: self._make_split(rows, np.ones(len(rows)), pairs) for name, (rows, pairs) in definitions.items()}

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

    def _make_split(self, operands: np.ndarray, weights: np.ndarray, pairs: np.ndarray) -> _Split:
        return _Split(
            operands=operands,
            n_variables=(operands != LITERAL).sum(axis=1),
            choice=WeightedChoice.of(weights),
            pairs=pairs,
            answers=self.sequences.combine(pairs[:, 0], pairs[:, 1]),
            swap_seen=self._swap_seen(pairs),
        )

    def _swap_seen(self, pairs: np.ndarray) -> np.ndarray | None:
        """Whether training shows the same sum the other way round [pair]; None where that would be another sum."""
        return self.pairs.is_trained[pairs[:, 1], pairs[:, 0]] if commutes(self.operator) else None

    def _find_split(self, name: str) -> _Split:
        if name not in SPLIT_NAMES:
            raise BindscopeError(f"'{name}' is not an evaluation split.{suggest_nearest(name, SPLIT_NAMES)}")
        return self._evaluation_splits[name]

    def _sample(self, rng: np.random.Generator, n_examples: int, split: _Split) -> Batch:
        return self._write(rng, split, *split.draw(rng, n_examples))

    def _write(self, rng: np.random.Generator, split: _Split, rows: np.ndarray, pairs: np.ndarray) -> Batch:
        """Sequences of these operand rows and pairs of a split [batch each], their assignments drawn around them."""
        n_examples = len(rows)
        operands, values = split.operands.take(rows, axis=0), split.pairs.take(pairs, axis=0)  # [batch, 2]
        n_variables = split.n_variables.take(rows)
        placements = self._placements.draw(rng, needs_two=n_variables == 2)  # [batch]
        n_assignments = self._placements.n_assignments.take(placements)
        sources = draw_sources(rng, self.sequences, operands, values)  # [source, batch]
        chosen = self._placements.sources.take(placements, axis=0)  # [batch, position]
        chosen *= n_examples
        chosen += np.arange(n_examples)[:, None]
        tokens = sources.reshape(-1).take(chosen)  # [batch, position]
        swap_seen = None if split.swap_seen is None else split.swap_seen.take(pairs)
        return make_batch(tokens, operands, values, split.answers.take(pairs), n_variables, n_assignments, swap_seen)

    @property
    def _placements(self) -> Placements:
        return list_placements(min(MAX_ASSIGNMENTS, self.n_variables))
