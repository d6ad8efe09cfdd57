"""A question about modular addition: one typed sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import some_steps
from bindscope.questions.opened import Opened, Steps
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr

MOST_SUM = 200  # characters that a server reads: twelve words and a sum, with room for blanks
LIVE_SUM = {"min_length": 1, "max_length": MOST_SUM}


@dataclass(frozen=True, kw_only=True)
class Sum(RunQuestion):
    """What does each layer attend to in this sum, and what does the model answer, at these checkpoints?"""

    command_name, method, runs_on = "attention", "attention", "sums"

    sequence: str = ask(
        positional=True, settle="sum", live=LIVE_SUM,
        help="The sum: assignments, '|', and two operands that are numbers or assigned variables.",
    )  # fmt: skip
    steps: Steps = some_steps(keyword="step")

    def answer(self, opened: Opened) -> xr.Dataset:
        """``pattern`` over (step, layer, query, key) and ``probability`` over (step, output)."""
        from bindscope.measures.arithmetic.one_sum import attention_over_steps

        task = opened.task_of(self.runs_on)
        tokens = task.read(self.sequence)
        models = ((step, opened.load(step)) for step in opened.find_steps(self.steps))
        return attention_over_steps(models, task, tokens)
