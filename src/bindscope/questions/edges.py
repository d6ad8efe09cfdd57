"""What every part of a model tells every later one, and how small a circuit of such edges still answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.pairs import DrawnQuestion
from bindscope.questions.question import ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Edges(DrawnQuestion):
    """Which edges between heads, MLPs, embedding and logits carry the answer (edge attribution)?"""

    command_name, method, runs_on = "edges", "edges", "programs"

    step: Step = one_step()
    n: int = ask(32, help="How many pairs to draw; half find the edges, half try them.", ge=4, live={"le": 200})
    points: int = ask(
        8, help="Between how many runs from base to source gradients are averaged; 1 is the base run alone.", ge=1,
        live={"le": 64},
    )  # fmt: skip
    checked: int = ask(
        24,
        help="How many edges are also patched exactly, half the strongest and half at random.",
        ge=2,
        live={"le": 200},
    )
    random: int = ask(
        4, help="How many random circuits of equal size stand beside the found one.", ge=1, live={"le": 32}
    )

    def answer(self, opened: Opened) -> xr.Dataset:
        """Attributed edges, exact patches of some, and how faithful circuits of the strongest are, by size."""
        import numpy as np

        from bindscope.interventions.contrast import contrast_pairs
        from bindscope.interventions.edge_report import report_edges
        from bindscope.tasks.binding import named_positions

        drawn, step = self.draw(opened.task_of(self.runs_on)), opened.find_step(self.step)
        dataset = report_edges(
            opened.load(step),
            contrast_pairs(drawn.pairs),
            named_positions(drawn.pairs),
            n_points=self.points,
            n_checked=self.checked,
            n_random=self.random,
            rng=np.random.default_rng(self.seed),
        )
        return dataset.assign_attrs(run=opened.name, step=step, pairs=drawn.note)
