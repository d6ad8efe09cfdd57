"""Pairs of programs from the command line: two that a person typed, or many drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bindscope.cli.outcome import binding_task
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.tasks.binding import BindingTask, CounterfactualPairs

Words = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
NUMBERS = ".nc"


@dataclass(frozen=True)
class Drawn:
    """Pairs, and one sentence that says which they are and what was left out."""

    pairs: CounterfactualPairs
    note: str


def find_pairs(
    opened: Any, base: str | None, counterfactual: str | None, n: int, depth: int | None, first: int, seed: int
) -> Drawn:
    """Two typed programs as a pair or, without them, pairs drawn at random."""
    from bindscope.tasks.binding import read_pair

    task = binding_task(opened)
    if base is None:
        return draw_pairs(task, n, depth, first, seed)
    if counterfactual is None:
        raise BindscopeError("one program was given; give a second one to take activations from.")
    if depth is not None:
        raise BindscopeError("--depth: chooses among drawn pairs; leave it out when you type two programs.")
    program, other, pairs = read_pair(task, base, counterfactual, opened.config.model.n_positions)
    return Drawn(pairs, f"one typed pair, of depth {program.depth}; {program.answer} → {other.answer}")


def draw_pairs(task: BindingTask, n: int, depth: int | None, first_root_line: int, seed: int) -> Drawn:
    """``n`` pairs that differ in the root's constant, of all depths or one."""
    import numpy as np

    from bindscope.tasks.binding import sample_root_pairs

    if n < 1:
        raise BindscopeError(f"--n: must be at least 1, got {n}.")
    if not 1 <= first_root_line <= task.lines:
        raise BindscopeError(f"--first-root-line: must lie between 1 and {task.lines}, got {first_root_line}.")
    deepest = min(task.max_depth, task.lines - first_root_line + 1)
    if depth is not None and not 1 <= depth <= deepest:
        raise BindscopeError(f"--depth: such pairs have depths 1 to {deepest}, got {depth}.")
    depths = range(1, deepest + 1) if depth is None else range(depth, depth + 1)
    pairs = sample_root_pairs(task, np.random.default_rng(seed), n, depths, first_root_line)
    which = f"depth {depth}" if depth is not None else f"depths 1 to {deepest}"
    left_out = ""
    if first_root_line > 1:
        lines = {2: "line 1", 3: "line 1 or 2"}.get(first_root_line, f"lines 1 to {first_root_line - 1}")
        left_out = f"; programs with their constant on {lines}, where shortcuts are right too, are left out"
    return Drawn(pairs, f"{n} pairs of {which}, drawn with seed {seed}{left_out}")


def figure_or_none(out: Path, summary: Any, metric: str, title: str) -> Any:
    """The figure of a summary, or None for a file of numbers."""
    if out.suffix.lower() == NUMBERS:
        return None
    from bindscope.studies.plots.heat_map import figure_summary

    return figure_summary(summary, metric, title)


def find_steps(run: Run, step: str, steps: str | None) -> list[int]:
    """The checkpoints asked for: one, all, or a list such as '0,1000,last'."""
    if steps is None:
        return [run.find_step(step)]
    if steps == "all":
        run.find_step("last")
        return list(run.steps)
    return sorted({run.find_step(word.strip()) for word in steps.split(",")})
