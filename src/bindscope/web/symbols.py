"""What everything about abstract symbols needs: datasets of experiments, which belong to the lab and to no run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.errors import suggest_nearest
from bindscope.questions.render import write_command, write_python
from bindscope.runs.locate import study_results
from bindscope.web.body import Provenance
from bindscope.web.claims import INTERVAL, Subject
from bindscope.web.lab import Lab, Missing, NotMeasured, stamp_files

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.studies.framework.experiments import Experiment

STUDY = "symbols"  # as ``bindscope verify`` takes it


@cache
def curve_experiments() -> dict[str, Experiment]:
    """The experiments on templates that compare models over n, over widths, or over another setting, by name."""
    from bindscope.families import family_of
    from bindscope.studies.framework.experiments import all_experiments
    from bindscope.studies.framework.presets import find_preset

    return {
        name: experiment
        for name, experiment in all_experiments().items()
        if "templates" in family_of(find_preset(experiment.preset).config.task).kinds
        and all({"model", "n"} <= set(variant.labels) for variant in experiment.variants)
    }


def find_curves(name: str) -> Experiment:
    """One of them; another name is missing."""
    known = curve_experiments()
    if name not in known:
        raise Missing(f"there is no experiment '{name[:100]}' on symbols.{suggest_nearest(name[:100], known)}")
    return known[name]


def read_dataset(lab: Lab, name: str) -> xr.Dataset:
    """An experiment's dataset, made here or shipped; where there is none, the command that makes it."""
    from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset

    path = find_experiment_dataset(name, lab.kept_in)
    if path is None:
        raise NotMeasured(f"{name}: nobody has trained this here yet; '{write_command('experiment', name)}' does.")
    return load_experiment_dataset(path)


def dataset_files(lab: Lab, names: Iterable[str]) -> list[Path]:
    """Where these experiments' datasets are looked for."""
    from bindscope.studies.framework.experiments import SHIPPED_DATASETS

    return [
        path
        for name in names
        for path in (lab.kept_in / f"experiment-{name}" / f"{name}.nc", SHIPPED_DATASETS / f"{name}.nc")
    ]


def study_files(lab: Lab) -> list[Path]:
    """Everything that the study's verdicts are made of."""
    from bindscope.studies.framework.experiments import all_experiments

    return [*dataset_files(lab, all_experiments()), _results(lab)]


def study_subject(lab: Lab) -> Subject:
    """The study's claims and what is known here about them, read again whenever a dataset has changed."""
    from bindscope.studies.framework.verify import find_study, open_study, studies_without_runs

    study, version = find_study(studies_without_runs()[STUDY]), stamp_files(study_files(lab))
    known = lab.libraries.get(STUDY)
    if known is None or known[0] != version:
        library, _ = open_study(STUDY, _results(lab), lab.kept_in)
        known = lab.libraries[STUDY] = version, library
    again = write_command("verify", STUDY), write_python("study.verify()", opener="study")
    return Subject(STUDY, study, known[1], f"{STUDY}/claims", Provenance(seed=0, interval=INTERVAL), *again)


def _results(lab: Lab) -> Path:
    return study_results(STUDY, lab.kept_in)
