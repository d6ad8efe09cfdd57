"""What every part of a model tells every later one, and how small a circuit of such edges still answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bindscope.questions.fields import one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.pairs import DrawnQuestion
from bindscope.questions.program import Progress
from bindscope.questions.question import ask

if TYPE_CHECKING:
    import xarray as xr

Method = Literal["gradient", "qk", "graddrop", "atp-star"]  # those of ``interventions.slopes``, which loads torch


@dataclass(frozen=True, kw_only=True)
class Edges(DrawnQuestion):
    """Which edges between heads, MLPs, embedding and logits carry the answer (edge attribution)?"""

    command_name, method, runs_on = "edges", "edges", "programs"

    step: Step = one_step()
    n: int = ask(32, help="How many pairs to draw; half find the edges, half try them.", ge=4, live={"le": 128})
    points: int = ask(
        8, help="Between how many runs from base to source gradients are averaged; 1 is the base run alone.", ge=1,
        live={"le": 16},
    )  # fmt: skip
    checked: int = ask(
        24,
        help="How many edges are also patched exactly, half the strongest and half at random.",
        ge=2,
        live={"le": 64},
    )
    estimate: Method = ask(
        "gradient", flag="--method", keyword="method",
        help="Along which line an effect is estimated: the gradient; qk, with softmax recomputed for queries and keys; "
        "graddrop, without one layer's gradient after another; atp-star, both.",
    )  # fmt: skip
    random: int = ask(
        4, help="How many random circuits of equal size stand beside the found one.", ge=1, live={"le": 8}
    )

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Attributed edges, exact patches of some, and how faithful circuits of the strongest are, by size."""
        report: xr.Dataset | None = None
        for done, report in enumerate(self.parts(opened)):
            if on_progress is not None:
                on_progress(done, report.sizes["edge"] + report.sizes["size"])
        assert report is not None
        return report

    def parts(self, opened: Opened) -> Iterator[xr.Dataset]:
        """The same answer as it grows; what is still to come is missing."""
        import numpy as np

        from bindscope.interventions.contrast import contrast_pairs
        from bindscope.interventions.edge_report import stream_report
        from bindscope.tasks.binding import named_positions

        drawn, step = self.draw(opened.task_of(self.runs_on)), opened.find_step(self.step)
        growing = stream_report(
            opened.load(step),
            contrast_pairs(drawn.pairs),
            named_positions(drawn.pairs),
            n_points=self.points,
            n_checked=self.checked,
            n_random=self.random,
            rng=np.random.default_rng(self.seed),
            method=self.estimate,
        )
        for report in growing:
            yield report.assign_attrs(run=opened.name, step=step, pairs=drawn.note)
