"""Whether names and values are tied by binding identifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Identifiers(RunQuestion):
    """What swaps two bindings, and what leaves them as they are?"""

    command_name, method, runs_on = "identifiers", "identifiers", "programs"

    step: Step = one_step()
    n: int = ask(60, help="How many programs to draw for each intervention.", ge=8)
    seed: int = a_seed()

    def answer(self, opened: Opened) -> xr.Dataset:
        """``swapped`` and ``kept`` over (intervention, part, layer) with their intervals."""
        import numpy as np

        from bindscope.measures.binding.identifiers import draw_identifier_programs, measure_identifiers

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        drawn = draw_identifier_programs(task, np.random.default_rng(self.seed), self.n, self.seed)
        return measure_identifiers(opened.load(step), drawn).assign_attrs(run=opened.name, step=step)
