"""Where the address, the pointer and the payload of a lookup are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Lookbacks(RunQuestion):
    """In which layers does a value stand beside its name, and the end hold a pointer, or the value it points to?"""

    command_name, method, runs_on = "lookbacks", "lookbacks", "programs"

    step: Step = one_step()
    n: int = ask(80, help="How many pairs to draw of each kind.", ge=8)
    seed: int = a_seed()

    def answer(self, opened: Opened) -> xr.Dataset:
        """``binding`` over (layer, moved), ``source`` over (frozen, layer), ``end`` over (position, layer, came)."""
        import numpy as np

        from bindscope.measures.binding.lookbacks import draw_lookback_pairs, measure_lookbacks

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        drawn = draw_lookback_pairs(task, np.random.default_rng(self.seed), self.n)
        return measure_lookbacks(opened.load(step), drawn).assign_attrs(run=opened.name, step=step)
