"""Drawing binding programs and questions, many at once.

Each line takes a fresh variable (or, with reassignment, sometimes one already assigned). With probability
``p_constant`` it assigns a constant, else a reference to a variable in use, drawn with weight depth^exponent among
those of depth below ``max_depth``. Line 1 is always a constant. The loop runs over lines, each step for all programs;
the order of the draws is fixed, so a batch is a pure function of its generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.program import FIRST_LETTER
from bindscope.tasks.binding.programs import Programs

Balance = Literal["rejection", "weights", "none"]
LineFilter = Callable[[Programs], np.ndarray]

SMALLEST_ROUND, LARGEST_ROUND = 64, 4096  # programs a round of rejection draws, doubling from round to round
MOST_CANDIDATES = 1_000_000  # a question not found among so many is refused as impossible
BELOW_ONE = np.float32(1 - 2.0**-20)  # keeps draw · total strictly below the total


@dataclass(frozen=True, eq=False)
class Grammar:
    """What programs are drawn from."""

    n_variables: int = 26
    n_constants: int = 10
    max_depth: int = 4
    p_constant: float = 0.5
    exponent: float = 3.0
    reassign: float = 0.0
    first_constants: tuple[int, int] = (1, 1)  # with how many constants a program begins, each number alike
    branches: bool = True  # whether a variable may be referred to by more than one line
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

    With several queries ``rejection`` keeps only programs that have nearly every depth, and of short programs little
    else than single chains: ``weights`` suits shared prefixes better.
    """
    wanted = None
    if balance == "rejection":
        depths = range(1, min(grammar.max_depth, n_lines) + 1) if depths is None else depths
        wanted = rng.integers(depths.start, depths.stop, (n_programs, n_queries), dtype=np.int8)  # [program, query]

    def weigh(programs: Programs, rows: np.ndarray) -> np.ndarray:
        askable = _askable(programs, depths, eligible)
        return _weigh_lines(programs, askable, balance, None if wanted is None else wanted[rows])

    n_spares = 0 if wanted is None and eligible is None else _count_spares(n_programs)
    drawn = sample_programs(rng, grammar, n_programs + n_spares, n_lines)
    programs, spares = drawn.take(slice(n_programs)), drawn.take(slice(n_programs, None))
    weights = weigh(programs, np.arange(n_programs))  # [program, query or 1, line]
    pending = np.flatnonzero(_has_nothing_to_ask(weights))
    if len(pending):
        _replace_programs(rng, grammar, programs, pending, spares, weigh)
        weights[pending] = weigh(programs.take(pending), pending)
    return programs, _draw_lines(weights, rng.random((n_programs, n_queries)) * BELOW_ONE)


def sample_programs(rng: np.random.Generator, grammar: Grammar, n_programs: int, n_lines: int) -> Programs:
    """Programs of ``n_lines`` lines, as the rule draws them, without any balancing."""
    if n_lines > grammar.n_variables and not grammar.reassign:
        raise BindscopeError(f"binding: {n_lines} lines need {n_lines} variables and there are {grammar.n_variables}.")
    names = rng.random((n_programs, grammar.n_variables)).argsort(1).T.astype(np.int8)  # [slot, program]
    structure = _draw_structure(rng, grammar, n_programs, n_lines)  # all that follows is [line, program]
    root = structure.origin
    for _ in range((grammar.max_depth - 1).bit_length()):
        root = root.take(root)  # each time twice as far up the chain; a constant is its own origin
    slot = structure.slot
    variables = names[:n_lines] if slot is None else names[slot, np.arange(n_programs)]
    digits = _draw_constants(rng, grammar, variables)
    line_of = np.repeat(np.arange(n_lines, dtype=np.int8)[:, None], n_programs, axis=1)
    is_constant = structure.depth == 1
    by_line = Programs(
        variables=variables,
        reference=np.where(is_constant, np.int8(-1), line_of.take(structure.origin)),
        source=np.where(is_constant, digits, variables.take(structure.origin) + np.int8(FIRST_LETTER)),
        value=digits.take(root),
        depth=structure.depth,
        root=line_of.take(root),
        is_constant=is_constant,
        live=structure.live,
    )
    return Programs(*(getattr(by_line, field.name).T for field in fields(Programs)))


class _Structure(NamedTuple):
    """Which line refers to which; each array is [line, program]."""

    slot: np.ndarray | None  # which of the variables in order of first use is assigned; None: a new one on each line
    origin: np.ndarray  # flat index into [line, program] of the line referred to, of the line itself for a constant
    depth: np.ndarray
    live: np.ndarray


def _draw_structure(rng: np.random.Generator, grammar: Grammar, n_programs: int, n_lines: int) -> _Structure:
    shape = (n_lines, n_programs)
    extends = rng.random(shape, np.float32) >= grammar.p_constant
    reference_draw = rng.random(shape, np.float32) * BELOW_ONE
    fewest, most = grammar.first_constants
    if most > 1:
        n_first = rng.integers(fewest, most + 1, n_programs)
        extends &= np.arange(n_lines)[:, None] >= n_first
    depths = np.arange(grammar.max_depth + 1, dtype=np.float32)
    weight_of_depth = np.maximum(depths, 1) ** np.float32(grammar.exponent)  # by depth, which is 1 or more
    weight_of_depth[grammar.max_depth] = 0  # a chain of full depth is never extended
    weights, summed = (
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
    )  # summed: weights, cumulated down the lines
    origin, columns = np.arange(n_lines * n_programs).reshape(shape), np.arange(n_programs)
    depth, live = np.zeros(shape, np.int8), np.ones(shape, bool)
    slots = _Slots(rng, grammar, shape) if grammar.reassign else None
    for line in range(n_lines):
        if slots:
            slots.choose(line, live, weights)
            weights[:line].cumsum(0, out=summed[:line])
        if line:
            # the line whose part of the sum holds the draw; where nothing can be extended, the line itself
            passed = summed[:line] <= reference_draw[line] * summed[line - 1]
            chosen = np.add.reduce(passed.view(np.int8), axis=0, dtype=np.int64)
            np.copyto(origin[line], chosen * n_programs + columns, where=extends[line])
            if not grammar.branches:
                weights.ravel()[origin[line][extends[line]]] = 0
                weights[:line].cumsum(0, out=summed[:line])
        depth[line] = depth.take(origin[line]) + 1  # a constant finds its own depth, still 0
        weights[line] = weight_of_depth.take(depth[line])
        summed[line] = weights[line] + summed[line - 1] if line else weights[line]
    return _Structure(slots.chosen if slots else None, origin, depth, live)


class _Slots:
    """Chooses which variable each line assigns when variables may be assigned again."""

    def __init__(self, rng: np.random.Generator, grammar: Grammar, shape: tuple[int, int]) -> None:
        self.chosen = np.zeros(shape, np.int64)  # [line, program]
        self.again = rng.random(shape, np.float32) < grammar.reassign
        self.which = rng.random(shape, np.float32) * BELOW_ONE
        self.n_variables = grammar.n_variables
        self.columns = np.arange(shape[1])
        self.in_use = np.zeros(shape[1], np.int64)
        self.latest = np.zeros((grammar.n_variables, shape[1]), np.int64)  # [slot, program]: its latest line

    def choose(self, line: int, live: np.ndarray, weights: np.ndarray) -> None:
        """Fill ``chosen[line]``. A line that is overwritten is no longer live and can no longer be referred to."""
        again = (self.in_use > 0) & (self.again[line] | (self.in_use == self.n_variables))
        slot = np.where(again, (self.which[line] * self.in_use).astype(np.int64), self.in_use)
        overwritten, column = self.latest[slot, self.columns][again], self.columns[again]
        live[overwritten, column] = False
        weights[overwritten, column] = 0
        self.latest[slot, self.columns] = line
        self.in_use += ~again
        self.chosen[line] = slot


def _draw_constants(rng: np.random.Generator, grammar: Grammar, variables: np.ndarray) -> np.ndarray:
    """A constant for each line [line, program], uniform over those that its variable may be assigned."""
    draw = rng.random(variables.shape, np.float32) * BELOW_ONE
    if grammar.assignable is None:
        return (draw * np.float32(grammar.n_constants)).astype(np.int8)
    choices = np.argsort(~grammar.assignable, axis=1, kind="stable").astype(np.int8)  # the assignable ones first
    rank = (draw * grammar.assignable.sum(1)[variables]).astype(np.int8)
    return choices[variables, rank]


def _askable(programs: Programs, depths: range | None, eligible: LineFilter | None) -> np.ndarray:
    """Lines [program, line] that a query may ask about."""
    askable = programs.live if eligible is None else programs.live & eligible(programs)
    return askable if depths is None else askable & (programs.depth >= depths.start) & (programs.depth < depths.stop)


def _weigh_lines(programs: Programs, askable: np.ndarray, balance: Balance, wanted: np.ndarray | None) -> np.ndarray:
    """How likely each line is to be asked about: [program, query or 1, line]."""
    if wanted is not None:
        return askable[:, None, :] & (programs.depth[:, None, :] == wanted[:, :, None])
    if balance == "none":
        return askable[:, None, :]
    same_depth = np.ones(askable.shape, np.int8)  # [program, line]: how many askable lines are as deep
    for depth in range(1, int(programs.depth.max()) + 1):
        of_depth = askable & (programs.depth == depth)
        np.copyto(same_depth, of_depth.sum(1, dtype=np.int8)[:, None], where=of_depth)
    return (askable / same_depth)[:, None, :]


def _has_nothing_to_ask(weights: np.ndarray) -> np.ndarray:
    """Programs [program] that lack a line for one of their queries."""
    return weights.max(2).min(1) == 0


def _draw_lines(weights: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """A line by its weight for each draw [program, query]."""
    cumulative = weights.cumsum(2, dtype=np.int8 if weights.dtype == bool else float)  # [program, query or 1, line]
    threshold = draw * cumulative[:, :, -1]
    return (cumulative > threshold[:, :, None]).argmax(2)


def _count_spares(n_programs: int) -> int:
    """How many candidates to draw along with the programs themselves, where a round of its own would cost more."""
    return 16 + n_programs // 16


def _replace_programs(
    rng: np.random.Generator,
    grammar: Grammar,
    programs: Programs,
    pending: np.ndarray,
    candidates: Programs,
    weigh: Callable[[Programs, np.ndarray], np.ndarray],
) -> None:
    """Replace the pending rows in place, each by its own first candidate that has something to ask."""
    n_candidates = 0
    while True:
        rows = np.resize(pending, len(candidates))  # candidates are dealt out to the pending rows in turn
        accepted = np.flatnonzero(~_has_nothing_to_ask(weigh(candidates, rows)))
        chosen = np.full(len(programs), -1)
        chosen[rows[accepted][::-1]] = accepted[::-1]  # the last to be written, so the first, stays
        filled = pending[chosen[pending] >= 0]
        for field in fields(Programs):
            getattr(programs, field.name)[filled] = getattr(candidates, field.name)[chosen[filled]]
        pending = pending[chosen[pending] < 0]
        if not len(pending):
            return
        n_candidates += len(candidates)
        if n_candidates > MOST_CANDIDATES + 100 * len(programs):
            raise BindscopeError(
                f"binding: found no program for {len(pending)} of {len(programs)} questions among {n_candidates:,} of "
                f"{programs.n_lines} lines; ask for smaller depths (max_depth), use more lines or a smaller "
                "p_constant, or set balance = 'weights'."
            )
        n_drawn = min(max(SMALLEST_ROUND, 2 * len(candidates)), LARGEST_ROUND)
        candidates = sample_programs(rng, grammar, n_drawn, programs.n_lines)
