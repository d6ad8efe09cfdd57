"""The life of a run over the wire: what its records hold, for every family, in training and after; and other seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from bindscope.intervals import wilson_interval
from bindscope.runs.directory import Run
from bindscope.runs.locate import shipped_runs
from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.seeds import find_seed_curves, matching_variants
from bindscope.studies.framework.trajectory import trajectory_dataset, with_intervals
from bindscope.web.body import Body, encode
from bindscope.web.lab import Lab, LabRun
from bindscope.web.pages import trajectory
from bindscope.web.stored import Stored
from rewriting import rewrite_metrics
from studies.made_runs import make_run

EXPERIMENT = {"binding-laptop": "seeds", "binding-plain": "seeds-plain"}
NAMES = list(EXPERIMENT)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    paths = shipped_runs()
    return Lab.open(paths, tmp_path_factory.mktemp("kept"), read_only=paths)


def as_sent(content: dict) -> Body:
    return Body.model_validate_json(encode(content))


@pytest.mark.parametrize("name", NAMES)
def test_every_fraction_lies_inside_its_wilson_interval(lab: Lab, name: str) -> None:
    body = as_sent(trajectory.read_trajectory(lab, lab.find(name)))
    dataset = trajectory_dataset(lab.find(name).run.metrics, family=lab.find(name).family)
    for fraction in ("split_accuracy", "accuracy_by_depth", "accuracy_by_root_line", "follows_chain"):
        values, low, high = (
            np.array(body.variables[f"{fraction}{end}"].values, float) for end in ("", "_low", "_high")
        )
        assert np.all((low <= values + 1e-6) & (values <= high + 1e-6))
    n, fractions = dataset.n_by_depth.values, dataset.accuracy_by_depth.values
    low, _ = wilson_interval(fractions * n, n)
    np.testing.assert_allclose(body.variables["accuracy_by_depth_low"].values, low.ravel(), rtol=1e-5)
    assert body.command == f"bindscope trajectory {name}"
    assert "phase_heuristic" in body.attrs


def test_a_run_on_sums_has_its_splits_and_phases(lab: Lab) -> None:
    run = lab.find("assign-add")
    body = as_sent(trajectory.read_trajectory(lab, run))
    values, low, high = (np.array(body.variables[f"split_accuracy{end}"].values) for end in ("", "_low", "_high"))
    assert np.all((low <= values + 1e-6) & (values <= high + 1e-6))
    assert len(body.coords["split"].values) == 9
    assert {"phase_addition", "phase_assignment", "phase_refinement"} <= set(body.attrs)


def test_a_run_in_training_shows_what_it_has_so_far(tmp_path: Path) -> None:
    run = LabRun(make_run(tmp_path / "made", status="training"), tmp_path)
    lab = Lab([run], tmp_path)
    before = as_sent(trajectory.read_trajectory(lab, run))
    record = {**run.run.metrics[-1], "step": 2100}
    version = run.version
    Run.open(tmp_path / "made").keep_evaluation(record)
    after = as_sent(trajectory.read_trajectory(lab, run))
    assert run.version != version
    assert after.coords["step"].values == [*before.coords["step"].values, 2100]


def test_a_fraction_nobody_counted_has_no_interval() -> None:
    """Other families record splits only; they keep the intervals of their splits and get nothing they have not."""
    scores = {"n": 100, "accuracy": 0.5, "loss": 1.0}
    records = [{"step": 0, "watched": {"test": 0.5}, "test": scores, "unseen": {**scores, "accuracy": 0.25}}]
    dataset = with_intervals(trajectory_dataset(records, family="templates"))
    assert list(dataset.split.values) == ["test", "unseen"]
    assert not [name for name in dataset if str(name).startswith(("accuracy_by", "follows"))]


def test_a_run_without_evaluations_says_so(tmp_path: Path) -> None:
    made = make_run(tmp_path / "made")
    rewrite_metrics(made.path, "")
    run = LabRun(Run.open(made.path), tmp_path)
    resource = next(each for each in trajectory.PAGE.resources if each.path.endswith("trajectory.json"))
    body = orjson.loads(Stored(Lab([run], tmp_path)).read(resource, {"run": "made"}))
    assert "no evaluation yet" in body["absent"]
    assert body["variables"] == {}


@pytest.mark.parametrize("name", NAMES)
def test_seeds_are_those_of_the_runs_own_preset(lab: Lab, name: str) -> None:
    body = as_sent(trajectory.read_seeds(lab, lab.find(name)))
    path = find_experiment_dataset(EXPERIMENT[name], lab.kept_in)
    assert path is not None
    whole = load_experiment_dataset(path).isel(variant=0)
    assert body.coords["seed"].values == whole.seed.values.tolist()
    assert body.attrs["experiment"] == EXPERIMENT[name]
    np.testing.assert_allclose(
        np.array(body.variables["accuracy"].values, float), whole.accuracy.values.ravel(), rtol=1e-6, equal_nan=True
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_band_holds_every_seed_and_touches_two(lab: Lab, name: str) -> None:
    curves = find_seed_curves(lab.find(name).run.config, lab.kept_in)
    np.testing.assert_array_equal(curves.accuracy.min("seed"), curves.accuracy_low)
    np.testing.assert_array_equal(curves.accuracy.max("seed"), curves.accuracy_high)
    np.testing.assert_array_equal(curves.n_seeds, np.isfinite(curves.accuracy).sum("seed"))
    assert int(curves.n_seeds[0]) == curves.sizes["seed"] >= 2


def test_other_settings_have_no_seeds_and_another_seed_has(lab: Lab) -> None:
    config = lab.find("binding-laptop").run.config
    other = replace(config, training=replace(config.training, batch_size=config.training.batch_size + 1))
    assert list(matching_variants(other)) == []
    assert list(matching_variants(replace(config, seed=7, name="seventh"))) == list(matching_variants(config)) != []


def test_a_run_nobody_trained_again_gets_an_empty_body_with_the_reason(tmp_path: Path) -> None:
    run = LabRun(make_run(tmp_path / "made"), tmp_path)
    body = as_sent(trajectory.read_seeds(Lab([run], tmp_path), run))
    assert body.sizes == {"seed": 0, "step": 0}
    assert "more than one seed" in body.provenance.note
