"""Pairs of programs: two that a person typed, or many drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from bindscope.questions.fields import a_program, a_seed
from bindscope.questions.opened import Opened
from bindscope.questions.question import BadValue, RunQuestion, ask

if TYPE_CHECKING:
    from bindscope.tasks.binding import BindingTask, CounterfactualPairs

Direction = Literal["noising", "denoising"]


@dataclass(frozen=True)
class Drawn:
    """Pairs, and one sentence that says which they are and what was left out."""

    pairs: CounterfactualPairs
    note: str


@dataclass(frozen=True, kw_only=True)
class DrawnQuestion(RunQuestion):
    """A question about drawn programs."""

    n: int = ask(200, help="How many pairs to draw.", ge=1)
    depth: int | None = ask(None, help="Draw pairs of this depth only.", live={"ge": 1, "le": 99})
    first_root_line: int = ask(3, help="The first line that may hold the root's constant.", live={"ge": 1, "le": 99})
    seed: int = a_seed()

    def draw(self, task: BindingTask) -> Drawn:
        """``n`` pairs that differ in the root's constant, of all depths or one."""
        return draw_pairs(task, self.n, self.depth, self.first_root_line, self.seed)


@dataclass(frozen=True, kw_only=True)
class PairQuestion(DrawnQuestion):
    """A question about a typed pair or, without one, about drawn pairs."""

    runs_on: ClassVar[str] = "programs"

    program: str | None = a_program(
        None, help="The program that is run, lines separated by ';'. Without programs, pairs are drawn."
    )
    counterfactual: str | None = a_program(
        None, help="The program that activations are taken from, as long as the first."
    )
    direction: Direction = ask(
        "noising", help="noising runs the first program and takes from the second; denoising the other way round."
    )

    def check(self) -> None:
        if (self.program is None) != (self.counterfactual is None):
            raise BadValue("counterfactual", "one program was given; give a second one to take activations from.")
        if self.program is not None and self.depth is not None:
            raise BadValue("depth", "chooses among drawn pairs; leave it out when you type two programs.")

    def find_pairs(self, opened: Opened) -> Drawn:
        """The typed pair, or drawn ones."""
        from bindscope.tasks.binding import read_pair

        task = opened.task_of(self.runs_on)
        if self.program is None or self.counterfactual is None:
            return self.draw(task)
        program, other, pairs = read_pair(task, self.program, self.counterfactual, opened.n_positions)
        return Drawn(pairs, f"one typed pair, of depth {program.depth}; {program.answer} → {other.answer}")


def draw_pairs(task: BindingTask, n: int, depth: int | None, first_root_line: int, seed: int) -> Drawn:
    """``n`` pairs that differ in the root's constant, of all depths or one."""
    import numpy as np

    from bindscope.tasks.binding import sample_root_pairs

    if n < 1:
        raise BadValue("n", f"must be at least 1, got {n}.")
    if not 1 <= first_root_line <= task.lines:
        raise BadValue("first_root_line", f"must lie between 1 and {task.lines}, got {first_root_line}.")
    deepest = min(task.max_depth, task.lines - first_root_line + 1)
    if depth is not None and not 1 <= depth <= deepest:
        raise BadValue("depth", f"such pairs have depths 1 to {deepest}, got {depth}.")
    depths = range(1, deepest + 1) if depth is None else range(depth, depth + 1)
    pairs = sample_root_pairs(task, np.random.default_rng(seed), n, depths, first_root_line)
    which = f"depth {depth}" if depth is not None else f"depths 1 to {deepest}"
    left_out = ""
    if first_root_line > 1:
        lines = {2: "line 1", 3: "line 1 or 2"}.get(first_root_line, f"lines 1 to {first_root_line - 1}")
        left_out = f"; programs with their constant on {lines}, where shortcuts are right too, are left out"
    return Drawn(pairs, f"{n} pairs of {which}, drawn with seed {seed}{left_out}")
