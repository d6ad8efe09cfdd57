"""What becomes of a variable that is assigned again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Reassignment(RunQuestion):
    """Which write of a variable wins, what holds that it was overwritten, and is a running state kept?"""

    command_name, method, runs_on = "reassignment", "reassignment", "programs"

    step: Step = one_step()
    n: int = ask(60, help="How many pairs to draw of each kind; probes read 20 programs for each.", ge=8)
    seed: int = a_seed()

    def answer(self, opened: Opened) -> xr.Dataset:
        """``answered`` over (situation, outcome), ``write`` over (situation, position, layer, came), ``undone`` over
        (operation, part, layer), ``accuracy`` and ``excess`` of probes over (state, place, layer); ``finding`` in words.
        """
        import torch

        from bindscope.measures.binding.reassignment.finding import describe_reassignment
        from bindscope.measures.binding.reassignment.measure import draw_reassignment, measure_reassignment
        from bindscope.model.transformer import Transformer

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        model = opened.load(step)
        fresh = Transformer(model.config, torch.Generator().manual_seed(self.seed)).eval()
        drawn = draw_reassignment(task, opened.run.placement.place(fresh), self.n, self.seed)
        dataset = measure_reassignment(model, drawn)
        return dataset.assign_attrs(run=opened.name, step=step, finding=describe_reassignment(dataset))
