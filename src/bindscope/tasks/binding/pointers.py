"""Pointer pairs: counterfactuals that tell a pointer (which name to look up next) from a value.

    base      a=5  z=3  b=a  c=b  w=z  #c:  → 5
    source    a=5  z=8  b=z  c=b  w=z  #c:  → 8     another reference on the chain, and another constant at its root

Put an activation of the source run into the base run. If it carries the *value*, the answer becomes the source's (8). If it
carries the *pointer*, the base program is asked what that name holds, and the answer becomes the base's value of it (3). The
three digits differ, so one patch gives one of three answers and each says what was moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.pairs import CounterfactualPairs, draw_marked, new_constants, pair_batches, visible_lines
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH
from bindscope.tasks.binding.program import FIRST_LETTER, Program
from bindscope.tasks.binding.programs import Programs, ask_questions, tokens_to_programs
from bindscope.tasks.binding.rendered import outputs_of_digits
from bindscope.tasks.binding.sampler import sample_questions
from bindscope.tasks.binding.task import BindingTask

RIGHT = LINE_PARTS.index("rhs")


@dataclass(frozen=True, eq=False)
class PointerPairs:
    """Pairs of one depth that differ in one reference of the chain and in the constant that the other name leads to."""

    pairs: CounterfactualPairs
    reference: str  # the position whose name differs: ``rhs 2`` … ``rhs depth``, or ``query``
    pointed_answers: np.ndarray  # [pair]: what the base program holds for the other name, as an output

    def __len__(self) -> int:
        return len(self.pairs)


def references_of(depth: int) -> list[str]:
    """The positions of a chain that name a variable, from the root on: ``rhs 2`` … ``rhs depth``, ``query``."""
    return [*(f"rhs {hop}" for hop in range(2, depth + 1)), "query"]


def sample_pointer_pairs(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    depth: int,
    reference: str = "query",
    first_root_line: int = 3,
    n_lines: int | None = None,
) -> PointerPairs:
    """Pairs whose ``reference`` names another variable of the same depth, with roots from ``first_root_line`` on."""
    n_lines = n_lines or task.lines
    if not 1 <= depth <= task.max_depth:
        raise BindscopeError(f"pointer pairs: depth must lie between 1 and {task.max_depth}, got {depth}.")
    if reference not in references_of(depth):
        known = ", ".join(references_of(depth))
        raise BindscopeError(f"pointer pairs: a chain of depth {depth} has the references {known}, not '{reference}'.")
    if task.n_constants < 3:
        raise BindscopeError(f"pointer pairs need 3 constants and the task has {task.n_constants}.")
    hop = references_of(depth).index(reference) + 2  # the chain's k-th position; the query comes after its last line

    def digits(programs: Programs) -> np.ndarray:
        return _choices(task, programs, depth, hop, first_root_line - 1)

    programs, queries = sample_questions(
        rng, task.grammar, n_pairs, n_lines, depths=range(depth, depth + 1),
        eligible=lambda drawn: np.asarray(digits(drawn).any((2, 3))),
    )  # fmt: skip
    rows, asked = np.arange(n_pairs), queries[:, 0]
    allowed = digits(programs)[rows, asked]  # [pair, other line, digit]
    others = draw_marked(rng, allowed.any(2).astype(float))
    constants = draw_marked(rng, allowed[rows, others].astype(float))
    tokens = ask_questions(programs, queries).tokens.copy()  # [pair, position]
    changed = _climb(programs, asked, depth - hop) if hop <= depth else None
    column = tokens.shape[1] - 2 if changed is None else LINE_WIDTH * changed + RIGHT
    tokens[rows, column] = programs.variables[rows, others] + FIRST_LETTER
    tokens[rows, LINE_WIDTH * programs.root[rows, others] + RIGHT] = constants
    source = ask_questions(*tokens_to_programs(tokens))
    pairs = pair_batches(task, programs, queries, source, range(depth, depth + 1))
    return PointerPairs(pairs, reference, outputs_of_digits(pairs.base)[programs.value[rows, others]])


def _choices(task: BindingTask, programs: Programs, depth: int, hop: int, first_root: int) -> np.ndarray:
    """Other lines and digits for the root of each [program, queried line, other line, digit].

    The other line is as deep as the one it stands in for, so that both are looked up in as many steps.
    """
    lines = np.arange(programs.n_lines)
    rooted = programs.root >= first_root  # [program, line]
    asked = rooted & programs.live & task.may_be_asked(programs) & (programs.depth == depth)
    differ = programs.value[:, :, None] != programs.value[:, None, :]  # [program, queried line, other line]
    other = (rooted & (programs.depth == hop - 1))[:, None, :] & differ
    if hop > depth:
        other = other & (programs.live & task.may_be_asked(programs))[:, None, :]
    else:
        changed = _climb(programs, np.broadcast_to(lines, programs.depth.shape), depth - hop)  # [program, queried line]
        other = other & np.take_along_axis(visible_lines(programs), changed[:, :, None], axis=1)
    digit = np.arange(task.n_constants) != programs.value[:, :, None, None]  # [program, queried line, 1, digit]
    shown = ~task.held_out_combinations[programs.variables]  # [program, line, digit]: where the queried line gets it
    possible = digit & new_constants(task, programs)[:, None] & shown[:, :, None]
    return asked[:, :, None, None] & other[:, :, :, None] & possible


def _climb(programs: Programs, lines: np.ndarray, n_steps: int) -> np.ndarray:
    """From lines [program] or [program, line], so many references back; a line without one stays."""
    flat = lines.reshape(len(programs), -1)
    for _ in range(n_steps):
        before = np.take_along_axis(programs.reference, flat, axis=1)
        flat = np.where(before < 0, flat, before)
    return flat.reshape(lines.shape)


def point_elsewhere(program: Program, reference: str) -> tuple[Program, int] | None:
    """A typed program with another name at ``reference`` and another constant at that name's root, and the digit that the
    name holds in the program as it is; None where no other name would do.

    A name that is looked up in as many steps is preferred, then the one nearest before.

        >>> source, held = point_elsewhere(parse_program("a=5\\nz=3\\nb=a\\n#b:"), "rhs 2")
        >>> source.one_line, held
        ('a=5;z=0;b=z;#b:', 3)
    """
    if reference not in references_of(program.depth):
        raise BindscopeError(
            f"a chain of depth {program.depth} has the references {', '.join(references_of(program.depth))}, not '{reference}'."
        )
    hop = references_of(program.depth).index(reference) + 2
    line = program.n_lines + 1 if hop > program.depth else program.chain[::-1][hop - 1]
    held = {program.assignments[number - 1].variable: number for number in range(1, line)}  # name → line that gives it
    others = [number for number in held.values() if program.values[number - 1] != program.answer]
    if not others:
        return None
    other = min(others, key=lambda number: (abs(len(program.chain_of(number)) - (hop - 1)), line - number))
    found = program.values[other - 1]
    digit = next(each for each in range(10) if each not in (program.answer, found))
    name = program.assignments[other - 1].variable
    assignments = list(program.assignments)
    if line <= program.n_lines:
        assignments[line - 1] = replace(assignments[line - 1], source=name)
    root = program.chain_of(other)[-1] - 1
    assignments[root] = replace(assignments[root], source=str(digit))
    return Program(tuple(assignments), program.query if line <= program.n_lines else name), found
