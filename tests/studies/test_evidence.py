"""What verdicts rest on is listed with what is left of it, and trained in order."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.runs.directory import Run
from bindscope.studies.framework import evidence as framework
from bindscope.studies.framework import experiments, results
from bindscope.studies.framework.claims import Study, Wanted
from bindscope.studies.framework.evidence import join_datasets, list_evidence, train_evidence
from bindscope.studies.framework.experiments import (
    Experiment,
    Variant,
    all_experiments,
    load_experiment_dataset,
    save_experiment_dataset,
)
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import all_studies, open_study, studies_without_runs, verify

SMALL = {
    "task.lines": 2, "task.queries": 2, "task.max_depth": 2, "model.n_layers": 1, "training.steps": 3,
    "training.batch_size": 2, "training.evaluation_size": 8, "training.stop_at": None,
}  # fmt: skip


@pytest.fixture
def small(monkeypatch, tmp_path) -> Experiment:
    """An experiment of two runs of three steps, the only thing that verdicts rest on."""
    variants = (Variant("once", "the preset"), Variant("again", "the same", {"task.p_constant": 0.4}))
    experiment = Experiment(
        "small", "Is it trained?", "binding-tiny", variants, 1, "none", lambda dataset: "", lambda dataset: None,
        changes=SMALL, minutes=1.0,
    )  # fmt: skip
    study = Study(
        "binding", "Small", (), (), (Wanted("small", 2, "whether it is trained"), Wanted("binding-plain", 1, "x"))
    )
    monkeypatch.setattr(framework, "all_studies", lambda: [study])
    monkeypatch.setattr(framework, "all_experiments", lambda: {"small": experiment})
    return experiment


def made(cells: dict[tuple[str, int], float], **attrs) -> xr.Dataset:
    """A dataset of an experiment with the last accuracy of each cell."""
    variants, seeds = (list(dict.fromkeys(cell[i] for cell in cells)) for i in (0, 1))
    values = np.array([[cells.get((variant, seed), np.nan) for seed in seeds] for variant in variants])
    status = np.where(np.isnan(values), "", "finished")
    changes = {variant: {} for variant in variants}
    dataset = xr.Dataset(
        {
            "last_accuracy": (("variant", "seed"), values),
            "last_step": (("variant", "seed"), values * 0 + 3),
            "status": (("variant", "seed"), status),
        },
        {"variant": variants, "seed": seeds},
    )
    dataset.attrs = {
        "preset": "p", "common_changes": "{}", "sweeps": "", "steps": 3, "changes": json.dumps(changes),
        "meanings": json.dumps(dict.fromkeys(variants, "")), **attrs,
    }  # fmt: skip
    return dataset


def test_joining_keeps_every_cell_and_ones_own_where_both_have_it():
    joined = join_datasets(made({("a", 0): 0.5, ("b", 1): 0.7}), made({("a", 0): 0.1, ("a", 1): 0.2, ("c", 0): 0.3}))
    got = {
        (str(v), int(s)): float(joined.last_accuracy.sel(variant=v, seed=s))
        for v in joined.variant.values
        for s in joined.seed.values
        if np.isfinite(joined.last_accuracy.sel(variant=v, seed=s))
    }
    assert got == {("a", 0): 0.5, ("a", 1): 0.2, ("b", 1): 0.7, ("c", 0): 0.3}
    assert str(joined.status.sel(variant="a", seed=1).item()) == "finished"
    assert str(joined.status.sel(variant="c", seed=1).item()) == ""
    assert set(json.loads(joined.attrs["changes"])) == {"a", "b", "c"}


def test_runs_of_other_settings_are_not_joined():
    own = made({("a", 0): 0.5})
    assert join_datasets(own, made({("a", 1): 0.2}, preset="another")) is own
    other = made({("a", 1): 0.2, ("b", 1): 0.4}, changes=json.dumps({"a": {"task.lines": 3}, "b": {}}))
    assert set(join_datasets(own, other).variant.values) == {"a", "b"}
    assert not np.isfinite(join_datasets(own, other).last_accuracy.sel(variant="a", seed=1))


def test_a_run_is_taken_whole_from_one_of_both_and_variants_keep_their_order():
    own, other = made({("b", 0): 0.5, ("a", 0): 0.4}), made({("b", 0): 0.1, ("b", 1): 0.2, ("c", 0): 0.3})
    short, long = np.array([[[0.5, np.nan]], [[0.4, np.nan]]]), np.array([[[0.1, 0.9], [0.2, 0.9]], [[0.3, 0.9]] * 2])
    own["accuracy"] = (("variant", "seed", "step"), short)
    other["accuracy"] = (("variant", "seed", "step"), long)
    joined = join_datasets(own.assign_coords(step=[0, 1]), other.assign_coords(step=[0, 1]))
    assert list(joined.variant.values) == ["b", "a", "c"]
    assert joined.accuracy.sel(variant="b", seed=0).notnull().values.tolist() == [True, False]
    assert joined.accuracy.sel(variant="b", seed=1).values.tolist() == [0.2, 0.9]


@pytest.mark.parametrize("path", sorted(experiments.SHIPPED_DATASETS.glob("*.nc")), ids=lambda path: path.stem)
def test_a_shipped_dataset_joined_with_a_part_of_itself_is_itself(path):
    whole = load_experiment_dataset(path)
    joined = join_datasets(whole.isel(seed=slice(1)), whole)
    assert list(joined.variant.values) == list(whole.variant.values)
    assert (joined.last_step.fillna(-1) == whole.last_step.fillna(-1)).all()


def test_a_dataset_that_was_never_made_is_made_though_nothing_is_left_to_train(small, tmp_path):
    list(train_evidence(list_evidence(tmp_path), tmp_path))
    (tmp_path / "experiment-small" / "small.nc").unlink()
    item = list_evidence(tmp_path)[1]
    assert (item.left, item.unsaved) == ((), True)
    assert not list(train_evidence([item], tmp_path))
    assert (tmp_path / "experiment-small" / "small.nc").is_file()


def test_what_is_left_is_trained_in_order_and_only_once(small, tmp_path):
    shipped, item = list_evidence(tmp_path)
    assert (shipped.name, shipped.state, shipped.n_trained) == ("binding-plain", "complete", 1)
    assert (item.state, item.n_planned, len(item.left), item.seconds_left) == ("open", 2, 2, 120)
    trained = [run.name for _, run in train_evidence([shipped, item], tmp_path)]
    assert trained == ["once-seed-0", "again-seed-0"]
    dataset = load_experiment_dataset(tmp_path / "experiment-small" / "small.nc")
    assert dataset.last_step.values.tolist() == [[3], [3]]
    assert list_evidence(tmp_path)[1].state == "complete"
    assert not list(train_evidence(list_evidence(tmp_path), tmp_path))


def test_a_dataset_from_before_its_preset_changed_is_open_again(small, tmp_path):
    list(train_evidence(list_evidence(tmp_path), tmp_path))
    for name in ("once-seed-0", "again-seed-0"):  # what is left is the dataset, as of a shipped experiment
        shutil.rmtree(tmp_path / "experiment-small" / name)
    assert list_evidence(tmp_path)[1].state == "complete"
    path = tmp_path / "experiment-small" / "small.nc"
    dataset = load_experiment_dataset(path)
    settings = json.loads(dataset.attrs["settings"])
    del settings["model"]["init"]["qk_bias_std"]  # a setting that came later, at its default, changes nothing
    save_experiment_dataset(dataset.assign_attrs(settings=json.dumps(settings)), path)
    assert list_evidence(tmp_path)[1].state == "complete"
    settings["training"]["optimizer"]["lr"] = 1.0
    save_experiment_dataset(dataset.assign_attrs(settings=json.dumps(settings)), path)
    assert list_evidence(tmp_path)[1].state == "open"


def test_nothing_is_begun_that_would_not_end_in_time_and_that_is_said(small, tmp_path):
    said: list[str] = []
    assert not list(train_evidence(list_evidence(tmp_path), tmp_path, hours=0.001, say=said.append))
    assert said == ["small: 2 of 2 runs are left for another time."]


def test_a_run_that_takes_longer_than_estimated_is_said_to(small, tmp_path):
    item = list_evidence(tmp_path)[1]
    quick = replace(item, left=(replace(item.left[0], seconds=0.01),))
    said: list[str] = []
    list(train_evidence([quick], tmp_path, say=said.append))
    assert said
    assert all("takes longer than" in sentence for sentence in said)


def test_what_no_verdict_rests_on_is_refused_with_the_nearest_name():
    with pytest.raises(BindscopeError, match=r"no verdict rests on 'held-ot'.*held-out"):
        list_evidence(Path("runs"), ["held-ot"])


@pytest.mark.parametrize("study", all_studies(), ids=lambda study: study.family)
def test_every_piece_of_evidence_is_a_run_or_an_experiment_that_claims_read(study):
    for wanted in study.evidence:
        if wanted.name in all_experiments():
            assert bool(study.claims_on(wanted.name)) != wanted.beyond, wanted.name
        else:
            assert find_preset(wanted.name).config.task.family == study.family
    named = {wanted.name for wanted in study.evidence}
    judged = {name for claim in study.claims for name in claim.results}
    assert {name for result in study.results if result.name in judged for name in result.experiments} <= named
    orders = [wanted.order for each in all_studies() for wanted in each.evidence]
    assert len(set(orders)) == len(orders)


def shipped_libraries():
    for study in all_studies():
        for path in sorted(experiments.SHIPPED_RUNS.iterdir()):
            if (path / "manifest.json").is_file() and Run.open(path).config.task.family == study.family:
                yield study, path.name
        for name, family in studies_without_runs().items():
            if family == study.family:
                yield study, name


@pytest.mark.parametrize(
    ("study", "name"), list(shipped_libraries()), ids=lambda each: each if isinstance(each, str) else ""
)
def test_every_number_in_the_verdict_table_names_a_run_or_experiment_in_the_list(study, name, tmp_path, monkeypatch):
    """What results read is declared, and what is declared is listed: no verdict rests on anything else."""
    read: set[str] = set()
    find = experiments.find_experiment_dataset

    def spy(asked, directory="runs"):
        read.add(asked)
        return find(asked, directory)

    import sys

    for module in [module for key, module in sys.modules.items() if key.startswith("bindscope.studies")]:
        if getattr(module, "find_experiment_dataset", None) is find:
            monkeypatch.setattr(module, "find_experiment_dataset", spy)
    if name in studies_without_runs():
        library, _ = open_study(name, tmp_path / name, tmp_path)
    else:
        run = Run.open(experiments.SHIPPED_RUNS / name)
        library = Library(run, study.results, tmp_path / name, [run.path / "results"], runs_directory=tmp_path)
    listed = {wanted.name for wanted in study.evidence} | set(studies_without_runs())
    verification = verify(library, study.claims)
    for judged in verification.judged:
        assert set(judged.sources) <= listed, judged.claim.id
        if judged.finding.quantities:
            assert judged.sources, judged.claim.id
    declared = {each for result in study.results for each in result.experiments}
    assert read <= declared
    assert results.find_experiment_dataset is spy
