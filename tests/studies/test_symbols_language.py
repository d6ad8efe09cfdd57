"""Language modelling: what is measured of runs on a text, how pairs are compared, and when AS12 holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.cli.experiment import format_cells
from bindscope.errors import BindscopeError
from bindscope.measures.perplexity import text_losses
from bindscope.runs.directory import Run
from bindscope.studies.framework.claims import VERDICTS
from bindscope.studies.framework.command import find_command
from bindscope.studies.framework.experiments import (
    SHIPPED_DATASETS,
    Cell,
    Experiment,
    experiment_dataset,
    find_experiment,
    find_experiment_dataset,
    load_experiment_dataset,
    plan_cells,
    save_experiment_dataset,
)
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.studies.symbols.language.define import EXPERIMENT, VARIANTS, language_experiment, train_in_turn
from bindscope.studies.symbols.language.draw import draw_language
from bindscope.studies.symbols.language.judge import AS12
from bindscope.studies.symbols.language.measure import compute_language
from bindscope.studies.symbols.language.measure_runs import measure_language
from bindscope.studies.symbols.language.perplexities import compare_with_plain, conclude_language
from bindscope.tasks.text import load_corpus
from bindscope.training.progress import Progress
from tasks.made_text import write_text

FLASH = {
    "task.vocabulary_size": 300, "task.context": 16, "model.d_model": 16, "model.n_layers": 1, "model.d_head": 8,
    "model.d_mlp": 16, "training.steps": 6, "training.batch_size": 4, "training.evaluate_every": 3,
    "training.evaluation_size": 8, "training.save_every": 3, "training.checkpoints.every": 6,
}  # fmt: skip
SETTINGS = [f"{key}={value}" for key, value in FLASH.items()]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return language_experiment(str(write_text(tmp_path_factory.mktemp("text") / "made.txt")), changes=FLASH)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "experiment-language"


@pytest.fixture(scope="module")
def runs(experiment: Experiment, directory: Path) -> dict[Cell, Run]:
    cells = [*plan_cells(experiment, [0], ["plain", "both", "frozen"]), *plan_cells(experiment, [1], ["plain", "both"])]
    return dict(train_in_turn(cells, directory, "cpu", 1))


@pytest.fixture(scope="module")
def dataset(experiment: Experiment, runs: dict[Cell, Run]) -> xr.Dataset:
    return experiment_dataset(experiment, runs)


def made_dataset(plain: list[float], both: list[float], frozen: list[float] | None = None) -> xr.Dataset:
    """A dataset whose runs end with these test perplexities, one a seed."""
    rows = {"plain": plain, "both": both} | ({} if frozen is None else {"frozen": frozen})
    values, dims = np.array(list(rows.values())), ("variant", "seed")
    curves = np.stack([np.full((*values.shape, 3), 500.0), np.repeat(values[..., None], 3, -1)], 2)
    return xr.Dataset(
        {
            "test_perplexity": (dims, values),
            "test_perplexity_low": (dims, values * 0.97),
            "test_perplexity_high": (dims, values * 1.03),
            "test_word_perplexity": (dims, values**2),
            "split_perplexity": (("variant", "seed", "step", "split"), curves),
            "last_step": (dims, np.full(values.shape, 1000.0)),
            "unigram_perplexity": 200.0,
            "test_tokens": 1000,
            "test_words": 400,
            "source": "a made text",
        },
        {
            "variant": list(rows),
            "seed": np.arange(values.shape[1]),
            "step": [0, 1000],
            "split": ["train", "validation", "test"],
        },
        {"preset": "text-small", "meanings": json.dumps(dict.fromkeys(rows, ""))},
    )


def judge(*rows: list[float]) -> tuple[str, str]:
    finding = AS12.judge({"language": made_dataset(*rows)})
    return finding.verdict, finding.reason


def test_runs_of_one_seed_begin_alike_and_see_the_same_text(runs: dict[Cell, Run]) -> None:
    first = {cell.variant: run for cell, run in runs.items() if cell.seed == 0}
    plain, both = first["plain"].weights("first"), first["both"].weights("first")
    assert set(both) - set(plain) == {"blocks.0.attention.identity_a", "blocks.0.attention.identity_b"}
    assert all(np.array_equal(value, both[name]) for name, value in plain.items())
    assert first["plain"].manifest.data == first["both"].manifest.data
    assert first["plain"].manifest.data["kind"] == "text"


def test_the_perplexity_is_that_of_the_whole_test_text(runs: dict[Cell, Run], dataset: xr.Dataset) -> None:
    for cell, run in runs.items():
        task = run.config.task
        losses = text_losses(run.checkpoint(6), task.corpus.splits["test"].tokens, task.context)
        measured = dataset.sel(variant=cell.variant, seed=cell.seed)
        assert float(measured.test_perplexity) == pytest.approx(np.exp(losses.mean()), rel=1e-6)
        words = task.corpus.splits["test"].n_words
        assert float(measured.test_word_perplexity) == pytest.approx(np.exp(losses.sum() / words), rel=1e-6)
        assert measured.test_perplexity_low < measured.test_perplexity < measured.test_perplexity_high
        assert int(dataset.test_tokens) == len(losses)


def test_scalars_with_gain_0_leave_the_model_as_it_is(dataset: xr.Dataset) -> None:
    frozen, both = compare_with_plain(dataset, "frozen"), compare_with_plain(dataset, "both")
    assert frozen is not None
    assert both is not None
    assert np.abs(frozen.differences).max() < 1e-3
    assert np.abs(both.differences).min() > 0
    assert not dataset.identity_b.sel(variant="frozen", seed=0).any()
    assert dataset.identity_a.sel(variant="both").all()


def test_the_baseline_is_that_of_token_frequencies(runs: dict[Cell, Run], dataset: xr.Dataset) -> None:
    splits = next(iter(runs.values())).config.task.corpus.splits
    counts = {token: 1 for token in range(300)}
    for token in splits["train"].tokens.tolist():
        counts[token] += 1
    total = sum(counts.values())
    losses = [-np.log(counts[token] / total) for token in splits["test"].tokens[1:].tolist()]
    assert float(dataset.unigram_perplexity) == pytest.approx(np.exp(np.mean(losses)))


def test_ended_runs_are_kept_and_interrupted_ones_end_as_if_they_had_not_been(
    experiment: Experiment, directory: Path, runs: dict[Cell, Run], tmp_path: Path
) -> None:
    cells = plan_cells(experiment, [0], ["both"])

    def stop(progress: Progress) -> None:
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dict(train_in_turn(cells, tmp_path, "cpu", 1, stop))
    load_corpus.cache_clear()  # as in a new process
    [(_, resumed)] = train_in_turn(cells, tmp_path, "cpu", 1)
    original = Run.open(directory / "both-seed-0")
    assert resumed.status == "finished"
    assert all(np.array_equal(value, original.weights()[name]) for name, value in resumed.weights().items())
    before = (resumed.path / "manifest.json").stat().st_mtime_ns
    [(_, again)] = train_in_turn(cells, tmp_path, "cpu", 1)
    assert (again.path / "manifest.json").stat().st_mtime_ns == before


def test_a_run_goes_on_with_its_own_text_only(tmp_path: Path) -> None:
    text = write_text(tmp_path / "made.txt")
    cells = plan_cells(language_experiment(str(text), changes=FLASH), [0], ["plain"])

    def stop(progress: Progress) -> None:
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dict(train_in_turn(cells, tmp_path / "runs", "cpu", 1, stop))
    write_text(text, seed=5)
    load_corpus.cache_clear()
    with pytest.raises(BindscopeError, match="the text or its tokenizer is not what this run began with"):
        dict(train_in_turn(cells, tmp_path / "runs", "cpu", 1))
    text.unlink()
    load_corpus.cache_clear()
    with pytest.raises(BindscopeError, match="there is no file or directory"):
        dict(train_in_turn(cells, tmp_path / "runs", "cpu", 1))
    kept = Run.open(tmp_path / "runs" / "plain-seed-0")
    assert kept.status == "interrupted"
    assert "text-small" in find_command(kept)


def test_a_run_is_measured_on_its_own_text_only(experiment: Experiment, runs: dict[Cell, Run], tmp_path: Path) -> None:
    cell, run = next(iter(runs.items()))
    other = replace(run.manifest, data={"kind": "text", "sha256": "0" * 64})
    with pytest.raises(BindscopeError, match="is not what this run was trained on"):
        measure_language({cell: Run(run.path, other)})


def test_the_answer_is_told_drawn_and_kept(experiment: Experiment, dataset: xr.Dataset, tmp_path: Path) -> None:
    text = conclude_language(dataset)
    assert "made.txt: 1 file" in text
    assert "plain (2 seeds): perplexity" in text
    assert "Against the plain model of the same seed that is" in text
    table = format_cells(dataset, json.loads(dataset.attrs["meanings"]))
    assert "against plain" in table
    kept = load_experiment_dataset(save_experiment_dataset(dataset, tmp_path / "experiment-language" / "language.nc"))
    assert kept.test_perplexity.dims == ("variant", "seed")
    assert AS12.judge({"language": kept}).verdict == "not testable"
    axes = draw_language(kept).axes
    assert len(axes) == 3
    assert [label.get_text() for label in axes[1].get_yticklabels()] == ["plain", "both", "frozen"]


def test_it_replicates_where_every_pair_and_the_interval_are_lower() -> None:
    verdict, reason = judge([50, 52, 51], [48, 50.2, 48.9], [50.01, 51.99, 51])
    assert verdict == "replicates", reason
    assert "lower with identity scaling in all 3 pairs" in reason
    assert "a made text" in reason


def test_differences_are_paired_by_seed() -> None:
    paired = compare_with_plain(made_dataset([50, 60, 70], [49, 59.5, 68.5]), "both")
    assert paired is not None
    assert paired.differences == pytest.approx([-1, -0.5, -1.5])
    assert paired.changes == pytest.approx([-1 / 50, -0.5 / 60, -1.5 / 70])
    assert paired.interval == pytest.approx((-1 - 4.3027 * 0.5 / 3**0.5, -1 + 4.3027 * 0.5 / 3**0.5), abs=1e-3)
    assert paired.describe() == "-1.00 [-2.24 to +0.24]"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (([50, 52, 51], [48, 50, 51.5], [50, 52, 51]), "in 2 of 3 pairs"),
        (([50, 52, 51], [51, 53, 52], [50, 52, 51]), "in 0 of 3 pairs"),
        (([50, 52, 51], [49.9, 51.0, 48.0], [50, 52, 51]), "does not exclude 0"),
        (([50, 52, 51], [48, 50, 49], [50, 52, 53]), "without effect change it by up to 2.00"),
        (([250, 252, 251], [248, 250, 249], [250, 252, 251]), "no better than token frequencies"),
    ],
)
def test_it_differs_where_a_condition_fails_and_says_which(rows: tuple, words: str) -> None:
    verdict, reason = judge(*rows)
    assert verdict == "differs"
    assert words in reason


def test_without_enough_seeds_or_the_control_nothing_can_be_said() -> None:
    assert judge([50, 52], [48, 50], [50, 52])[0] == "not testable"
    assert "2 seeds in common" in judge([50, 52], [48, 50], [50, 52])[1]
    assert "'frozen', was not trained" in judge([50, 52, 51], [48, 50, 49])[1]
    only_plain = made_dataset([50, 52, 51], [48, 50, 49]).sel(variant=["plain"])
    assert AS12.judge({"language": only_plain}).verdict == "not testable"


def test_a_missing_cell_is_left_out_of_the_pairs() -> None:
    paired = compare_with_plain(made_dataset([50, np.nan, 51], [48, 50, 49]), "both")
    assert paired is not None
    assert paired.seeds == (0, 2)


def test_the_result_is_the_reader_s_own_dataset_before_the_shipped_one(runs: dict[Cell, Run], tmp_path: Path) -> None:
    context = Context(next(iter(runs.values())), runs_directory=tmp_path)
    made = made_dataset([50, 52, 51], [48, 50, 49], [50, 52, 51])
    save_experiment_dataset(made, tmp_path / "experiment-language" / "language.nc")
    assert compute_language(context).equals(made)
    save_experiment_dataset(made.drop_vars("test_perplexity"), tmp_path / "experiment-language" / "language.nc")
    with pytest.raises(NotTestable, match="holds no perplexities"):
        compute_language(context)


def test_the_shipped_dataset_can_be_judged_told_and_drawn(tmp_path: Path) -> None:
    path = find_experiment_dataset("language", tmp_path)
    if path is None:
        pytest.skip("no language dataset is shipped")
    assert path.is_relative_to(SHIPPED_DATASETS)
    shipped = load_experiment_dataset(path)
    assert path.stat().st_size < 60_000
    assert shipped.test_perplexity.dims == ("variant", "seed")
    assert "the documentation of Python" in conclude_language(shipped)
    assert AS12.judge({"language": shipped}).verdict in VERDICTS
    assert len(AS12.draw({"language": shipped}).axes) == 3
    assert {str(name) for name in shipped.variant.values} <= {variant.name for variant in VARIANTS}


def test_the_experiment_is_listed() -> None:
    assert find_experiment("language") is EXPERIMENT
