"""Questions about modular addition: one typed sum, and parts of one checkpoint in another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.questions.fields import LIVE_STEP, a_seed, some_steps
from bindscope.questions.opened import Opened, Step, Steps
from bindscope.questions.program import Progress
from bindscope.questions.question import BadValue, RunQuestion, ask, to_step, to_texts

if TYPE_CHECKING:
    import xarray as xr

MOST_SUM = 200  # characters that a server reads: twelve words and a sum, with room for blanks
MOST_PARTS = 12
USUAL_PARTS = ("pattern 2", "routing", "computing")
LIVE_SUM = {"min_length": 1, "max_length": MOST_SUM}
LIVE_PARTS = {
    "type": list[str], "item": {"min_length": 1, "max_length": 40}, "min_length": 1, "max_length": MOST_PARTS,
    "required": True,
}  # fmt: skip


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


@dataclass(frozen=True, kw_only=True)
class Transplant(RunQuestion):
    """How well does one checkpoint answer with these parts of another (component patching between checkpoints)?"""

    command_name, method, runs_on = "transplant", "transplant", "sums"

    donor: Step | None = ask(
        None, flag="--from", convert=to_step, live={**LIVE_STEP, "required": True},
        help="The checkpoint that gives (the donor): a step, 'first' or 'last'. Without --from and --to: from after each "
        "spike of the run to before it.",
    )  # fmt: skip
    receiver: Step | None = ask(
        None, flag="--to", convert=to_step, live={**LIVE_STEP, "required": True}, help="The checkpoint that receives."
    )
    parts: tuple[str, ...] = ask(
        USUAL_PARTS, flag="--part", convert=to_texts, shown=True, live=LIVE_PARTS,
        help="What is given, by a name of --list. Names joined by + are given together. Give it once for each trial; "
        "'pattern 2', 'routing' and 'computing' when none is named.",
    )  # fmt: skip
    n: int = ask(200, shown=True, ge=1, live={"ge": 10, "le": 1000}, help="How many sums to draw from each split.")
    seed: int = a_seed()

    def check(self) -> None:
        if (self.receiver is None) != (self.donor is None):
            raise BindscopeError("--from and --to: name both checkpoints, or neither to take those around the spikes.")
        if not self.parts:
            raise BadValue("parts", "a transplant needs at least one part.")

    def around_spikes(self, opened: Opened) -> list[Transplant]:
        """The same question for the checkpoints that were named, or for those around each spike."""
        from bindscope.studies.assign_add.learning.spikes import find_windows

        if self.donor is not None:
            return [self]
        windows = find_windows(opened.run)
        if not windows:
            raise BindscopeError(
                f"{opened.name}: no spike with checkpoints close by on both sides; name two with --from and --to."
            )
        return [replace(self, donor=window.after, receiver=window.before) for window in windows]

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Accuracy of the receiver, of the donor and with each part, over (part, split)."""
        import numpy as np

        from bindscope.interventions.transplant import find_parts
        from bindscope.measures.arithmetic.transplanting import ask_splits, measure_transplants, split_row

        task = opened.task_of(self.runs_on)
        if self.receiver is None or self.donor is None:
            raise BindscopeError("receiver and donor: name two checkpoints.")
        for row in self.parts:
            find_parts(opened.run.config.model, split_row(row))
        ends: dict[str, Any] = {name: opened.find_step(getattr(self, name)) for name in ("receiver", "donor")}
        asked = ask_splits(task, np.random.default_rng(self.seed), self.n)
        models = opened.load(ends["receiver"]), opened.load(ends["donor"])
        dataset = measure_transplants(*models, list(self.parts), asked, self.seed, on_progress)
        return dataset.assign_attrs(run=opened.name, **ends, n=self.n, seed=self.seed)
