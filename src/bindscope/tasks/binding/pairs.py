"""Counterfactual pairs: two programs that differ in one token, and so in their answer.

    base             a=5  b=a  c=3  #b:  → 5
    root pair        a=8  b=a  c=3  #b:  → 8      another constant at the root of the queried chain
    name pair        a=5  b=a  c=3  #c:  → 3      another variable is asked for, or referred to on the chain

Patching an activation of the counterfactual run into the base run asks whether it carries the value, or the name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH, NamedPosition, chain_positions, position_of
from bindscope.tasks.binding.program import FIRST_LETTER, Program
from bindscope.tasks.binding.programs import (
    Programs,
    ask_programs,
    ask_questions,
    tokens_to_programs,
    trace_query_chains,
)
from bindscope.tasks.binding.rendered import columns_of
from bindscope.tasks.binding.rules import nearest_constants
from bindscope.tasks.binding.sampler import sample_questions
from bindscope.tasks.binding.task import BindingTask
from bindscope.tasks.task import Batch

NameChange = Literal["query", "reference"]
RIGHT = LINE_PARTS.index("rhs")


@dataclass(frozen=True, eq=False)
class CounterfactualPairs:
    """Pairs of programs of one length with one query each; rows of ``base`` and ``counterfactual`` belong together."""

    base: Batch
    counterfactual: Batch
    chain_positions: np.ndarray  # [pair, hop]: right-hand sides on the queried chain, root first, −1 beyond its end
    query_position: int
    colon_position: int

    def __len__(self) -> int:
        return len(self.base)

    def take(self, rows: slice) -> CounterfactualPairs:
        """Only these pairs."""
        base, counterfactual = self.base.take(rows), self.counterfactual.take(rows)
        return replace(self, base=base, counterfactual=counterfactual, chain_positions=self.chain_positions[rows])

    def written_by(self, task: BindingTask) -> CounterfactualPairs:
        """The same pairs as the task's model reads them."""
        base = task.write(self.base)
        columns = columns_of(base)
        chain = np.where(self.chain_positions < 0, -1, columns[self.chain_positions])
        query, colon = int(columns[self.query_position]), int(columns[self.colon_position])
        return CounterfactualPairs(base, task.write(self.counterfactual), chain, query, colon)

    @property
    def base_tokens(self) -> np.ndarray:
        return self.base.tokens  # [pair, position]

    @property
    def counterfactual_tokens(self) -> np.ndarray:
        return self.counterfactual.tokens  # [pair, position]

    @property
    def base_answers(self) -> np.ndarray:
        return self.base.targets[:, 0]  # [pair]

    @property
    def counterfactual_answers(self) -> np.ndarray:
        return self.counterfactual.targets[:, 0]  # [pair]

    @property
    def changed_positions(self) -> np.ndarray:
        """The first column [pair] at which the two programs differ."""
        return (self.base_tokens != self.counterfactual_tokens).argmax(1)

    @property
    def labels(self) -> Mapping[str, np.ndarray]:
        """Labels [pair, 1] of the base programs."""
        return self.base.labels


def pair_programs(base: Program, counterfactual: Program, task: BindingTask | None = None) -> CounterfactualPairs:
    """Two typed programs as one pair; they must have the same length, and differ.

    ``chain_positions`` are those of the base program's chain. With a task they are written as its model reads them.
    """
    if base.n_lines != counterfactual.n_lines:
        raise BindscopeError(
            f"the two programs have {base.n_lines} and {counterfactual.n_lines} lines; write two of equal length."
        )
    if base == counterfactual:
        raise BindscopeError(
            "the counterfactual is the same program as the base; change a constant or a variable in it."
        )
    pairs = CounterfactualPairs(
        base=ask_programs([base]),
        counterfactual=ask_programs([counterfactual]),
        chain_positions=np.array([chain_positions(base)[: base.depth]]),
        query_position=position_of(NamedPosition("query"), base.n_lines),
        colon_position=position_of(NamedPosition("colon"), base.n_lines),
    )
    return pairs if task is None else pairs.written_by(task)


def read_pair(
    task: BindingTask, base: str, counterfactual: str, n_positions: int | None = None
) -> tuple[Program, Program, CounterfactualPairs]:
    """Two programs that a person typed (see ``BindingTask.read``) and the pair they make.

    A pair that cannot be patched is refused: of unequal length, of one program twice, or of one answer.
    """
    first, second = (task.read(text, n_positions) for text in (base, counterfactual))
    pairs = pair_programs(first, second, task)
    if first.answer == second.answer:
        raise BindscopeError(
            f"both programs have the answer {first.answer}; change the counterfactual so that its answer differs."
        )
    return first, second, pairs


def sample_root_pairs(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    depths: range | None = None,
    first_root_line: int = 1,
    n_lines: int | None = None,
) -> CounterfactualPairs:
    """Pairs that differ only in the constant at the root of the queried chain, balanced over ``depths``.

    ``first_root_line = 3`` leaves out the programs whose root is on line 1 or 2, where shortcut and mechanism agree.
    """
    n_lines = n_lines or task.lines
    reachable = _check_depths(task, depths, least=1, most=n_lines - first_root_line + 1)

    def choices(programs: Programs) -> np.ndarray:
        return new_constants(task, programs) & (programs.root >= first_root_line - 1)[:, :, None]

    return _sample_pairs(task, rng, n_pairs, n_lines, reachable, choices)


def sample_conflict_pairs(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    depths: range | None = None,
    n_lines: int | None = None,
) -> CounterfactualPairs:
    """Pairs on which the line-1 rule, the positional rule and the chain give three different answers.

    The counterfactual constant is a fourth digit, so both programs tell the three apart and each of the four digits
    that a patched model may answer names where it came from.
    """
    n_lines = n_lines or task.lines
    reachable = _check_depths(task, depths, least=2, most=n_lines - 2)  # two lines hold the other two answers
    if task.n_constants < 4:
        raise BindscopeError(f"pairs: rules in conflict need 4 constants and the task has {task.n_constants}.")

    def choices(programs: Programs) -> np.ndarray:
        line_1, positional = programs.value[:, :1], nearest_constants(programs)  # [program, 1], [program, line]
        differ = (line_1 != positional) & (programs.value != line_1) & (programs.value != positional)
        digits = np.arange(task.n_constants)
        fourth = (digits != line_1[:, :, None]) & (digits != positional[:, :, None])
        return new_constants(task, programs) & fourth & differ[:, :, None]

    return _sample_pairs(task, rng, n_pairs, n_lines, reachable, choices)


def sample_name_pairs(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    change: NameChange = "query",
    depths: range | None = None,
    first_root_line: int = 3,
    n_lines: int | None = None,
) -> CounterfactualPairs:
    """Pairs that differ only in one variable's name, and so in the answer.

    ``query``: the same program is asked for another variable. ``reference``: one reference on the queried chain names
    another variable, which makes no chain deeper than the task's. Base programs are balanced over ``depths``, both
    sides have their root on ``first_root_line`` or later, and where the other variable can be had at several depths
    each is as likely.
    """
    n_lines = n_lines or task.lines
    if change not in ("query", "reference"):
        raise BindscopeError(f"pairs: change must be 'query' or 'reference', got {change!r}.")
    least = 1 if change == "query" else 2
    reachable = _check_depths(task, depths, least, most=n_lines - first_root_line)  # a line is left for the other root
    sample = _sample_query_pairs if change == "query" else _sample_reference_pairs
    return sample(task, rng, n_pairs, n_lines, reachable, first_root_line - 1)


def _sample_query_pairs(
    task: BindingTask, rng: np.random.Generator, n_pairs: int, n_lines: int, depths: range, first_root: int
) -> CounterfactualPairs:
    def partners(programs: Programs) -> np.ndarray:
        """Lines that may both be asked about and hold different values [program, line, other line]."""
        askable = programs.live & (programs.root >= first_root) & task.may_be_asked(programs)
        differ = programs.value[:, :, None] != programs.value[:, None, :]
        return askable[:, :, None] & askable[:, None, :] & differ

    programs, queries = sample_questions(
        rng, task.grammar, n_pairs, n_lines, depths=depths, eligible=lambda drawn: partners(drawn).max(2)
    )
    choices = partners(programs)[np.arange(n_pairs), queries[:, 0]]  # [pair, line]
    others = _draw_by_depth(rng, programs, choices)
    return pair_batches(task, programs, queries, ask_questions(programs, others[:, None]), depths)


def _sample_reference_pairs(
    task: BindingTask, rng: np.random.Generator, n_pairs: int, n_lines: int, depths: range, first_root: int
) -> CounterfactualPairs:
    def changes(programs: Programs) -> np.ndarray:
        """Lines whose reference may become another one, by queried line [program, query, line, other line]."""
        rooted = programs.root >= first_root  # [program, line]
        other = _other_references(task, programs) & rooted[:, None, :]
        shown = ~task.held_out_combinations[programs.variables[:, :, None], programs.value[:, None, :]]
        askable = rooted & programs.live & task.may_be_asked(programs)
        on_chain = _lines_on_chains(programs) & askable[:, :, None]  # [program, query, line]
        return on_chain[:, :, :, None] & other[:, None] & shown[:, :, None, :]

    programs, queries = sample_questions(
        rng, task.grammar, n_pairs, n_lines, depths=depths, eligible=lambda drawn: changes(drawn).max((2, 3))
    )
    rows = np.arange(n_pairs)
    choices = changes(programs)[rows, queries[:, 0]]  # [pair, line, other line]
    lines = draw_marked(rng, choices.any(2).astype(float))
    others = _draw_by_depth(rng, programs, choices[rows, lines])
    tokens = ask_questions(programs, queries).tokens.copy()  # [pair, position]
    tokens[rows, LINE_WIDTH * lines + RIGHT] = programs.variables[rows, others] + FIRST_LETTER
    return pair_batches(task, programs, queries, ask_questions(*tokens_to_programs(tokens)), depths)


def _other_references(task: BindingTask, programs: Programs) -> np.ndarray:
    """For each reference [program, line] the lines [other line] that it could name instead, to another value.

    The other line must come before, be the last there to assign its variable, and leave no chain too deep.
    """
    lines = np.arange(programs.n_lines)
    height = np.zeros(programs.depth.shape, np.int8)  # how much deeper the chains through a line go
    for line in lines[::-1]:
        rows = np.flatnonzero(~programs.is_constant[:, line])
        origin = programs.reference[rows, line]
        height[rows, origin] = np.maximum(height[rows, origin], height[rows, line] + 1)
    shallow = programs.depth[:, None, :] + 1 + height[:, :, None] <= task.max_depth
    differ = programs.value[:, :, None] != programs.value[:, None, :]
    return visible_lines(programs) & shallow & differ & ~programs.is_constant[:, :, None]


def visible_lines(programs: Programs) -> np.ndarray:
    """Lines [program, line] that could refer to others [other line]: these come before and are not assigned again between."""
    lines = np.arange(programs.n_lines)
    same = programs.variables[:, :, None] == programs.variables[:, None, :]  # [program, later line, line]
    again = np.where(same & (lines[:, None] > lines), lines[:, None], programs.n_lines).min(1)  # [program, line]
    visible: np.ndarray = (lines < lines[:, None]) & (again[:, None, :] >= lines[:, None])
    return visible


def _lines_on_chains(programs: Programs) -> np.ndarray:
    """Whether a line stands on the chain of another, or is it: [program, line, line on its chain]."""
    lines = np.arange(programs.n_lines)
    on_chain = np.repeat((lines[:, None] == lines)[None], len(programs), axis=0)
    for line in lines:
        rows = np.flatnonzero(~programs.is_constant[:, line])
        on_chain[rows, line] |= on_chain[rows, programs.reference[rows, line]]
    return on_chain


def _draw_by_depth(rng: np.random.Generator, programs: Programs, choices: np.ndarray) -> np.ndarray:
    """One of the lines ``choices`` [program, line], every depth among them as likely."""
    same_depth = (programs.depth[:, :, None] == programs.depth[:, None, :]) & choices[:, None, :]
    return draw_marked(rng, choices / np.maximum(same_depth.sum(2), 1))


def draw_marked(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """A column for each row of ``weights`` [row, column], as likely as its weight."""
    fraction = weights.cumsum(1)
    draw = rng.random(len(weights)) * (1 - 1e-9) * fraction[:, -1]
    return (fraction > draw[:, None]).argmax(1)


def _sample_pairs(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    n_lines: int,
    depths: range,
    choices: Callable[[Programs], np.ndarray],
) -> CounterfactualPairs:
    """Questions whose root constant can become one of ``choices`` [program, line, digit], with that change made."""
    programs, queries = sample_questions(
        rng, task.grammar, n_pairs, n_lines, depths=depths, eligible=lambda drawn: choices(drawn).max(2)
    )
    rows, lines = np.arange(n_pairs), queries[:, 0]
    allowed = choices(programs)[rows, lines]  # [pair, digit]
    digits = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(1)
    changed = change_constants(programs, programs.root[rows, lines], digits)
    return pair_batches(task, programs, queries, ask_questions(changed, queries), depths)


def pair_batches(
    task: BindingTask, programs: Programs, queries: np.ndarray, counterfactual: Batch, depths: range
) -> CounterfactualPairs:
    """Base programs with their queries [program, 1] beside the counterfactual questions, as the task writes them."""
    chains = trace_query_chains(programs, queries[:, 0], depths.stop - 1)
    pairs = CounterfactualPairs(
        base=ask_questions(programs, queries),
        counterfactual=counterfactual,
        chain_positions=np.where(chains < 0, -1, LINE_WIDTH * chains + RIGHT),
        query_position=position_of(NamedPosition("query"), programs.n_lines),
        colon_position=position_of(NamedPosition("colon"), programs.n_lines),
    )
    return pairs.written_by(task)


def change_constants(programs: Programs, lines: np.ndarray, digits: np.ndarray) -> Programs:
    """The same programs with another digit on one constant line of each: ``lines`` and ``digits`` are [program]."""
    here = np.arange(programs.n_lines) == lines[:, None]  # [program, line]
    below = programs.root == lines[:, None]
    return replace(
        programs,
        source=np.where(here, digits[:, None], programs.source),
        value=np.where(below, digits[:, None], programs.value),
    )


def new_constants(task: BindingTask, programs: Programs) -> np.ndarray:
    """Digits that a line's root could hold instead [program, line, digit], without making a held-out combination."""
    different = np.arange(task.n_constants) != programs.value[:, :, None]
    if not task.held_out:
        return different
    shown = ~task.held_out_combinations  # [variable, constant]
    root_variables = np.take_along_axis(programs.variables, programs.root, axis=1)
    return different & shown[root_variables] & shown[programs.variables] & task.may_be_asked(programs)[:, :, None]


def _check_depths(task: BindingTask, depths: range | None, least: int, most: int) -> range:
    """The queried depths asked for, or all that such pairs can have."""
    most = min(most, task.max_depth)
    possible = range(least, most + 1)
    depths = possible if depths is None else depths
    if task.n_constants < 2:
        raise BindscopeError("pairs: a counterfactual needs 2 constants and the task has 1.")
    if len(depths) == 0 or depths.step != 1 or depths[0] not in possible or depths[-1] not in possible:
        raise BindscopeError(
            f"pairs: depths {depths.start} to {depths.stop - 1} were asked for; with these lines and max_depth = "
            f"{task.max_depth} such pairs have depths {least} to {most}."
        )
    return depths
