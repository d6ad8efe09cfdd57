"""A run as Python meets it: each method returns a labelled array that draws itself.

Here stands what all runs have; what is asked of a family's own examples stands in ``programs`` and ``sums``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.notebook.asking import asks
from bindscope.notebook.drawn import Drawn
from bindscope.questions.coefficient import Coefficient
from bindscope.questions.diagnostics import Diagnostics
from bindscope.questions.opened import Opened
from bindscope.questions.question import to_texts
from bindscope.questions.transplants import Transplant
from bindscope.runs.directory import Run
from bindscope.runs.locate import RUNS_DIRECTORY, is_shipped, results_folders

if TYPE_CHECKING:
    from torch import Tensor

    from bindscope.model.transformer import Transformer
    from bindscope.notebook.verdicts import Verdicts
    from bindscope.studies.framework.results import Library, Result

Step = int | str  # a saved step, 'first' or 'last'
Steps = Step | Sequence[int]  # also 'all', or several


class OfAnotherFamily(BindscopeError, AttributeError):
    """Something that runs of another family can be asked; the sentence says which."""


class RunView:
    """One run. ``run.run`` is the directory behind it, ``run.model(step)`` the network at a step."""

    asked_elsewhere: Mapping[str, str] = {}  # what only runs of another family have, and what those are

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.run.name

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps whose weights are saved."""
        return self.run.steps

    def model(self, step: Step = "last") -> Transformer:
        """The network as it was at a step.

        >>> run.model(900).config.n_layers
        """
        return self.run.checkpoint(step)

    def tokens(self, example: str) -> Tensor:
        """An example of the task, as a person types it, as the model reads it: token ids [1, position], for ``bindscope.run``.

        >>> bindscope.run(run.model(), run.tokens("k=9;c=k;#c:")).logits[0, -1].argmax()
        """
        import torch

        task = self.run.config.task
        return torch.from_numpy(task.to_batch(task.read(example, self.run.config.model.n_positions)).tokens)

    def trajectory(self) -> Drawn:
        """Everything its evaluations recorded, over ``step``.

        >>> run.trajectory().plot()
        """
        from bindscope.studies.framework.trajectory import trajectory_dataset

        return Drawn.of(trajectory_dataset(self.run.metrics, self.run.manifest.config), "trajectory")

    def phases(self) -> Drawn:
        """Its phases: ``first_step``, ``last_step``, ``accuracy``, ``n_evaluations`` over (phase).

        >>> run.phases().accuracy
        """
        from bindscope.studies.framework.trajectory import phases_of

        phases = phases_of(self.trajectory())
        fields = ("first_step", "last_step", "accuracy", "n_evaluations")
        columns = {name: ("phase", np.array([getattr(phase, name) for phase in phases])) for name in fields}
        return Drawn.of(xr.Dataset(columns, {"phase": [phase.name for phase in phases]}), "phases", run=self.name)

    def development(self) -> Drawn:
        """Everything measured of it over training: ``value``, ``low``, ``high`` over (curve, step), ``turned_at`` over (curve).

        >>> run.development().turned_at
        """
        from bindscope.studies.framework.development import develop

        return Drawn.of(develop(self.library), "development")

    @asks(Coefficient)
    def coefficient(
        self,
        steps: Steps = "last",
        *,
        part: str = "all",
        data: str = "all",
        n: int = 1024,
        chains: int = 4,
        draws: int = 40,
        burn_in: int = 16,
        step_size: float = 2e-4,
        elasticity: float = 1000.0,
        seed: int = 0,
    ) -> Drawn:
        """The local learning coefficient: ``coefficient`` with its interval and diagnostics over (step), ``trace`` over
        (step, chain, draw).

        >>> run.coefficient([400, 900], n=256, draws=20, burn_in=8).plot()
        """
        question = Coefficient(
            run=self.name, steps=self._steps(steps), part=part, data=data, n=n, chains=chains, draws=draws,
            burn_in=burn_in, step_size=step_size, elasticity=elasticity, seed=seed,
        )  # fmt: skip
        return self._drawn(question.answer(self.opened), "coefficient")

    @asks(Diagnostics)
    def diagnostics(self, steps: Steps = "last", *, n: int = 64, seed: int = 0) -> Drawn:
        """Plateau diagnostics: ``repetition``, ``collapse``, ``signal_to_noise`` … with intervals over (step, …).

        >>> run.diagnostics([400, 900], n=16).repetition
        """
        question = Diagnostics(run=self.name, steps=self._steps(steps), n=n, seed=seed)
        return self._drawn(question.answer(self.opened), "diagnostics")

    @asks(Transplant)
    def transplant(
        self,
        receiver: Step,
        donor: Step,
        parts: str | Sequence[str] | None = None,
        *,
        controls: int = 0,
        n: int = 200,
        seed: int = 0,
    ) -> Drawn:
        """The model of one step with parts of another's: ``accuracy`` and ``fraction``, how far this is of the way to the
        donor, over (part, split).

        Each part is tried by itself; a name such as ``"L0.QK + letters"`` takes several together.

        >>> run.transplant(400, 900, ["L0.QK", "L1-4.OV", "letters"], controls=3).plot()
        """
        question = Transplant(
            run=self.name,
            receiver=receiver,
            donor=donor,
            parts=None if parts is None else to_texts(parts),
            controls=controls,
            n=n,
            seed=seed,
        )
        return self._drawn(question.answer(self.opened), "transplant")

    def verify(
        self, claims: Sequence[str] = (), *, documents: Path | str | Sequence[Path | str] = (), results: Sequence[str] = (),
        metrics: Sequence[str] = (),
    ) -> Verdicts:  # fmt: skip
        """The paper's claims against this run, all or those named; missing results are measured and saved.

        ``documents`` are TOML files with claims of one's own; ``results`` and ``metrics`` that these read, PATH.py:NAME.

        >>> run.verify(["VB1", "VB3"]).plot("VB3")
        """
        from bindscope.notebook.verdicts import Verdicts
        from bindscope.studies.framework.verify import find_study, verify

        if not documents:
            study = find_study(self.run.config.task.family)
            return Verdicts(verify(self.library, [study.find_claim(name) for name in claims] or list(study.claims)))
        from bindscope.questions.claimed import open_claims
        from bindscope.studies.framework.verify import study_or_none

        paths = [documents] if isinstance(documents, Path | str) else documents
        own = open_claims([Path(path) for path in paths], results, metrics)
        study = study_or_none(self.run.config.task.family)
        return Verdicts(verify(self._library(own.joined(study.results)), own.choose(study, claims)))

    def result(self, name: str) -> Drawn:
        """A result that the study saves with runs ('trajectory', 'chain', 'progress' …), measured if it is missing.

        >>> run.result("chain").success.sel(position="query").max("layer")
        """
        filled = self.library.fill(name)
        if filled.dataset is None:
            raise BindscopeError(f"{self.name}: no result '{name}': {filled.reason}")
        return Drawn.of(filled.dataset, "result")

    @cached_property
    def library(self) -> Library:
        """Where results are read and saved; those of a shipped run under ./runs."""
        from bindscope.studies.framework.verify import study_or_none

        return self._library(study_or_none(self.run.config.task.family).results)

    @property
    def results_folders(self) -> tuple[Path, ...]:
        """Where results are read; new ones are saved in the first."""
        return results_folders(self.run.path, self.name, is_shipped(self.run.path), placement=self.run.placement)

    def _library(self, results: Iterable[Result]) -> Library:
        from bindscope.studies.framework.results import Library

        folder, *also_in = self.results_folders
        return Library(self.run, results, folder, also_in, runs_directory=RUNS_DIRECTORY)

    def __getattr__(self, name: str) -> Any:
        if name in self.asked_elsewhere:
            family = self.run.config.task.family
            raise OfAnotherFamily(f"{self.name}: its task is {family}; '{name}' is for {self.asked_elsewhere[name]}.")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

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
        """The run in a few words: task, size, steps and phases.

        >>> run.summary()["model"]
        """
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

    @property
    def opened(self) -> Opened:
        """The run as questions meet it."""
        return Opened.of(self.run)

    def _steps(self, steps: Steps) -> Any:
        """Steps in order, however they were named."""
        return steps if isinstance(steps, int | str) else tuple(sorted(steps))

    def _drawn(self, dataset: xr.Dataset, figure: str, **attrs: Any) -> Drawn:
        return Drawn.of(dataset, figure, run=self.name, **attrs)
