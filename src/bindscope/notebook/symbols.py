"""Study 3 as Python meets it: experiments that were trained, kernels of typed templates, and the verdicts on its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.notebook.asking import asks
from bindscope.notebook.drawn import Drawn, show_figures
from bindscope.questions.templates import SETTINGS, Kernel, TemplateCheck, TemplateSamples
from bindscope.runs.locate import RUNS_DIRECTORY, study_results

if TYPE_CHECKING:
    from bindscope.notebook.verdicts import Verdicts
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.framework.results import Library

RIDGE_SIZES = (16, 32, 64, 128, 256)


def open_study(name: str, runs: str | Path = RUNS_DIRECTORY) -> SymbolsView:
    """A study whose claims are about experiments, by its name; those trained in ``runs`` come before the shipped ones.

    >>> open_study("symbols").curves("same-different").plot()
    """
    from bindscope.studies.framework.verify import studies_without_runs

    if name not in studies_without_runs():
        known = " or ".join(f"'{study}'" for study in studies_without_runs())
        raise BindscopeError(
            f"there is no study '{name}' to open; open {known}, or a run of the other studies with open_run."
        )
    show_figures()
    return SymbolsView(name, Path(runs))


@dataclass(frozen=True, eq=False)
class SymbolsView:
    """Reasoning with abstract symbols: what was trained, what the kernel says, and what holds of the paper."""

    name: str = "symbols"
    runs_directory: Path = RUNS_DIRECTORY

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments of the study by name; ``curves(name)`` gives those that were trained here or are shipped."""
        return tuple(self._experiments)

    def curves(self, name: str, models: Sequence[str] = ()) -> Drawn:
        """What an experiment measured, over (variant, seed, step, split): made here, else shipped; all models or some.

        >>> study.curves("same-different", models=["plain", "both"]).plot()
        """
        from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset

        if name not in self._experiments:
            raise BindscopeError(f"the study has no experiment '{name}'.{suggest_nearest(name, self._experiments)}")
        path = find_experiment_dataset(name, self.runs_directory)
        if path is None:
            raise BindscopeError(
                f"nothing was trained for '{name}' yet, neither in {self.runs_directory}/ nor shipped; "
                f"'bindscope experiment {name}' trains it."
            )
        dataset = load_experiment_dataset(path)
        return Drawn.of(_select_models(dataset, name, models), "experiment", experiment=name)

    def conclusion(self, name: str) -> str:
        """The answer to an experiment's question in a paragraph, from its numbers alone.

        >>> study.conclusion("same-different")
        """
        curves = self.curves(name)  # says which names there are
        return self._experiments[name].conclude(curves)

    def samples(self, template: str, n: int = 5, seed: int = 0) -> Drawn:
        """Sequences of a template: ``token`` over (sample, position), ``symbol`` over (sample, wildcard).

        >>> study.samples("ABA").plot()
        """
        from bindscope.tasks.templates.checks import parse, sample_sequences

        parsed = parse(template)
        found = sample_sequences(parsed, n, np.random.default_rng(seed))
        substitutions = [[sample.substitution[name] for name in parsed.wildcards] for sample in found]
        arrays = {
            "token": (("sample", "position"), np.array([sample.sequence for sample in found])),
            "symbol": (("sample", "wildcard"), np.array(substitutions, dtype=str).reshape(n, -1)),
        }
        written = [token if isinstance(token, str) else token.name for token in parsed.tokens]
        coordinates = {
            "sample": np.arange(n),
            "position": np.arange(len(parsed)),
            "wildcard": list(parsed.wildcards),
            "written": ("position", written),
            "is_wildcard": ("position", [not isinstance(token, str) for token in parsed.tokens]),
        }
        return Drawn.of(xr.Dataset(arrays, coordinates), "samples", template=str(parsed), seed=seed)

    @asks(TemplateSamples)
    def sequences(self, *templates: str, n: int = 5, seed: int = 0) -> xr.Dataset:
        """Sequences of several templates: ``template``, ``sequence``, ``substitution`` over (sample), and over (problem) what
        is wrong with the templates as a task.

        >>> study.sequences("AA", "AB", n=3).sequence
        """
        return TemplateSamples(templates=templates, n=n, seed=seed).answer()

    @asks(TemplateCheck)
    def check(self, *templates: str, labels: Sequence[float | str] | None = None) -> xr.Dataset:
        """What is wrong with templates as a task: ``problem_text`` over (problem).

        >>> study.check("AA", "BB").problem_text
        """
        return TemplateCheck(templates=templates, labels=None if labels is None else tuple(labels)).answer()

    @asks(Kernel)
    def kernel(self, *templates: str, labels: Sequence[float] | None = None, **settings: Any) -> Drawn:
        """N of typed templates, or of a task by its name, with its eigenvalues and their 95 % intervals.

        ``settings`` are beta, gamma, activation, b1, b2, cls, points, seed … as the command has them. The attributes
        ``verdict`` and ``why`` say whether a transformer's kernel can learn these labels for symbols never seen.

        >>> study.kernel("AA", "AB", labels=(1, -1), beta=3).plot()
        """
        return Drawn.of(_make_kernel(templates, labels, settings).answer(), "kernel")

    def ridge(
        self,
        *templates: str,
        labels: Sequence[float] | None = None,
        n: Sequence[int] = RIDGE_SIZES,
        seeds: Sequence[int] = (0, 1, 2),
        **settings: Any,
    ) -> Drawn:
        """The error of kernel ridge regression on symbols never seen, over (n, seed); see ``ridge_generalises``.

        >>> study.ridge("aba-abb", n=[16, 64, 256]).plot()
        """
        from bindscope.tasks.templates import TemplateTask
        from bindscope.theory.kernel_ridge import ridge_generalises

        question = _make_kernel(templates, labels, settings)
        texts, numbers = question.read()
        if numbers is None:
            raise BindscopeError("labels: regression needs them, one number for each template.")
        task = TemplateTask(name="custom", templates=texts, labels=numbers)
        return Drawn.of(ridge_generalises(task, list(n), list(seeds), question.settings), "ridge")

    def verify(self, claims: Sequence[str] = ()) -> Verdicts:
        """The paper's claims, all or those named, against the experiments; missing results are measured and saved.

        >>> study.verify().dataset.verdict
        """
        from bindscope.notebook.verdicts import Verdicts
        from bindscope.studies.framework.verify import find_study, studies_without_runs, verify

        study = find_study(studies_without_runs()[self.name])
        return Verdicts(verify(self.library, [study.find_claim(name) for name in claims] or list(study.claims)))

    def claim(self, name: str) -> Verdicts:
        """One claim; its ``.plot()`` draws the figure behind the verdict.

        >>> study.claim("AS8").plot()
        """
        return self.verify([name])

    @cached_property
    def library(self) -> Library:
        """Where results are read and saved; those that are shipped need no measuring."""
        from bindscope.studies.framework.verify import open_study as open_results

        folder = study_results(self.name, self.runs_directory)
        library, _ = open_results(self.name, folder, self.runs_directory)
        return library

    @cached_property
    def _experiments(self) -> dict[str, Experiment]:
        from bindscope.studies.symbols.experiments import define as experiments
        from bindscope.studies.symbols.kernel import define as experiments_learnability
        from bindscope.studies.symbols.language import define as language
        from bindscope.studies.symbols.pretrained import define as experiments_gpt2

        parts = (experiments, experiments_learnability, experiments_gpt2, language)
        return {experiment.name: experiment for part in parts for experiment in part.EXPERIMENTS}

    def __repr__(self) -> str:
        return f"<study {self.name}: {len(self.experiments)} experiments>"

    def _repr_html_(self) -> str:
        """The questions of its experiments, and which of them were trained."""
        from bindscope.studies.framework.experiments import find_experiment_dataset

        rows = []
        for name, experiment in self._experiments.items():
            is_there = find_experiment_dataset(name, self.runs_directory) is not None
            cells = (experiment.question, "yes" if is_there else f"no: bindscope experiment {name}")
            texts = "".join(f"<td style='text-align:left'>{escape(text)}</td>" for text in cells)
            rows.append(f"<tr><th style='text-align:left'>{escape(name)}</th>{texts}</tr>")
        head = "<tr><th></th><th style='text-align:left'>question</th><th style='text-align:left'>trained</th></tr>"
        return f"<table><caption>{escape(self.name)}</caption>{head}{''.join(rows)}</table>"


def _make_kernel(templates: Sequence[str], labels: Sequence[float] | None, settings: dict[str, Any]) -> Kernel:
    for name in settings:
        if name not in SETTINGS:
            raise BindscopeError(f"the kernel has no setting '{name}'.{suggest_nearest(name, SETTINGS)}")
    return Kernel(templates=tuple(templates), labels=None if labels is None else tuple(labels), **settings)


def _select_models(dataset: xr.Dataset, name: str, models: Sequence[str]) -> xr.Dataset:
    if not models:
        return dataset
    if "model" not in dataset.coords:
        raise BindscopeError(
            f"experiment {name}: its variants are not told apart by a model's name; leave the models out."
        )
    known = dict.fromkeys(map(str, dataset.model.values))
    for model in models:
        if model not in known:
            raise BindscopeError(f"experiment {name}: no model '{model}'.{suggest_nearest(model, known)}")
    return dataset.isel(variant=np.isin(dataset.model.values.astype(str), list(models)))
