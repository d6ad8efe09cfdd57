"""What the lab holds: the site itself, its runs, and one run with its settings and phases."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import bindscope
from bindscope.errors import BindscopeError
from bindscope.families import all_families, family_of
from bindscope.runs.directory import Run
from bindscope.schema import to_mapping
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
from bindscope.web.body import Strict, encode
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Page, Resource

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

DAMAGED = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)  # … by its files


class PhaseSpan(Strict):
    """A phase of a run's life, from its first to its last evaluation."""

    name: str
    first_step: int
    last_step: int
    accuracy: float


class RunSummary(Strict):
    """What the picker and the slider need to know of a run."""

    name: str
    family: str
    status: str
    version: str  # changes whenever the run does
    steps: list[int]  # of the checkpoints that are shown
    n_saved: int  # checkpoints that the run has; a static copy may show fewer
    accuracies: list[float | None]  # at each of them; null where it was not evaluated
    last_step: int  # of the last evaluation
    total_steps: int
    accuracy: float | None  # at the last evaluation
    n_parameters: int
    n_layers: int
    n_heads: int
    d_model: int
    n_bytes: int  # of saved checkpoints
    n_lines: int | None  # of a binding program
    max_depth: int | None
    phases: list[PhaseSpan]
    phase_names: list[str]  # all that such a run can have, in their order
    kinds: list[str]  # what can be asked of it: programs, sums, …, claims
    subject: str  # what it is a run on, in a few words
    description: str  # in the words of the preset it comes from
    read_only: bool  # whether nothing is written to it: it is shipped, or was opened from the page


class PresetSummary(Strict):
    """What can be trained."""

    name: str
    summary: str
    family: str
    n_parameters: int
    steps: int
    seconds: float | None  # that training took where it was measured; null where nobody has


class PresetList(Strict):
    """All presets, as ``bindscope presets`` lists them."""

    presets: list[PresetSummary]


class RunList(Strict):
    """All runs that are open, and what kind of site this is."""

    version: str  # of Bindscope
    live: bool  # whether questions to a model are answered here
    opens_directories: bool  # whether the page may name further runs by their directory
    starts_work: bool  # whether the page may start measurements and trainings
    runs: list[RunSummary]
    families: dict[str, list[str]]  # what can be asked → the families whose runs can be asked that
    problems: list[str]  # a sentence for each run that cannot be read


class RunDetail(Strict):
    """One run with all its settings."""

    summary: RunSummary
    config: dict[str, Any]
    made_with: dict[str, Any]
    command: str


def list_runs(lab: Lab) -> RunList:
    found, problems = [], list(lab.unreadable.values())
    for run in lab.runs.values():
        try:
            found.append(run.remember("summary", partial(summarise_run, run)))
        except BindscopeError as problem:
            problems.append(str(problem))
    return RunList(
        version=bindscope.__version__,
        live=lab.live,
        opens_directories=lab.opens_directories,
        starts_work=lab.starts_work,
        runs=found,
        problems=list(dict.fromkeys(map(lab.without_paths, problems))),
        families=_families_by_kind(),
    )


def list_presets(lab: Lab) -> PresetList:
    from bindscope.studies.framework.costs import MEASURED
    from bindscope.studies.framework.presets import PRESETS

    costs = {name: MEASURED.get(name) for name in PRESETS}
    return PresetList(
        presets=[
            PresetSummary(
                name=name,
                summary=preset.summary,
                family=preset.config.task.family,
                n_parameters=preset.config.model.n_parameters,
                steps=preset.config.total_steps,
                seconds=None if (cost := costs[name]) is None else cost.seconds,
            )
            for name, preset in PRESETS.items()
        ]
    )


def _families_by_kind() -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for family in all_families():
        for kind in family.pages:
            families.setdefault(kind, []).append(family.name)
    return families


def describe_run(lab: Lab, run: LabRun) -> RunDetail:
    return _detail(run, run.remember("summary", partial(summarise_run, run)))


def summarise_run(run: LabRun) -> RunSummary:
    """What the picker needs, of a run that can be shown from beginning to end; another is refused with a sentence."""
    try:
        summary = _summary(run)
        encode(_detail(run, summary))  # files hold numbers and half characters that no answer can
    except DAMAGED:
        raise BindscopeError(
            f"{run.path}: this run cannot be shown: what its files hold is no run of Bindscope."
        ) from None
    return summary


def _detail(run: LabRun, summary: RunSummary) -> RunDetail:
    manifest = run.run.manifest
    made_with = {name: value for name, value in to_mapping(manifest).items() if name not in ("config", "checkpoints")}
    return RunDetail(
        summary=summary,
        config=dict(manifest.config),
        made_with=made_with,
        command=run.command,
    )


def _summary(run: LabRun) -> RunSummary:
    version, opened = run.version, run.run
    measured, phases = _read_metrics(opened)
    config = opened.config
    task, model, family = config.task, config.model, family_of(config.task)
    return RunSummary(
        name=run.name,
        family=run.family,
        status=opened.status,
        version=version,
        steps=list(run.steps),
        n_saved=len(opened.steps),
        accuracies=[measured.get(step) for step in run.steps],
        last_step=max(measured, default=0),
        total_steps=opened.manifest.total_steps,
        accuracy=measured[max(measured)] if measured else None,
        n_parameters=model.n_parameters,
        n_layers=model.n_layers,
        n_heads=model.n_heads,
        d_model=model.d_model,
        n_bytes=sum(kept.n_bytes for kept in opened.manifest.checkpoints.values()),
        n_lines=getattr(task, "lines", None),
        max_depth=getattr(task, "max_depth", None),
        phases=phases,
        phase_names=list(family.phase_names),
        kinds=sorted(run.kinds),
        subject=family.subject or family.name,
        description=run.description,
        read_only=run.read_only,
    )


def _read_metrics(run: Run) -> tuple[dict[int, float | None], list[PhaseSpan]]:
    """Accuracy by step of evaluation, and the phases so far."""
    records = run.metrics
    if not any("watched" in record for record in records):  # nothing was evaluated yet
        return {}, []
    dataset = trajectory_dataset(records, family=run.config.task.family)
    accuracies = _accuracy_of(dataset).tolist()
    measured = {
        step: accuracy if math.isfinite(accuracy) else None
        for step, accuracy in zip(dataset.step.values.tolist(), accuracies, strict=True)
    }
    spans = [
        PhaseSpan(name=phase.name, first_step=phase.first_step, last_step=phase.last_step, accuracy=phase.accuracy)
        for phase in phases_of(dataset)
    ]
    return measured, spans


def _accuracy_of(dataset: xr.Dataset) -> np.ndarray:
    """One number for each evaluation: the test split's, or the mean over all splits where none is the test split."""
    first = dataset.split_accuracy.isel(split=0)
    return (first if str(dataset.split.values[0]) == "test" else dataset.split_accuracy.mean("split")).values


PAGE = Page(
    "runs",
    resources=(
        Resource("runs.json", list_runs, "The runs that are open", RunList, at_once=True),
        Resource("presets.json", list_presets, "What can be trained", PresetList),
        Resource("runs/{run}/run.json", describe_run, "One run with its settings", RunDetail),
    ),
)
