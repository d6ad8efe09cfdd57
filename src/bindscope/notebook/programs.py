"""A run on programs as Python meets it: what it answers, where it attends, and what changes when activations are put in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bindscope.notebook.asking import asks
from bindscope.notebook.drawn import Drawn
from bindscope.notebook.mechanisms import MechanismsView, first_root_line
from bindscope.notebook.view import Step, Steps
from bindscope.questions.grids import Effect, Grids, GridSeries
from bindscope.questions.pairs import Direction
from bindscope.questions.patch import Grid, Patch, Path
from bindscope.questions.program import Ablate, Attention, Lens, Predict
from bindscope.questions.question import to_texts
from bindscope.questions.samples import Sample
from bindscope.questions.subspace import Project, Quality, Swap, SwapControl
from bindscope.questions.transplants import Retrain

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.interventions.own_metric import Function
    from bindscope.tasks.binding import Program


class ProgramsView(MechanismsView):
    """A run whose task is to follow variables through programs such as ``k=9;c=k;#c:``."""

    @asks(Predict)
    def predict(self, program: str, steps: Steps = "last") -> Drawn:
        """What it answers to a program: ``probability`` over (step, output).

        >>> run.predict("k=9;c=k;#c:", steps="all").plot()
        """
        question = Predict(run=self.name, program=program, steps=self._steps(steps))
        return self._drawn(question.answer(self.opened), "prediction", program=self.parse(program).one_line)

    @asks(Lens)
    def lens(self, program: str, step: Step = "last") -> Drawn:
        """What each layer would answer at each position: probabilities and logits over (layer, position).

        >>> run.lens("k=9;c=k;#c:").answer
        """
        dataset = Lens(run=self.name, program=program, step=step).answer(self.opened)
        parsed = self.parse(program)
        described = {"program": parsed.one_line, "answer": str(parsed.answer), "depth": parsed.depth}
        return self._drawn(dataset, "lens", step=self.run.find_step(step), **described)

    @asks(Attention)
    def attention(
        self, program: str, step: Step = "last", *, ablate: Sequence[str] = (), kind: Literal["zero", "mean"] = "zero"
    ) -> Drawn:
        """What each head attends to: ``pattern`` over (layer, head, query, key).

        >>> run.attention("k=9;c=k;#c:").pattern.sel(layer=2, head=1)
        """
        question = Attention(run=self.name, program=program, step=step, ablate=tuple(ablate), kind=kind)
        parsed = self.parse(program)
        described = {"program": parsed.one_line, "depth": parsed.depth, "step": self.run.find_step(step)}
        return self._drawn(question.answer(self.opened), "attention", **described)

    @asks(Ablate)
    def ablate(
        self,
        program: str | None = None,
        *,
        sites: Sequence[str] = (),
        kind: Literal["zero", "mean", "resample"] = "mean",
        cut: Sequence[str] = (),
        layer: int | None = None,
        head: int | None = None,
        step: Step = "last",
        n: int = 400,
        depth: int | None = None,
        first_root_line: int = 1,
        seed: int = 0,
    ) -> xr.Dataset:
        """The answer to a program before and after parts were ablated: ``probability`` over (condition, output).

        Without a program, ``n`` drawn ones: whether each was answered correctly, over (layer, head, example) for
        every head alone, or over (example) for ``sites`` or cut edges together.

        >>> run.ablate("k=9;c=k;#c:", sites=["L2.H1"], kind="zero").probability
        """
        question = Ablate(
            run=self.name, program=program, sites=tuple(sites), kind=kind, cut=tuple(cut), layer=layer, head=head, step=step,
            n=n, depth=depth, first_root_line=first_root_line, seed=seed,
        )  # fmt: skip
        return question.answer(self.opened)

    @asks(Patch)
    def patch(
        self,
        program: str | None = None,
        counterfactual: str | None = None,
        *,
        grid: Grid = "residual",
        sites: Sequence[str] = (),
        neurons: Sequence[int] = (),
        direction: Direction = "noising",
        steps: Steps = "last",
        source_step: Step | None = None,
        approximate: bool = False,
        tolerance: float = 0.0,
        metric: str | Function | None = None,
        n: int = 200,
        depth: int | None = None,
        first_root_line: int | None = None,
        seed: int = 0,
    ) -> Drawn:
        """Activations of the second program patched into the first, cell by cell or at ``sites`` together; without
        programs, ``n`` drawn pairs. Every outcome over (step, cell …, pair). ``metric`` may be a function of your own,
        ``f(patched, base, source, answers)``: its numbers stand beside the others, under its name.

        >>> run.patch("k=9;c=k;#c:", "k=4;c=k;#c:", sites=["L2.H1", "L3.mlp_out"], steps="all").plot()
        """
        question = Patch(
            run=self.name, program=program, counterfactual=counterfactual, grid=grid, sites=tuple(sites),
            neurons=tuple(neurons), direction=direction, steps=self._steps(steps), source_step=source_step,
            approximate=approximate, tolerance=tolerance, metric=metric, n=n, depth=depth,
            first_root_line=self._root_line(first_root_line), seed=seed,
        )  # fmt: skip
        words = {"chain": "the chain's named positions", "residual": "the residual stream"}
        what = " + ".join(sites) or words.get(grid, grid)
        return self._drawn(question.answer(self.opened), "patch", title=f"{self.name}: {what}, {direction}")

    @asks(Grids)
    def grids(
        self,
        *,
        grid: Grid = "residual",
        metric: Effect = "logit_difference",
        direction: Direction = "noising",
        steps: Steps = "all",
        n: int = 200,
        depth: int | None = None,
        first_root_line: int | None = None,
        seed: int = 0,
        jobs: int | None = None,
        cluster: str | None = None,
    ) -> GridSeries:
        """Patch grids of ``n`` drawn pairs at every checkpoint, a file each: what is missing is measured in ``jobs``
        processes, or on a Ray ``cluster``. ``summary()`` has the means over (step, cell …), ``pairs(step, pair=7)`` reads
        one pair alone.

        >>> run.grids(n=8, steps=[900, 3700], jobs=1).summary().success.sel(layer=2)
        """
        question = Grids(
            run=self.name, grid=grid, metric=metric, direction=direction, steps=self._steps(steps), n=n, depth=depth,
            first_root_line=self._root_line(first_root_line), seed=seed,
        )  # fmt: skip
        return question.answer(self.opened, self.results_folders, jobs, cluster)

    @asks(Path)
    def path(
        self,
        program: str | None = None,
        counterfactual: str | None = None,
        *,
        sender: str,
        receivers: str | Sequence[str],
        direction: Direction = "noising",
        step: Step = "last",
        metric: str | Function | None = None,
        n: int = 200,
        depth: int | None = None,
        first_root_line: int | None = None,
        seed: int = 0,
    ) -> xr.Dataset:
        """What the sender tells each receiver directly (path patching): every outcome over (receiver, pair).

        >>> run.path("k=9;c=k;#c:", "k=4;c=k;#c:", sender="L1.H0", receivers=["L3.H1.k", "logits"])
        """
        question = Path(
            run=self.name, program=program, counterfactual=counterfactual, sender=sender, receivers=receivers,  # type: ignore[arg-type]
            direction=direction, step=step, metric=metric, n=n, depth=depth,
            first_root_line=self._root_line(first_root_line), seed=seed,
        )  # fmt: skip
        return question.answer(self.opened)

    @asks(Retrain)
    def retrain(
        self,
        receiver: Step | None = None,
        donor: Step | None = None,
        parts: str | Sequence[str] | None = None,
        *,
        seeds: int = 2,
        most_steps: int = 300,
        every: int = 10,
        n: int = 800,
        seed: int = 0,
    ) -> Drawn:
        """A checkpoint on the plateau given parts of a later one and trained on: ``left``, the steps until it leaves the
        plateau, over (part, condition, seed), beside ``baseline_left`` over (seed).

        >>> run.retrain(parts=["L0.QK"], seeds=1, most_steps=20, n=100).left
        """
        question = Retrain(
            run=self.name, receiver=receiver, donor=donor, parts=None if parts is None else to_texts(parts), seeds=seeds, most_steps=most_steps,
            every=every, n=n, seed=seed,
        )  # fmt: skip
        return self._drawn(question.answer(self.opened), "retrain")

    def subspace(self, of: Quality = "values", step: Step = "last", n: int = 300, seed: int = 1) -> Drawn:
        """Swaps inside the subspace of values or names, beside every control, over (condition).

        >>> run.subspace("values", n=50).plot()
        """
        import torch

        from bindscope.subspaces import default_search, measure_subspace
        from bindscope.tasks.binding import sample_name_pairs, sample_root_pairs

        task, rng, model = self.task, np.random.default_rng(seed), self.model(step)
        sample: Any = sample_root_pairs if of == "values" else sample_name_pairs
        fit, test = (sample(task, rng, size, first_root_line=first_root_line(task)) for size in (2 * n, n))
        generator = torch.Generator().manual_seed(seed)
        return self._drawn(measure_subspace(model, fit, test, default_search(model, of), generator), "subspace")

    def apply(self, file: str | File, steps: Steps = "last") -> xr.Dataset:
        """What a subspace, circuit or intervention that --save wrote does here: its effect over (step).

        >>> run.apply("chain.safetensors", steps="all").patched
        """
        from bindscope.questions.findings import apply_finding

        return apply_finding(File(file), self.opened, self._steps(steps))

    @asks(Swap)
    def swap(
        self,
        program: str,
        counterfactual: str,
        *,
        of: Quality = "values",
        step: Step = "last",
        control: SwapControl = "found",
        seed: int = 0,
        draws: int = 1,
    ) -> Drawn:
        """One pair with the part of its residual stream inside a subspace swapped: ``probability`` over
        (condition, output).

        >>> run.swap("k=9;c=k;#c:", "k=4;c=k;#c:", control="random").plot()
        """
        question = Swap(
            run=self.name,
            program=program,
            counterfactual=counterfactual,
            quality=of,
            step=step,
            control=control,
            seed=seed,
            draws=draws,
        )
        return self._drawn(question.answer(self.opened), "swap", step=self.run.find_step(step))

    @asks(Project)
    def project(
        self,
        program: str,
        *,
        of: Quality = "values",
        step: Step = "last",
        axes: Literal["frozen", "refitted", "random"] = "frozen",
    ) -> Drawn:
        """Where a program's tokens lie along the saved axes of a subspace: ``coordinate`` over (point, axis).

        >>> run.project("k=9;c=k;#c:", of="values").plot()
        """
        question = Project(run=self.name, program=program, quality=of, step=step, axes=axes)
        dataset = question.answer(self.opened, self.result)
        return self._drawn(dataset, "points", step=self.run.find_step(step), axes=axes)

    @asks(Sample)
    def sample(
        self, *, depth: int | None = None, n_lines: int | None = None, distractors: int | None = None, seed: int = 0
    ) -> xr.Dataset:
        """A new program of this run's task with its counterfactual: ``text``, ``counterfactual`` … over (program).

        >>> str(run.sample(depth=3).text.values[0])
        """
        question = Sample(run=self.name, depth=depth, n_lines=n_lines, distractors=distractors, seed=seed)
        return question.answer(self.task)

    def parse(self, program: str) -> Program:
        """A program of this run's task that its model can read, lines ended by line breaks or ';'.

        >>> run.parse("k=9;c=k;#c:").answer
        """
        return self.task.read(program, self.run.config.model.n_positions)
