"""A run as Python meets it: each method returns a labelled array that draws itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.notebook.drawn import Drawn, show_figures
from bindscope.runs.directory import Run
from bindscope.runs.locate import RUNS_DIRECTORY, find_run, is_shipped

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.notebook.verdicts import Verdicts
    from bindscope.studies.results import Library
    from bindscope.tasks.binding import BindingTask, CounterfactualPairs, Program

Step = int | str  # a kept step, 'first' or 'last'
Steps = Step | Sequence[int]  # also 'all', or several
Grid = Literal["chain", "residual", "heads", "mlps"]
Quality = Literal["values", "names"]
Control = Literal["found", "random", "rest"]
Kind = Literal["frozen", "refitted", "random"]


def open_run(run: str | Path | Run) -> RunView:
    """A run by its path, its name under ./runs, or the name of a shipped one.

    >>> open_run("binding-laptop").predict("k=9;c=k;#c:", steps="all").plot()
    """
    show_figures()
    return RunView(run if isinstance(run, Run) else Run.open(find_run(str(run))))


class RunView:
    """One run. ``run.run`` is the directory behind it, ``run.model(step)`` the network at a step."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps whose weights are kept."""
        return self.run.steps

    def model(self, step: Step = "last") -> Transformer:
        """The network as it was at a step."""
        return self.run.checkpoint(step)

    def trajectory(self) -> Drawn:
        """Everything its evaluations recorded, over ``step``."""
        from bindscope.studies.trajectory import trajectory_dataset

        return Drawn.of(trajectory_dataset(self.run.metrics, self.run.manifest.config), "trajectory")

    def phases(self) -> Drawn:
        """Its phases: ``first_step``, ``last_step``, ``accuracy``, ``n_evaluations`` over (phase)."""
        from bindscope.studies.trajectory import phases_of

        phases = phases_of(self.trajectory())
        fields = ("first_step", "last_step", "accuracy", "n_evaluations")
        columns = {name: ("phase", np.array([getattr(phase, name) for phase in phases])) for name in fields}
        return Drawn.of(xr.Dataset(columns, {"phase": [phase.name for phase in phases]}), "phases", run=self.name)

    def predict(self, program: str, steps: Steps = "last") -> Drawn:
        """What it answers to a program: ``probability`` over (step, output)."""
        from bindscope.studies.one_program import predict_program

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
        from bindscope.studies.one_program import ablate_program, attention_dataset

        parsed, found = self.parse(program), self.run.find_step(step)
        patterns = ablate_program(self.model(step), self._binding_task(), parsed).patterns
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
        from bindscope.studies.patching import Patch, patch_steps

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

        task, rng, model = self._binding_task(), np.random.default_rng(seed), self.model(step)
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
        from bindscope.studies.binding.subspace_pair import find_kept_subspace, swap_pair
        from bindscope.tasks.binding import pair_programs

        model, pairs = self.model(step), pair_programs(self.parse(program), self.parse(counterfactual))
        kept = find_kept_subspace(self.run, model, of)
        dataset = swap_pair(model, pairs, kept.search, kept.change(control, seed))
        return self._drawn(dataset, "swap", step=self.run.find_step(step), control=control)

    def project(self, program: str, *, of: Quality = "values", step: Step = "last", axes: Kind = "frozen") -> Drawn:
        """Where a program's tokens lie along the kept axes of a subspace: ``coordinate`` over (point, axis)."""
        from bindscope.studies.binding.subspace_pair import kept_axes, project_program
        from bindscope.subspaces import default_search

        model, found = self.model(step), self.run.find_step(step)
        along = kept_axes(self.result("projections"), of, axes, found)
        dataset = project_program(model, self.parse(program), default_search(model, of), along)
        return self._drawn(dataset, "points", step=found, axes=axes)

    def verify(self, claims: Sequence[str] = ()) -> Verdicts:
        """The paper's claims against this run, all or those named; missing results are measured and kept."""
        from bindscope.notebook.verdicts import Verdicts
        from bindscope.studies.verify import find_study, verify

        study = find_study(self.run.config.task.family)
        return Verdicts(verify(self.library, [study.find_claim(name) for name in claims] or list(study.claims)))

    def result(self, name: str) -> Drawn:
        """A result that the study keeps with runs ('chain', 'probes', 'subspaces' …), measured if it is missing."""
        filled = self.library.fill(name)
        if filled.dataset is None:
            raise BindscopeError(f"{self.name}: no result '{name}': {filled.reason}")
        return Drawn.of(filled.dataset, "result")

    def parse(self, program: str) -> Program:
        """A program of this run's task, lines ended by line breaks or ';'."""
        task: Any = self._binding_task()
        program_of_task: Program = task.parse(program.replace(";", "\n"))
        return program_of_task

    @cached_property
    def library(self) -> Library:
        """Where results are read and kept; those of a shipped run under ./runs."""
        from bindscope.studies.results import Library
        from bindscope.studies.verify import find_study

        inside = self.run.path / "results"
        study = find_study(self.run.config.task.family)
        if not is_shipped(self.run.path):
            return Library(self.run, study.results, inside, runs_directory=RUNS_DIRECTORY)
        folder = RUNS_DIRECTORY / f"verify-{self.name}" / "results"
        return Library(self.run, study.results, folder, (inside,), runs_directory=RUNS_DIRECTORY)

    def __repr__(self) -> str:
        return f"<run {self.name}: {self.run.config.task.family}, {len(self.steps)} checkpoints>"

    def _repr_html_(self) -> str:
        """What the run is, as a small table."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self.summary().items()
        )
        return f"<table><caption>{escape(self.name)}</caption>{rows}</table>"

    def summary(self) -> dict[str, str]:
        """The run in a few words: task, size, steps and phases."""
        config = self.run.config
        model, steps = config.model, self.steps
        rows = {
            "task": config.task.family,
            "model": f"{model.n_layers} layers of {model.n_heads} heads, {model.d_model} wide, {model.n_parameters:,} parameters",
            "status": str(self.run.status),
            "checkpoints": f"{len(steps)}, step {steps[0]:,} to {steps[-1]:,}" if steps else "none yet",
        }
        try:
            phases = self.phases()
        except BindscopeError:  # nothing was evaluated yet
            return rows
        for name in phases.phase.values:
            one = phases.sel(phase=name)
            rows[f"{name} phase"] = (
                f"step {int(one.first_step):,} to {int(one.last_step):,}, accuracy {float(one.accuracy):.3f}"
            )
        return rows

    def _pairs(self, program: str | None, counterfactual: str | None, n: int, seed: int) -> CounterfactualPairs:
        from bindscope.tasks.binding import pair_programs, sample_root_pairs

        task: Any = self._binding_task()
        if (program is None) != (counterfactual is None):
            raise BindscopeError("one program was given; give a second one to take activations from, or none.")
        if program is not None and counterfactual is not None:
            return pair_programs(self.parse(program), self.parse(counterfactual))
        return sample_root_pairs(task, np.random.default_rng(seed), n, first_root_line=first_root_line(task))

    def _find_steps(self, steps: Steps) -> list[int]:
        if steps == "all":
            self.run.find_step("last")
            return list(self.steps)
        if isinstance(steps, int | str):
            return [self.run.find_step(steps)]
        return sorted({self.run.find_step(step) for step in steps})

    def _binding_task(self) -> Any:
        task = self.run.config.task
        if task.family != "binding":
            raise BindscopeError(f"{self.name}: its task is {task.family}; programs are for runs on binding.")
        return task

    def _drawn(self, dataset: xr.Dataset, figure: str, **attrs: Any) -> Drawn:
        return Drawn.of(dataset, figure, run=self.name, **attrs)


def first_root_line(task: BindingTask) -> int:
    """The first line that may hold the root's constant: line 3, where shortcuts are wrong, if programs are long enough."""
    return min(3, max(1, task.lines - task.max_depth))
