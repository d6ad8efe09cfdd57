"""Questions about the subspaces of values and names: one pair swapped inside one, and where a program's tokens lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bindscope.questions.fields import a_program, a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.model.transformer import Transformer
    from bindscope.studies.binding.representation.one_pair import Kept
    from bindscope.subspaces.stream import Change

Quality = Literal["values", "names"]
SwapControl = Literal["found", "random", "shuffled", "rest"]
MOST_DRAWS = 20  # of a control: one that is fitted to shuffled labels takes a second or so
WHAT = "What is looked for: the digits that variables hold, or the letters that name them."


@dataclass(frozen=True, kw_only=True)
class Swap(RunQuestion):
    """What becomes of the answer when the part of the residual stream inside a subspace is the counterfactual's?"""

    command_name, method, runs_on = "subspace", "swap", "programs"

    program: str = a_program(help="The program that is run, lines separated by ';'.")
    counterfactual: str = a_program(help="The program whose residual stream is swapped in, as long as the first.")
    quality: Quality = ask("values", flag="--of", keyword="of", help=WHAT)
    step: Step = one_step()
    control: SwapControl = ask(
        "found",
        help="What is swapped: the part inside the subspace, inside a random one of equal rank, inside one fitted to "
        "shuffled labels, or all the rest.",
    )
    seed: int = a_seed(0, "The seed of a control that is drawn; further draws have the next ones.", shown=True)
    draws: int = ask(
        1, help="How many draws of such a control are averaged, with their 95 % interval.", ge=1, le=MOST_DRAWS
    )

    def answer(self, opened: Opened, find: Callable[[int, Transformer, Quality], Kept] | None = None) -> xr.Dataset:
        """``probability`` over (condition: base, counterfactual, swapped; output), and every metric; of several draws their
        means, the ends of ``probability`` over (output), and how many draws gave the counterfactual's answer.

        ``find(step, model, quality)`` gives the subspace of a checkpoint where someone keeps them; otherwise it is fitted.
        """
        from bindscope.measures.binding.subspace_pair import average_draws, swap_pair
        from bindscope.studies.binding.representation.one_pair import find_kept_subspace, fit_to_shuffled
        from bindscope.tasks.binding import read_pair

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        *_, pairs = read_pair(task, self.program, self.counterfactual, opened.n_positions)
        model = opened.load(step)
        kept = find(step, model, self.quality) if find else find_kept_subspace(opened.run, model, self.quality)
        changes: list[Change]
        if self.control == "shuffled":
            changes = [each.swap for each in fit_to_shuffled(opened.run, model, self.quality, self.seeds)]  # type: ignore[misc]
        else:
            changes = [kept.change(self.control, seed) for seed in self.seeds]
        swapped = [swap_pair(model, pairs, kept.search, change, opened.task) for change in changes]
        dataset = swapped[0] if len(swapped) == 1 else average_draws(swapped)
        return dataset.assign_attrs(control=self.control, draws=len(swapped))

    @property
    def seeds(self) -> range:
        """One for each draw; what is not drawn is swapped once."""
        return range(self.seed, self.seed + (self.draws if self.control in ("random", "shuffled") else 1))


@dataclass(frozen=True, kw_only=True)
class Project(RunQuestion):
    """Where do this program's tokens lie along a subspace's axes?"""

    command_name, method, runs_on = "subspace", "project", "programs"

    program: str = a_program(help="The program, lines separated by ';'.")
    quality: Quality = ask("values", flag="--of", keyword="of", help=WHAT)
    step: Step = one_step()
    axes: Literal["frozen", "refitted", "random"] = ask(
        "frozen", help="Along the axes of the last checkpoint (frozen), of the nearest one (refitted), or random ones."
    )

    def answer(self, opened: Opened, result: Callable[[str], xr.Dataset]) -> xr.Dataset:
        """``coordinate`` over (point, axis); the axes are those of the saved ``result("projections")``."""
        from bindscope.measures.binding.subspace_pair import kept_axes, project_program
        from bindscope.subspaces import default_search

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        program, model = task.read(self.program, opened.n_positions), opened.load(step)
        axes = kept_axes(result("projections"), self.quality, self.axes, step)
        return project_program(model, program, default_search(model, self.quality), axes, opened.task)
