"""Drawing binding programs and questions, many at once.

Each line takes a fresh variable (or, with reassignment, sometimes one already assigned). With probability
``p_constant`` it assigns a constant, else a reference to a variable in use, drawn with weight depth^exponent among
those of depth below ``max_depth``. Line 1 is always a constant. Programs and lines are drawn line by line for the whole
batch; the order of the draws is fixed, so a batch is a pure function of its generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.program import FIRST_LETTER
from bindscope.tasks.binding.programs import Programs

Balance = Literal["rejection", "weights", "none"]
LineFilter = Callable[[Programs], np.ndarray]

CANDIDATES_A_ROUND = 64  # what a round of rejection draws at least, when few rows are left
MOST_CANDIDATES = 1_000_000  # a question not found among so many is refused as impossible
BELOW_ONE = 1 - 2.0**-40  # keeps draw · total strictly below the total


@dataclass(frozen=True, eq=False)
class Grammar:
    """What programs are drawn from."""

    n_variables: int = 26
    n_constants: int = 10
    max_depth: int = 4
    p_constant: float = 0.5
    exponent: float = 3.0
    reassign: float = 0.0
    assignable: np.ndarray | None = None  # [variable, constant] bool: direct assignments that may appear; None: all


def sample_questions(
    rng: np.random.Generator,
    grammar: Grammar,
    n_programs: int,
    n_lines: int,
    n_queries: int = 1,
    balance: Balance = "rejection",
    depths: range | None = None,
    eligible: LineFilter | None = None,
) -> tuple[Programs, np.ndarray]:
    """Programs and the lines [program, query] that are asked about, among those that ``eligible`` marks.

    ``rejection``: each queried depth is drawn uniformly from ``depths`` (default 1 to the deepest that ``n_lines`` can
    hold) and its program is drawn again until it has all its queried depths. ``weights``: one program, in which every
    depth that it has is equally likely. ``none``: every line is equally likely.
    """
    wanted = None
    if balance == "rejection":
        depths = range(1, min(grammar.max_depth, n_lines) + 1) if depths is None else depths
        wanted = rng.integers(depths.start, depths.stop, (n_programs, n_queries))  # [program, query]

    def accept(programs: Programs, rows: np.ndarray) -> np.ndarray:
        counts = _count_depths(programs, _askable(programs, depths, eligible))  # [program, depth]
        asked = counts if wanted is None else np.take_along_axis(counts, wanted[rows], axis=1)
        return asked.max(1) > 0 if wanted is None else asked.min(1) > 0

    programs = sample_programs(rng, grammar, n_programs, n_lines)
    pending = np.flatnonzero(~accept(programs, np.arange(n_programs)))
    _redraw(rng, grammar, programs, pending, accept)
    weights = _query_weights(programs, balance, wanted, _askable(programs, depths, eligible))
    return programs, _draw_lines(weights, rng.random((n_programs, n_queries)) * BELOW_ONE)


def sample_programs(rng: np.random.Generator, grammar: Grammar, n_programs: int, n_lines: int) -> Programs:
    """Programs of ``n_lines`` lines, as the rule draws them, without any balancing."""
    names = rng.random((n_programs, grammar.n_variables)).argsort(1)  # [program, slot]: slot k is the k-th new variable
    digit_draw = rng.random((n_lines, n_programs)).T  # [program, line]
    slot, origin, depth, root, live = _draw_structure(rng, grammar, n_programs, n_lines)  # each [program, line]
    variables = np.take_along_axis(names, slot, axis=1)
    is_constant = depth == 1
    digits = _draw_constants(grammar, variables, digit_draw)
    referred = np.take_along_axis(variables, origin, axis=1) + FIRST_LETTER
    return Programs(
        variables=variables,
        is_constant=is_constant,
        reference=np.where(is_constant, -1, origin),
        source=np.where(is_constant, digits, referred),
        value=np.take_along_axis(digits, root, axis=1),
        depth=depth,
        root=root,
        live=live,
    )


def _draw_structure(
    rng: np.random.Generator, grammar: Grammar, n_programs: int, n_lines: int
) -> tuple[np.ndarray, ...]:
    """Which line refers to which. A constant is its own origin."""
    constant_draw = rng.random((n_lines, n_programs)) < grammar.p_constant  # [line, program], as all below
    reference_draw = rng.random((n_lines, n_programs)) * BELOW_ONE
    weight_of_depth = np.arange(1, grammar.max_depth + 2, dtype=float) ** grammar.exponent
    weight_of_depth[grammar.max_depth - 1 :] = 0  # a chain of full depth is never extended
    columns = np.arange(n_programs)
    shape = (n_lines, n_programs)
    weights, shares = np.zeros(shape), np.zeros(shape)  # shares: weights summed over the lines up to each
    origin, depth = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    root = np.repeat(np.arange(n_lines)[:, None], n_programs, axis=1)
    slot, live = root.copy(), np.ones(shape, bool)
    assigner = _Reassigner(rng, grammar, shape) if grammar.reassign else None
    for line in range(n_lines):
        if assigner:
            slot[line] = assigner.choose_slot(line, live, weights)
            weights[:line].cumsum(0, out=shares[:line])
        if line:
            total = shares[line - 1]
            chosen = (shares[:line] <= reference_draw[line] * total).sum(0)  # the first line whose share holds the draw
            constant = constant_draw[line] | (total == 0)
            origin[line] = np.where(constant, line, chosen)
        place = origin[line] * n_programs + columns
        depth[line] = depth.take(place) + 1  # a constant finds its own depth, still 0, and its own root
        root[line] = root.take(place)
        weights[line] = weight_of_depth.take(depth[line] - 1)
        shares[line] = weights[line] + (shares[line - 1] if line else 0)
    return slot.T, origin.T, depth.T, root.T, live.T


class _Reassigner:
    """Chooses which variable each line assigns when variables may be assigned again."""

    def __init__(self, rng: np.random.Generator, grammar: Grammar, shape: tuple[int, int]) -> None:
        self.again = rng.random(shape) < grammar.reassign
        self.which = rng.random(shape) * BELOW_ONE
        self.n_variables = grammar.n_variables
        self.columns = np.arange(shape[1])
        self.in_use = np.zeros(shape[1], np.int64)
        self.latest = np.zeros((grammar.n_variables, shape[1]), np.int64)  # [slot, program]: its latest line

    def choose_slot(self, line: int, live: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The slot each program's line assigns; a line overwritten by it is dead and can no longer be referred to."""
        again = (self.in_use > 0) & (self.again[line] | (self.in_use == self.n_variables))
        slot = np.where(again, (self.which[line] * self.in_use).astype(np.int64), self.in_use)
        overwritten, column = self.latest[slot, self.columns][again], self.columns[again]
        live[overwritten, column] = False
        weights[overwritten, column] = 0
        self.latest[slot, self.columns] = line
        self.in_use += ~again
        return slot


def _draw_constants(grammar: Grammar, variables: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A constant for each line [program, line], uniform over those that its variable may be assigned."""
    if grammar.assignable is None:
        return (draw * grammar.n_constants).astype(np.int64)
    choices = np.argsort(~grammar.assignable, axis=1, kind="stable")  # [variable, rank]: the assignable ones first
    rank = (draw * grammar.assignable.sum(1)[variables]).astype(np.int64)
    return choices[variables, rank]


def _askable(programs: Programs, depths: range | None, eligible: LineFilter | None) -> np.ndarray:
    """Lines [program, line] that a query may ask about."""
    askable = programs.live if eligible is None else programs.live & eligible(programs)
    return askable if depths is None else askable & (programs.depth >= depths.start) & (programs.depth < depths.stop)


def _count_depths(programs: Programs, askable: np.ndarray) -> np.ndarray:
    """How many askable lines of each depth a program has: [program, depth], depth 0 left empty."""
    width = programs.n_lines + 1
    place = np.arange(len(programs))[:, None] * width + programs.depth  # [program, line]
    return np.bincount(place[askable], minlength=len(programs) * width).reshape(-1, width)


def _query_weights(programs: Programs, balance: Balance, wanted: np.ndarray | None, askable: np.ndarray) -> np.ndarray:
    """How likely each line is to be asked about: [program, query or 1, line]."""
    if wanted is not None:
        return askable[:, None, :] & (programs.depth[:, None, :] == wanted[:, :, None])
    if balance == "none":
        return askable[:, None, :]
    same_depth = np.take_along_axis(_count_depths(programs, askable), programs.depth, axis=1)  # [program, line]
    return (askable / np.maximum(same_depth, 1))[:, None, :]


def _draw_lines(weights: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A line by its weight for each draw [program, query]."""
    cumulative = weights.cumsum(2)  # [program, query or 1, line]
    threshold = draw * cumulative[:, :, -1]
    return (cumulative > threshold[:, :, None]).argmax(2)


def _redraw(
    rng: np.random.Generator,
    grammar: Grammar,
    programs: Programs,
    pending: np.ndarray,
    accept: Callable[[Programs, np.ndarray], np.ndarray],
) -> None:
    """Replace the pending rows in place, each by its own first accepted candidate."""
    n_candidates = 0
    while len(pending):
        rows = np.repeat(pending, -(-CANDIDATES_A_ROUND // len(pending)))
        n_candidates += len(rows)
        if n_candidates > MOST_CANDIDATES + 100 * len(programs):
            raise BindscopeError(
                f"binding: found no program for {len(pending)} of {len(programs)} questions among {n_candidates:,} of "
                f"{programs.n_lines} lines; ask for smaller depths (max_depth), use more lines or a smaller "
                "p_constant, or set balance = 'weights'."
            )
        candidates = sample_programs(rng, grammar, len(rows), programs.n_lines)
        accepted = np.flatnonzero(accept(candidates, rows))
        filled, first = np.unique(rows[accepted], return_index=True)
        for field in fields(Programs):
            getattr(programs, field.name)[filled] = getattr(candidates, field.name)[accepted[first]]
        pending = np.setdiff1d(pending, filled, assume_unique=True)
