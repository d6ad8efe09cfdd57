"""What experiments measure in trained models, and that what is shipped is what the documentation says."""

from pathlib import Path

import numpy as np
import pytest

from bindscope.measures.evaluation import build_evaluator
from bindscope.runs.config import override
from bindscope.runs.directory import Run
from bindscope.runs.execute import train_run
from bindscope.studies.binding.experiments import measure as experiment_measures
from bindscope.studies.binding.generalisation import measure as generalisation
from bindscope.studies.framework.experiments import (
    SHIPPED_DATASETS,
    Cell,
    all_experiments,
    experiment_dataset,
    find_experiment,
    load_experiment_dataset,
    save_experiment_dataset,
)
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context
from bindscope.studies.symbols.pretrained.define import PRETRAINED_SIZES

SMALL = {
    "training.steps": 3, "training.batch_size": 4, "training.evaluate_every": 3, "training.evaluation_size": 20,
    "model.n_layers": 2, "model.identity_qk": True, "model.identity_vo": True, "model.identity_gain": 20.0,
    "task.lines": 8, "task.max_depth": 3,
}  # fmt: skip
DATASETS = sorted(SHIPPED_DATASETS.glob("*.nc"))
PRETRAINED = {f"pretrained-{n}" for n in PRETRAINED_SIZES}  # variants of gpt2 where a directory is named
PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    config = override(find_preset("binding-tiny").config, SMALL)
    path = tmp_path_factory.mktemp("measured") / config.name
    train_run(config, path, device="cpu", threads=1)
    return {Cell("tiny", 3, config): Run.open(path)}


def test_other_lengths_are_measured_as_an_evaluation_would(runs, monkeypatch):
    monkeypatch.setattr(experiment_measures, "LENGTHS", (2, 8))
    monkeypatch.setattr(experiment_measures, "N_LENGTH", 60)
    seen = []
    dataset = experiment_measures.measure_lengths(runs, lambda done, total: seen.append((done, total)))
    (run,) = runs.values()
    task = override(run.config, {"task.min_lines": None, "task.queries": 1}).task
    expected = build_evaluator(task, 60, experiment_measures.SEED)(run.checkpoint())["test"]["accuracy_by_depth"]
    np.testing.assert_allclose(dataset.accuracy_at.sel(variant="tiny", seed=3, lines=8), expected)
    assert np.isnan(
        dataset.accuracy_at.sel(variant="tiny", seed=3, lines=2, depth=3)
    )  # two lines hold no chain of three
    assert seen == [(1, 1)]


def test_identity_paths_are_measured_in_every_run(runs, monkeypatch):
    monkeypatch.setattr(experiment_measures, "N_PARTS", 40)
    dataset = experiment_measures.measure_seed_paths(runs)
    (run,) = runs.values()
    model = run.checkpoint()
    gain = 20.0 / model.config.d_model**0.5
    found = dataset.scaled_a.sel(variant="tiny", seed=3)
    expected = np.stack([gain * block.attention.identity_a.detach().numpy() for block in model.layers])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert dataset.accuracy_without_later.notnull().all()


def test_writes_and_chains_are_measured_over_checkpoints(runs, monkeypatch):
    for name, value in {"N_WRITES": 4, "N_LONGEST": 4, "N_CHECKPOINTS": 2}.items():
        monkeypatch.setattr(experiment_measures, name, value)
    writes = experiment_measures.measure_writes(runs)
    np.testing.assert_allclose(writes.write_fraction.sum("outcome"), 1)
    np.testing.assert_allclose(writes.laptop_write_fraction.sum("outcome"), 1)
    assert writes.laptop_write_attention.dims == ("write", "laptop_layer", "laptop_head")
    chains = experiment_measures.measure_longest_chain(runs)
    assert set(chains.longest_chain_fraction.dims) == {"variant", "seed", "checkpoint"}
    assert (chains.checkpoint == writes.checkpoint).all()


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.stem)
def test_a_shipped_dataset_is_drawn_and_the_page_tells_its_conclusion(path):
    experiment = all_experiments()[path.stem]
    dataset = load_experiment_dataset(path)
    known = {variant.name for variant in experiment.variants} | PRETRAINED
    assert set(map(str, dataset.variant.values)) <= known
    axes = experiment.draw(dataset).axes
    assert len(axes) >= (1 if "n" in dataset.coords else 2)  # curves over n may fit one panel
    assert any(each.has_data() for each in axes)
    page = PAGE.read_text(encoding="utf-8")
    assert experiment.conclude(dataset) in page, f"paste the conclusion of 'bindscope experiment {path.stem} --show'"
    assert experiment.limits in page
    assert f"figures/experiment-{path.stem}.svg" in page


def test_grids_of_models_of_one_length_are_those_that_vb10_reads(runs, monkeypatch, tmp_path):
    monkeypatch.setattr(experiment_measures, "N_GRID", 20)
    monkeypatch.setattr(generalisation, "LENGTHS", (2, 8))
    monkeypatch.setattr(generalisation, "DEPTHS", (1, 2, 6))
    experiment = find_experiment("fixed-length")
    (run,) = runs.values()
    dataset = experiment_dataset(experiment, {Cell("16-lines", 0, run.config): run})
    save_experiment_dataset(dataset, tmp_path / "experiment-fixed-length" / "fixed-length.nc")
    read = generalisation.compute_fixed_length(Context(run, runs_directory=tmp_path)).isel(seed=0)
    own = generalisation.measure_grid(run, 20, np.random.default_rng(experiment_measures.SEED))
    for name in ("accuracy", "n", "line_1_where_wrong", "line_1_by_chance"):
        np.testing.assert_allclose(read[name].transpose(*own[name].dims), own[name], atol=1e-6)
    assert (read.attrs["preset"], read.attrs["trained_lines"], read.attrs["trained_min_lines"]) == (
        "binding-plain",
        16,
        16,
    )
    assert "Seed 0 answers" in experiment.conclude(dataset)
    assert all(axes.has_data() for axes in experiment.draw(dataset).axes)


def test_where_no_model_of_one_length_was_trained_there_is_none(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", tmp_path)
    (run,) = runs.values()
    assert generalisation.compute_fixed_length(Context(run, runs_directory=tmp_path)).sizes["seed"] == 0


def test_the_shipped_datasets_are_small():
    assert DATASETS
    sizes = [path.stat().st_size for path in DATASETS]
    assert max(sizes) < 1e5
    assert sum(sizes) < 6e4 * len(sizes)  # with sixteen of them, a megabyte
