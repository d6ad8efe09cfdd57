"""The runs that come with Bindscope are whole, small, and show what they are said to show."""

import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.spikes import SUM_PHASES
from bindscope.measures.binding.phases import PHASES
from bindscope.measures.evaluation import build_evaluator
from bindscope.runs.directory import Run
from bindscope.runs.locate import SHIPPED_DIRECTORY, shipped_runs
from bindscope.studies.assign_add.learning.phases import published_spikes, spikes_of
from bindscope.studies.framework.presets import PRESETS
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
from bindscope.studies.framework.verify import find_study

IMPORTED = "small-pythia"  # made by examples/small_pythia.py and imported; all others were trained here
SHIPPED = [path.name for path in shipped_runs()]
NAMES = [name for name in SHIPPED if name != IMPORTED]
BINDING = [name for name in NAMES if PRESETS[name].config.task.family == "binding"]


def test_a_run_of_each_finished_study_is_shipped():
    assert {"binding-laptop", "assign-add"} <= set(NAMES)


def test_all_shipped_runs_together_are_small():
    total = sum(file.stat().st_size for file in SHIPPED_DIRECTORY.rglob("*") if file.is_file())
    assert total < 103e6


def test_the_small_language_model_has_the_size_and_the_few_weights_it_is_said_to_have():
    run = Run.open(SHIPPED_DIRECTORY / IMPORTED)
    assert run.config.task.family == "code"
    assert run.config.model.parallel
    assert 1e6 < run.config.model.n_parameters < 3e6
    assert len(run.metrics) > 3 * len(run.steps)  # how binding appears is seen at many steps, weights are there for few
    assert all(kept.n_bytes < 3e6 for kept in run.manifest.checkpoints.values())
    with pytest.raises(
        BindscopeError, match="step 1000 was evaluated, but its weights are not in this copy of the run"
    ):
        run.checkpoint(1000)
    assert not any(str(file).startswith(("/", "~")) for file in run.manifest.data["files"].values())


def test_half_precision_weights_of_the_small_language_model_answer_as_recorded():
    run = Run.open(SHIPPED_DIRECTORY / IMPORTED)
    evaluate = build_evaluator(run.config.task, 500, seed=5)
    recorded = {row["step"]: row["test"] for row in run.metrics}
    for step in run.steps:
        found = evaluate(run.checkpoint(step))["test"]
        assert found["accuracy"] == pytest.approx(recorded[step]["accuracy"], abs=0.08)
    assert found["accuracy_by_depth"][0] > 0.98  # one hop is learned
    assert found["accuracy_by_depth"][0] > max(found["accuracy_by_depth"][1:])  # … and further ones less


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_run_is_its_preset_trained(name):
    assert Run.open(SHIPPED_DIRECTORY / name).config == PRESETS[name].config


def phases_of_run(run):
    return phases_of(trajectory_dataset(run.metrics, run.manifest.config))


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_run_went_through_all_three_phases(name):
    run = Run.open(SHIPPED_DIRECTORY / name)
    phases = phases_of_run(run)
    assert [phase.name for phase in phases] == list(PHASES if name in BINDING else SUM_PHASES)
    for phase in phases:  # and each can be looked at
        assert any(phase.first_step <= step <= phase.last_step for step in run.steps)


@pytest.mark.parametrize("name", BINDING)
def test_half_precision_weights_behave_as_the_phases_say(name):
    run = Run.open(SHIPPED_DIRECTORY / name)
    evaluate = build_evaluator(run.config.task, 1000, seed=5)
    assert evaluate(run.checkpoint("last"))["test"]["accuracy"] > 0.99
    heuristic = phases_of_run(run)[1]
    middle = run.nearest_step((heuristic.first_step + heuristic.last_step) // 2)
    plateau = evaluate(run.checkpoint(middle))["test"]
    assert plateau["accuracy"] == pytest.approx(heuristic.accuracy, abs=0.08)
    assert plateau["misleading"]["follows_early_lines"] > 0.5


def test_half_precision_weights_of_sums_answer_as_recorded():
    run = Run.open(SHIPPED_DIRECTORY / "assign-add")
    evaluate = build_evaluator(run.config.task, 1000, seed=5)
    dataset = trajectory_dataset(run.metrics, family=run.config.task.family)
    around = {step for spike in published_spikes(spikes_of(dataset)) for step in (spike.before_step, spike.after_step)}
    for step in {*around, run.steps[-1]}:
        assert step in run.steps  # both sides of both spikes can be looked at
        recorded = dataset.split_accuracy.sel(step=step)
        for split, accuracy in evaluate(run.checkpoint(step))["watched"].items():
            assert accuracy == pytest.approx(float(recorded.sel(split=split)), abs=0.06), (step, split)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_results_that_verify_reads_are_shipped_and_current(name, tmp_path):
    run = Run.open(SHIPPED_DIRECTORY / name)
    study = find_study(run.config.task.family)
    stored = [result.name for result in study.results if result.kept and not result.on_demand]
    library = Library(run, study.results, tmp_path, [run.path / "results"], runs_directory=tmp_path)
    if not getattr(run.config.task, "reassign", 0) and "reassignment" in stored:  # refused at once, and never saved
        stored.remove("reassignment")
        assert "assign every variable once" in library.fill("reassignment").reason
    assert {result: library.fill(result).origin for result in stored} == dict.fromkeys(stored, "kept")
