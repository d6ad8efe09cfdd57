"""A run as questions meet it, whoever opened it: a command, the page, or a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.families import families_with, family_of
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.runs.placement import CPU, Placement

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

Step = int | str  # a saved step, 'first' or 'last'
Steps = int | str | tuple[int | str, ...]  # also 'all', or several


@dataclass(frozen=True)
class Opened:
    """A run under the name it is shown by, and how its models are read."""

    name: str
    run: Run
    load: Callable[[int], Transformer]

    @classmethod
    def of(cls, run: Run) -> Opened:
        return cls(run.name, run, run.checkpoint)

    @classmethod
    def at(cls, location: str, placement: Placement = CPU) -> Opened:
        """A run by its path, its name under ./runs, or the name of a shipped one; its models are put where it says."""
        return cls.of(Run.open(find_run(location), placement))

    @property
    def task(self) -> Any:
        return self.run.config.task

    @property
    def n_positions(self) -> int:
        """How many tokens its model reads."""
        return self.run.config.model.n_positions

    def find_step(self, step: Step) -> int:
        return self.run.find_step(step)

    def find_steps(self, steps: Steps) -> list[int]:
        """Saved steps: one, 'all', or several as they were named."""
        if steps == "all":
            self.run.find_step("last")
            return list(self.run.steps)
        return list(dict.fromkeys(map(self.find_step, steps if isinstance(steps, tuple) else (steps,))))

    def model(self, step: Step) -> Transformer:
        return self.load(self.find_step(step))

    def task_of(self, kind: str) -> Any:
        """Its task, which must be of this kind."""
        return require_kind(self.run, kind, self.name)

    def settle(self, how: str, value: Any, kind: str) -> Any:
        """What a person gave, as it is written down in a command."""
        if how == "steps":
            return "all" if isinstance(value, tuple) and value == self.run.steps else value
        task = self.task_of(kind) if kind else self.task
        example = task.read(value, self.n_positions)
        return getattr(example, "one_line", None) or family_of(task).render_tokens(task, example)


def require_kind(run: Run, kind: str, name: str = "") -> Any:
    """The run's task, which must be about this kind of example: where a question says which runs it is for."""
    task = run.config.task
    if kind not in family_of(task).kinds:
        names = " or ".join(family.name for family in families_with(kind))
        raise BindscopeError(f"{name or run.name}: its task is {task.family}; {kind} are for runs on {names}.")
    return task
