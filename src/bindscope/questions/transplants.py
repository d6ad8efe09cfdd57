"""Parts of one checkpoint in another: what it answers with them, and how soon it learns with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.questions.fields import LIVE_STEP, a_seed
from bindscope.questions.opened import Opened, Step
from bindscope.questions.program import Progress
from bindscope.questions.question import BadValue, RunQuestion, ask, to_step, to_texts

if TYPE_CHECKING:
    import xarray as xr

MOST_PARTS = 12
LIVE_PARTS = {
    "type": list[str], "item": {"min_length": 1, "max_length": 40}, "min_length": 1, "max_length": MOST_PARTS,
    "required": True,
}  # fmt: skip


def a_donor(help: str) -> Any:
    """The checkpoint that gives."""
    return ask(None, flag="--from", convert=to_step, live={**LIVE_STEP, "required": True}, help=help)


def a_receiver(help: str) -> Any:
    """The checkpoint that receives."""
    return ask(None, flag="--to", convert=to_step, live={**LIVE_STEP, "required": True}, help=help)


def some_parts(help: str) -> Any:
    """What is given, in one or several trials."""
    return ask(None, flag="--part", convert=to_texts, shown=True, live=LIVE_PARTS, help=help)


@dataclass(frozen=True, kw_only=True)
class Transplant(RunQuestion):
    """How well does one checkpoint answer with these parts of another (component patching between checkpoints)?"""

    command_name, method = "transplant", "transplant"

    donor: Step | None = a_donor(
        "The checkpoint that gives (the donor): a step, 'first' or 'last'. Without --from and --to: from after each jump of "
        "the run to before it, the spikes of sums, the end of the plateau of programs."
    )
    receiver: Step | None = a_receiver("The checkpoint that receives.")
    parts: tuple[str, ...] | None = some_parts(
        "What is given, by a name of --list. Names joined by + are given together. Give it once for each trial; without "
        "it, a few large parts."
    )
    controls: int = ask(
        0, ge=0, le=100, live={"never": True},
        help="Changes at random of the same size that each part is held against (for patterns: those of other examples).",
    )  # fmt: skip
    n: int = ask(
        200, shown=True, ge=1, live={"ge": 10, "le": 1000}, help="How many examples to draw (of each split of sums)."
    )
    seed: int = a_seed()

    def check(self) -> None:
        if (self.receiver is None) != (self.donor is None):
            raise BindscopeError("--from and --to: name both checkpoints, or neither to take those around the jumps.")
        if self.parts == ():
            raise BadValue("parts", "a transplant needs at least one part.")

    def around_jumps(self, opened: Opened) -> list[Transplant]:
        """The same question for the checkpoints that were named, or for those around each jump."""
        if self.donor is not None:
            return [self]
        return [
            replace(self, donor=after, receiver=before)
            for before, after in family_of(opened.task).find_jumps(opened.run)
        ]

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Accuracy of the receiver, of the donor and with each part, over (part, split)."""
        import numpy as np

        from bindscope.measures.transplanting import measure_transplants

        if self.receiver is None or self.donor is None:
            raise BindscopeError("receiver and donor: name two checkpoints.")
        family = family_of(opened.task)
        ends: dict[str, Any] = {name: opened.find_step(getattr(self, name)) for name in ("receiver", "donor")}
        asked = family.ask_transplants(opened.task, np.random.default_rng(self.seed), self.n)
        rows = list(self.parts or family.usual_parts)
        models = opened.load(ends["receiver"]), opened.load(ends["donor"])
        dataset = measure_transplants(*models, rows, asked, self.seed, on_progress, self.controls)
        return dataset.assign_attrs(
            run=opened.name, **ends, n=self.n, seed=self.seed, counted=asked.counted, within=asked.within
        )


@dataclass(frozen=True, kw_only=True)
class Retrain(RunQuestion):
    """How soon does a checkpoint on the plateau leave it, when it is given a part of a later one and trained on?"""

    command_name, method, runs_on = "retrain", "retrain", "programs"

    donor: Step | None = a_donor(
        "The checkpoint that gives: a step or 'last'. Left out, the first one of the last phase."
    )
    receiver: Step | None = a_receiver("The checkpoint that is trained on. Left out, the last but one on the plateau.")
    parts: tuple[str, ...] | None = some_parts(
        "What is given, by a name of 'bindscope transplant RUN --list'. Names joined by + are given together. Without it, six "
        "parts that are all weights but the LayerNorms."
    )
    seeds: int = ask(2, ge=1, le=20, help="How many orders of the data; each is one training of every cell.")
    most_steps: int = ask(300, ge=1, le=100_000, help="How many steps to train a cell at most.")
    every: int = ask(10, ge=1, help="How many steps lie between two evaluations.")
    n: int = ask(800, ge=50, help="How many programs to draw; those whose first two lines mislead are asked.")
    seed: int = a_seed()

    def check(self) -> None:
        if self.parts == ():
            raise BadValue("parts", "retraining needs at least one part.")
        if self.every > self.most_steps:
            raise BadValue("every", f"must be at most the {self.most_steps} steps that are trained, got {self.every}.")

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """``left`` over (part, condition, seed), ``score`` over (…, trained), and both of the receiver as it is."""
        import numpy as np

        from bindscope.measures.binding.plateau_transplants import ask_by_depth
        from bindscope.studies.binding.transplants.measure import (
            Retraining,
            find_window,
            measure_retraining,
            retrained_rows,
        )

        task = opened.task_of(self.runs_on)
        window = find_window(opened.run) if self.receiver is None or self.donor is None else None
        receiver = opened.find_step(window.early if self.receiver is None and window else self.receiver)  # type: ignore[arg-type]
        donor = opened.find_step(window.after if self.donor is None and window else self.donor)  # type: ignore[arg-type]
        asked = ask_by_depth(task, np.random.default_rng(self.seed), self.n)
        rows = list(self.parts or retrained_rows(opened.run.config.model))
        how = Retraining(self.seeds, self.most_steps, self.every)
        dataset = measure_retraining(opened.run, receiver, donor, rows, asked, how, on_progress)
        return dataset.assign_attrs(run=opened.name, n=self.n)
