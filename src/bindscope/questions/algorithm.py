"""Which algorithm a checkpoint follows chains by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.program import Progress
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Algorithm(RunQuestion):
    """Does the value come forward along the chain, does a pointer go back, or do the two meet?"""

    command_name, method, runs_on = "algorithm", "algorithm", "programs"

    step: Step = one_step()
    n: int = ask(48, help="How many pairs to draw for each depth and reference.", ge=8)
    seed: int = a_seed()

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Fractions of patched answers by depth, layer and position; ``read_algorithm`` reads them."""
        import numpy as np

        from bindscope.measures.binding.algorithm.patches import draw_chain_pairs, measure_patches

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        drawn = draw_chain_pairs(task, np.random.default_rng(self.seed), self.n)
        dataset = measure_patches(opened.load(step), drawn, on_progress)
        return dataset.assign_attrs(run=opened.name, step=step)
