"""Programs for a reader to look at: pairs that cover every depth, or one pair with what the reader asked for.

>>> base, counterfactual = draw_pair(BindingTask(), np.random.default_rng(0), depth=3, n_chains=4)
>>> base.depth, len(base.distractor_chains)
(3, 4)
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.pairs import CounterfactualPairs, sample_conflict_pairs, sample_root_pairs
from bindscope.tasks.binding.program import Program
from bindscope.tasks.binding.programs import Programs
from bindscope.tasks.binding.rendered import rows_of
from bindscope.tasks.binding.sampler import sample_programs
from bindscope.tasks.binding.task import BindingTask

ProgramPair = tuple[Program, Program]  # base and counterfactual, which differ in the constant at the root
ROUNDS = (64, *(4096,) * 24)  # programs drawn one round after another before a wish is refused: a third of a second


def draw_pair(
    task: BindingTask,
    rng: np.random.Generator,
    depth: int | None = None,
    n_lines: int | None = None,
    n_chains: int | None = None,
) -> ProgramPair:
    """A program of the task asked about a variable of ``depth``, and the same one with another root constant.

    ``n_chains`` is how many other chains it has (``Program.distractor_chains``); what is None may be anything.
    """
    n_lines = task.lines if n_lines is None else n_lines
    _check_wish(task, depth, n_lines)
    seen: set[int] = set()
    for n_programs in ROUNDS:
        programs = sample_programs(rng, task.grammar, n_programs, n_lines)
        askable, chains = _find_lines(task, programs, depth), _count_other_chains(programs)
        fitting = askable if n_chains is None else askable & (chains == n_chains)
        seen |= set(chains[askable].tolist())
        rows = np.flatnonzero(fitting.any(1))
        if len(rows):
            row = int(rows[0])
            line = int(rng.choice(np.flatnonzero(fitting[row])))
            base = programs.program(row, line)
            return base, base.with_root_constant(int(rng.choice(_other_digits(task, base))))
    wish = f"{n_lines} lines" + (f" and a question of depth {depth}" if depth is not None else "")
    if not seen:
        raise BindscopeError(
            f"sample: among {sum(ROUNDS):,} programs of this task none has {wish}; ask for less depth."
        )
    raise BindscopeError(
        f"sample: among {sum(ROUNDS):,} programs of this task none with {wish} has {n_chains} other chains; they have "
        f"{min(seen)} to {max(seen)}."
    )


def draw_examples(task: BindingTask, rng: np.random.Generator, n_pairs: int) -> list[ProgramPair]:
    """``n_pairs`` pairs of the task, from deep to shallow in turn, the most telling kind that the task allows.

    The first is as deep as can be, with its root below line 2 and three rules that answer differently, so that
    a patch shows something; where programs are too short for that, the nearest to it.
    """
    depths = list(range(min(task.max_depth, task.lines), 0, -1))
    by_depth = [_draw_of_depth(task, rng, -(-n_pairs // len(depths)), depth) for depth in depths]
    mixed = [pair for pairs in zip(*filter(None, by_depth)) for pair in pairs]
    if not mixed:
        raise BindscopeError("examples: this task gives no pair of programs that differ in one constant.")
    return mixed[:n_pairs]


def _draw_of_depth(task: BindingTask, rng: np.random.Generator, n_pairs: int, depth: int) -> list[ProgramPair]:
    """Pairs of one depth; conflicts of rules if there are any, then roots below line 2, then any; or none at all."""
    only = range(depth, depth + 1)
    if 2 <= depth <= task.lines - 3 and task.n_constants >= 4:
        with suppress(BindscopeError):
            pairs = _to_programs(sample_conflict_pairs(task, rng, 4 * n_pairs, only))
            return sorted(pairs, key=lambda pair: pair[0].root_line < 3)[:n_pairs]  # those with a late root first
    for first_root_line in (3, 1):
        with suppress(BindscopeError):
            return _to_programs(sample_root_pairs(task, rng, n_pairs, only, first_root_line))
    return []


def _to_programs(pairs: CounterfactualPairs) -> list[ProgramPair]:
    both = zip(rows_of(pairs.base), rows_of(pairs.counterfactual))
    return [(Program.from_tokens(base), Program.from_tokens(other)) for base, other in both]


def _check_wish(task: BindingTask, depth: int | None, n_lines: int) -> None:
    if task.n_constants < 2:
        raise BindscopeError("sample: a counterfactual needs 2 constants and the task has 1.")
    if not 2 <= n_lines <= task.lines:
        raise BindscopeError(f"sample: programs of this task have 2 to {task.lines} lines, not {n_lines}.")
    deepest = min(task.max_depth, n_lines)
    if depth is not None and not 1 <= depth <= deepest:
        raise BindscopeError(f"sample: questions about {n_lines} lines have depths 1 to {deepest} here, not {depth}.")


def _find_lines(task: BindingTask, programs: Programs, depth: int | None) -> np.ndarray:
    """Lines [program, line] that may be asked about and are as deep as was asked."""
    askable = programs.live & task.may_be_asked(programs)
    return askable if depth is None else askable & (programs.depth == depth)


def _count_other_chains(programs: Programs) -> np.ndarray:
    """How many chains there are beside that of a line [program, line]: one ends at each line that nothing refers to."""
    lines = np.arange(programs.n_lines)
    is_end = ~(programs.reference[:, :, None] == lines).any(1)  # [program, line]
    return is_end.sum(1, keepdims=True) - is_end


def _other_digits(task: BindingTask, program: Program) -> np.ndarray:
    """Root constants that give another answer and no held-out combination, or any other where there is none."""
    digits = np.array([digit for digit in range(task.n_constants) if digit != program.answer])
    names = [ord(program.assignments[line - 1].variable) - ord("a") for line in (program.query_line, program.root_line)]
    shown = digits[~task.held_out_combinations[names][:, digits].any(0)]
    return shown if len(shown) else digits
