"""What the lab holds: the site itself, its runs, and one run with its settings and phases."""

from __future__ import annotations

from typing import Any

import bindscope
from bindscope.errors import BindscopeError
from bindscope.schema import to_mapping
from bindscope.web.body import Strict
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Page, Resource


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
    steps: list[int]  # of kept checkpoints
    accuracies: list[float | None]  # at each of them; null where it was not evaluated
    last_step: int  # of the last evaluation
    total_steps: int
    accuracy: float | None  # at the last evaluation
    n_parameters: int
    n_layers: int
    n_heads: int
    d_model: int
    n_lines: int | None  # of a binding program
    max_depth: int | None
    phases: list[PhaseSpan]
    description: str


class RunList(Strict):
    """All runs that are open, and what kind of site this is."""

    version: str  # of Bindscope
    live: bool  # whether questions to a model are answered here
    runs: list[RunSummary]


class RunDetail(Strict):
    """One run with all its settings."""

    summary: RunSummary
    config: dict[str, Any]
    made_with: dict[str, Any]
    command: str


def list_runs(lab: Lab) -> RunList:
    return RunList(version=bindscope.__version__, live=lab.live, runs=[summarise_run(run) for run in lab.runs.values()])


def describe_run(lab: Lab, run: LabRun) -> RunDetail:
    manifest = run.run.manifest
    made_with = {name: value for name, value in to_mapping(manifest).items() if name not in ("config", "checkpoints")}
    command = f"bindscope train {manifest.name}"
    return RunDetail(summary=summarise_run(run), config=dict(manifest.config), made_with=made_with, command=command)


def summarise_run(run: LabRun) -> RunSummary:
    from bindscope.studies.trajectory import phases_of, trajectory_dataset

    opened, config = run.run, run.run.config
    records = opened.metrics
    try:
        dataset = trajectory_dataset(records)
        phases = [
            PhaseSpan(name=phase.name, first_step=phase.first_step, last_step=phase.last_step, accuracy=phase.accuracy)
            for phase in phases_of(dataset)
        ]
        accuracy = float(dataset.pool_accuracy.values[-1, 0])
        last_step = int(dataset.step.values[-1])
        measured = dict(zip(dataset.step.values.tolist(), dataset.pool_accuracy.values[:, 0].tolist(), strict=True))
    except BindscopeError:  # nothing was evaluated yet
        phases, accuracy, last_step, measured = [], None, 0, {}
    task, model = config.task, config.model
    return RunSummary(
        name=run.name,
        family=run.family,
        status=opened.status,
        version=run.version,
        steps=list(run.steps),
        accuracies=[measured.get(step) for step in run.steps],
        last_step=last_step,
        total_steps=opened.manifest.total_steps,
        accuracy=accuracy,
        n_parameters=model.n_parameters,
        n_layers=model.n_layers,
        n_heads=model.n_heads,
        d_model=model.d_model,
        n_lines=getattr(task, "lines", None),
        max_depth=getattr(task, "max_depth", None),
        phases=phases,
        description="",
    )


PAGE = Page(
    "runs",
    resources=(
        Resource("runs.json", list_runs, "The runs that are open", RunList),
        Resource("runs/{run}/run.json", describe_run, "One run with its settings", RunDetail),
    ),
)
