"""A run on programs as Python meets it: what it answers, where it looks, and what changes when activations are put in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.notebook.drawn import Drawn
from bindscope.notebook.view import RunView, Step, Steps

if TYPE_CHECKING:
    from bindscope.tasks.binding import BindingTask, CounterfactualPairs, Program

Grid = Literal["chain", "residual", "heads", "mlps"]
Quality = Literal["values", "names"]
Control = Literal["found", "random", "rest"]
Kind = Literal["frozen", "refitted", "random"]


class ProgramsView(RunView):
    """A run whose task is to follow variables through programs such as ``k=9;c=k;#c:``."""

    @property
    def task(self) -> BindingTask:
        """What it was asked: lines, variables and depths."""
        return cast("BindingTask", self.run.config.task)

    def predict(self, program: str, steps: Steps = "last") -> Drawn:
        """What it answers to a program: ``probability`` over (step, output)."""
        from bindscope.studies.binding.behaviour.one_program import predict_program

        found, parsed = self._find_steps(steps), self.parse(program)
        models = ((step, self.model(step)) for step in found)
        return self._drawn(predict_program(models, parsed), "prediction", program=parsed.one_line)

    def lens(self, program: str, step: Step = "last") -> Drawn:
        """What each layer would answer at each position: probabilities and logits over (layer, position)."""
        from bindscope.measures.lens_map import map_lens

        parsed, found = self.parse(program), self.run.find_step(step)
        described = {"program": parsed.one_line, "answer": str(parsed.answer), "depth": parsed.depth}
        return self._drawn(map_lens(self.model(step), parsed), "lens", step=found, **described)

    def attention(self, program: str, step: Step = "last") -> Drawn:
        """Where each head looks: ``pattern`` over (layer, head, query, key)."""
        from bindscope.studies.binding.behaviour.one_program import ablate_program, attention_dataset

        parsed, found = self.parse(program), self.run.find_step(step)
        patterns = ablate_program(self.model(step), self.task, parsed).patterns
        described = {"program": parsed.one_line, "depth": parsed.depth}
        return self._drawn(attention_dataset(patterns, parsed), "attention", step=found, **described)

    def patch(
        self,
        program: str | None = None,
        counterfactual: str | None = None,
        *,
        grid: Grid = "residual",
        sites: Sequence[str] = (),
        direction: Literal["noising", "denoising"] = "noising",
        steps: Steps = "last",
        source_step: Step | None = None,
        n: int = 200,
        seed: int = 0,
    ) -> Drawn:
        """Activations of the second program put into the first, cell by cell or at ``sites`` together; without programs,
        ``n`` drawn pairs. Every outcome over (step, cell …, pair).

        >>> run.patch("k=9;c=k;#c:", "k=4;c=k;#c:", sites=["L2.H1", "L3.mlp_out"], steps="all").plot()
        """
        from bindscope.studies.binding.mechanism.patching import Patch, patch_steps

        request = Patch(grid, tuple(sites), direction=direction)
        source = None if source_step is None else self.run.find_step(source_step)
        pairs = self._pairs(program, counterfactual, n, seed)
        dataset = patch_steps(self.run.checkpoint, self._find_steps(steps), pairs, request, source_step=source)
        what = " + ".join(sites) or {"chain": "the chain's places", "residual": "the stream"}.get(grid, grid)
        return self._drawn(dataset, "patch", title=f"{self.name}: {what}, {direction}")

    def subspace(self, of: Quality = "values", step: Step = "last", n: int = 300, seed: int = 1) -> Drawn:
        """Swaps inside the subspace of values or names, beside every control, over (condition)."""
        import torch

        from bindscope.subspaces import default_search, measure_subspace
        from bindscope.tasks.binding import sample_name_pairs, sample_root_pairs

        task, rng, model = self.task, np.random.default_rng(seed), self.model(step)
        sample: Any = sample_root_pairs if of == "values" else sample_name_pairs
        fit, test = (sample(task, rng, size, first_root_line=first_root_line(task)) for size in (2 * n, n))
        generator = torch.Generator().manual_seed(seed)
        return self._drawn(measure_subspace(model, fit, test, default_search(model, of), generator), "subspace")

    def swap(
        self,
        program: str,
        counterfactual: str,
        *,
        of: Quality = "values",
        step: Step = "last",
        control: Control = "found",
        seed: int = 0,
    ) -> Drawn:
        """One pair with the part of its stream inside a subspace swapped: ``probability`` over (condition, output)."""
        from bindscope.studies.binding.representation.one_pair import find_kept_subspace, swap_pair
        from bindscope.tasks.binding import read_pair

        model = self.model(step)
        *_, pairs = read_pair(self.task, program, counterfactual, model.config.n_positions)
        kept = find_kept_subspace(self.run, model, of)
        dataset = swap_pair(model, pairs, kept.search, kept.change(control, seed))
        return self._drawn(dataset, "swap", step=self.run.find_step(step), control=control)

    def project(self, program: str, *, of: Quality = "values", step: Step = "last", axes: Kind = "frozen") -> Drawn:
        """Where a program's tokens lie along the kept axes of a subspace: ``coordinate`` over (point, axis)."""
        from bindscope.studies.binding.representation.one_pair import kept_axes, project_program
        from bindscope.subspaces import default_search

        model, found = self.model(step), self.run.find_step(step)
        along = kept_axes(self.result("projections"), of, axes, found)
        dataset = project_program(model, self.parse(program), default_search(model, of), along)
        return self._drawn(dataset, "points", step=found, axes=axes)

    def parse(self, program: str) -> Program:
        """A program of this run's task that its model can read, lines ended by line breaks or ';'."""
        return self.task.read(program, self.run.config.model.n_positions)

    def _pairs(self, program: str | None, counterfactual: str | None, n: int, seed: int) -> CounterfactualPairs:
        from bindscope.tasks.binding import read_pair, sample_root_pairs

        task: Any = self.task
        if (program is None) != (counterfactual is None):
            raise BindscopeError("one program was given; give a second one to take activations from, or none.")
        if program is not None and counterfactual is not None:
            return read_pair(task, program, counterfactual, self.run.config.model.n_positions)[2]
        return sample_root_pairs(task, np.random.default_rng(seed), n, first_root_line=first_root_line(task))


def first_root_line(task: BindingTask) -> int:
    """The first line that may hold the root's constant: line 3, where shortcuts are wrong, if programs are long enough."""
    return min(3, max(1, task.lines - task.max_depth))
