"""Experiments change what they name, keep their runs where they say, and conclude from their numbers alone."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.runs.config import RunConfig, config_to_mapping, override
from bindscope.studies.binding.experiments.conclude import conclude_comparison, conclude_held_out, conclude_seeds
from bindscope.studies.framework.cells import gather_cells
from bindscope.studies.framework.experiments import (
    SHIPPED_DATASETS,
    Experiment,
    Variant,
    all_experiments,
    experiment_dataset,
    find_experiment,
    find_experiment_dataset,
    load_experiment_dataset,
    plan_cells,
    save_experiment_dataset,
    train_cells,
)
from bindscope.studies.framework.presets import find_preset
from measures.simulated_runs import SimulatedRun

EXPERIMENTS = all_experiments()
FLASH = {
    "training.steps": 4, "training.batch_size": 4, "training.evaluate_every": 2, "training.evaluation_size": 60,
    "model.n_layers": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """As much of a run as gathering reads."""

    metrics: list
    status: str = "finished"
    config: RunConfig = find_preset("binding-tiny").config


def flatten(mapping, prefix=""):
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_every_cell_is_its_preset_with_the_named_changes(experiment):
    before = dict(flatten(config_to_mapping(find_preset(experiment.preset).config)))
    for cell in plan_cells(experiment, range(2)):
        variant = experiment.find_variant(cell.variant)
        if cell.shipped:
            continue
        named = {**experiment.changes, **variant.changes}
        after = dict(flatten(config_to_mapping(cell.config)))
        changed = {key for key in before if before[key] != after.get(key)} - {"baseline", "start"}  # which were none
        if cell.config.task.family == "templates":  # each seed has training sequences of its own
            assert cell.config.task.seed == cell.seed
            changed.discard("task.seed")
        removed = tuple(f"{key}." for key, value in named.items() if value is None)  # with everything inside
        changed = {key for key in changed if not key.startswith(removed)}
        sizes = {"model.n_positions", "model.d_vocab", "model.d_out"}
        follows_task = sizes if any(key.startswith("task.") for key in named) else set()
        assert changed - {"name", "seed"} <= set(named) | follows_task
        assert all(after[key] == value for key, value in named.items())
        assert cell.config.seed == cell.seed


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_a_borrowed_cell_is_exactly_what_its_owner_trains(experiment):
    for cell in plan_cells(experiment, range(2)):
        if cell.owner is not None:
            _, owned = find_experiment(experiment.name).find_variant(cell.variant).borrowed
            (original,) = plan_cells(find_experiment(cell.owner), [cell.seed], [owned])
            assert original.config == cell.config


def test_a_shipped_cell_differs_from_the_trained_one_in_nothing_but_when_it_stops():
    for experiment in EXPERIMENTS.values():
        for cell in plan_cells(experiment, [0]):
            if cell.shipped:
                (trained,) = plan_cells(replace(experiment, variants=(without_shipped(experiment, cell.variant),)), [0])
                stops = {"name": "same", "training.stop_at": 0.5}
                assert override(trained.config, stops) == override(cell.config, stops)
                assert (cell.config.training.stop_at or 1.0) >= (trained.config.training.stop_at or 1.0)
                ((_, run),) = train_cells([cell], SHIPPED_DATASETS)  # comes with Bindscope and is not trained
                assert run.path.parent == SHIPPED_DATASETS.parent


def without_shipped(experiment, name):
    return replace(experiment.find_variant(name), shipped=None)


def test_variants_of_an_experiment_are_told_apart():
    for experiment in EXPERIMENTS.values():
        names = [variant.name for variant in experiment.variants]
        assert len(set(names)) == len(names)
        cells = plan_cells(experiment, [0], full=True)
        labels = {
            variant.name: variant.labels for variant in experiment.variants
        }  # one model may stand in several rows
        told = {(str(replace(cell.config, name="same")), str(labels[cell.variant].get("setting"))) for cell in cells}
        assert len(told) == len(names)


def test_seeds_come_first_so_that_what_is_stopped_has_all_variants():
    cells = plan_cells(find_experiment("loss"), range(2))
    assert [(cell.seed, cell.variant) for cell in cells] == [(0, "answer"), (0, "all"), (1, "answer"), (1, "all")]


def flash_experiment(name, variants, measure=None):
    return Experiment(
        name, "?", "binding-tiny", variants, 1, "none", conclude_comparison, lambda dataset: None, measure, FLASH
    )


def test_cells_are_trained_once_where_their_owner_keeps_them(tmp_path):
    experiment = flash_experiment(
        "mine",
        (Variant("lent", "from elsewhere", borrowed=("theirs", "plain")), Variant("own", "", {"task.exponent": 0.0})),
    )
    cells = plan_cells(experiment)
    directory = tmp_path / "experiment-mine"
    runs = dict(train_cells(cells, directory))
    assert (tmp_path / "experiment-theirs" / "plain-seed-0" / "manifest.json").is_file()
    assert [path.name for path in directory.iterdir()] == ["own-seed-0"]
    stamps = {run.path: (run.path / "manifest.json").stat().st_mtime_ns for run in runs.values()}
    again = dict(train_cells(cells, directory))
    assert stamps == {run.path: (run.path / "manifest.json").stat().st_mtime_ns for run in again.values()}
    assert runs.keys() == again.keys()
    dataset = experiment_dataset(experiment, again)
    assert list(dataset.variant.values) == ["lent", "own"]
    assert (dataset.last_step == 4).all()
    assert dataset.accuracy.dims == ("variant", "seed", "step")
    other = replace(cells[1], config=override(cells[1].config, {"training.steps": 6}))
    with pytest.raises(BindscopeError, match="other settings"):
        list(train_cells([other], directory))


def test_gathered_cells_hold_what_each_run_did():
    fast, slow = SimulatedRun(masters=(400, 500, 600)), SimulatedRun(masters=(None, None, None), last_step=1000)
    runs = {("fast", 0): Recorded(fast.records()), ("slow", 0): Recorded(slow.records(), "stopped early"),
            ("fast", 1): Recorded(SimulatedRun(seed=1).records())}  # fmt: skip
    dataset = gather_cells(runs, ["slow", "fast", "absent"])
    assert list(dataset.variant.values) == ["slow", "fast"]
    assert dataset.learned.sel(variant="fast", seed=0) == pytest.approx(600, abs=50)
    assert 300 <= dataset.left_plateau.sel(variant="fast", seed=0) <= 600
    assert np.isnan(dataset.learned.sel(variant="slow", seed=0))
    assert dataset.phases.sel(variant="fast", seed=0) == "random, heuristic, systematic"
    assert dataset.phases.sel(variant="slow", seed=0) == "random, heuristic"
    assert dataset.status.sel(variant="slow", seed=0) == "stopped early"
    assert dataset.accuracy.sel(variant="slow", seed=0).notnull().sum() == 21  # every 50 steps up to 1,000
    assert np.isnan(dataset.last_step.sel(variant="slow", seed=1))  # not trained
    assert dataset.status.sel(variant="slow", seed=1) == ""
    first = dataset.phase_first_step.sel(variant="fast", seed=0)
    assert first.sel(phase="random") < first.sel(phase="heuristic") < first.sel(phase="systematic")


def test_conclusions_tell_the_numbers_and_leave_out_what_was_not_trained():
    runs = {("preset", seed): Recorded(SimulatedRun(seed=seed, masters=(900, 950, 1000)).records()) for seed in (0, 1)}
    runs["preset", 2] = Recorded(SimulatedRun(masters=(None, None, None)).records())
    dataset = gather_cells(runs, ["preset"])
    text = conclude_seeds(dataset)
    assert text.startswith("2 of 3 seeds")
    first, second, never = dataset.learned.sel(variant="preset").values
    assert np.isnan(never)
    assert f"from: step {first:,.0f}, step {second:,.0f}, never in 2,000 steps" in text
    uneven = {**runs, ("other", 1): Recorded(SimulatedRun(masters=(500, 500, 500)).records())}
    text = conclude_comparison(gather_cells(uneven, ["preset", "other"]))
    assert "other (1 seed): plateau left step " in text
    assert "preset (3 seeds): plateau left step " in text


def test_a_dataset_is_read_back_as_it_was(tmp_path):
    records = SimulatedRun(last_step=400).records()
    dataset = gather_cells({("a", 0): Recorded(records), ("b", 1): Recorded(records)}, ["a", "b"])
    path = save_experiment_dataset(dataset, tmp_path / "new" / "x.nc")
    again = load_experiment_dataset(path)
    assert (again.status.astype(str) == dataset.status).all()
    np.testing.assert_allclose(again.accuracy_by_depth, dataset.accuracy_by_depth, rtol=1e-6)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BindscopeError, match="damaged"):
        load_experiment_dataset(path)


def test_a_dataset_made_here_comes_before_the_shipped_one(tmp_path):
    shipped = find_experiment_dataset("held-out", tmp_path)
    assert shipped == SHIPPED_DATASETS / "held-out.nc"
    own = tmp_path / "experiment-held-out" / "held-out.nc"
    own.parent.mkdir()
    own.write_bytes(b"")
    assert find_experiment_dataset("held-out", tmp_path) == own
    with pytest.raises(BindscopeError, match="Did you mean 'held-out'"):
        find_experiment_dataset("held-ou", tmp_path)


def test_unknown_variants_are_refused_with_the_nearest():
    with pytest.raises(BindscopeError, match="Did you mean 'uniform'"):
        plan_cells(find_experiment("weighting"), only=["unifrm"])


def test_nothing_trained_is_nothing_concluded():
    with pytest.raises(BindscopeError, match="none of its runs"):
        experiment_dataset(find_experiment("loss"), {})


def test_a_seed_that_stopped_before_another_reached_what_it_reached() -> None:
    """Seeds of 'held-out' stop when they answer 99 %, so the shorter ones have no numbers at the last steps."""
    dataset = load_experiment_dataset(SHIPPED_DATASETS / "held-out.nc")
    said = conclude_held_out(dataset)
    assert said.count("it reaches 90 % at step 1,") == dataset.sizes["seed"] == 3
    assert "never on" not in said
