"""A cluster of two machines of which one is lost midway: everything is done once, nothing is lost, and nothing differs.

The machines are two Ray nodes on this one; `make cluster` installs Ray and runs these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from bindscope.cli.main import run as run_command
from bindscope.errors import BindscopeError
from bindscope.questions.grids import Grids
from bindscope.questions.opened import Opened
from bindscope.runs.cluster import PerRun, train_on_cluster
from bindscope.runs.config import config_to_mapping, override
from bindscope.runs.directory import Run
from bindscope.runs.sweep import ENDED, train_sweep
from bindscope.runs.workers import ClusterWorkers
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.together import fill_together
from bindscope.studies.framework.verify import find_study
from ray_cluster import Nodes, process_that_locks, start_nodes
from studies.made_runs import make_run

CONFIG = override(
    find_preset("assign-add-small").config,
    {
        "training.steps": 1000, "training.batch_size": 8, "training.evaluate_every": 500,
        "training.evaluation_size": 20, "training.save_every": 20,
    },
)  # fmt: skip
STEPS = (0, 500, 1000, 1450, 1700, 2000)


@pytest.fixture
def nodes():
    with start_nodes() as started:
        yield started


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Run:
    return make_run(tmp_path_factory.mktemp("made") / "run", steps=STEPS)


def test_every_run_of_a_sweep_is_trained_once_and_as_here(nodes: Nodes, tmp_path):
    configs = [override(CONFIG, {"name": f"seed-{seed}", "seed": seed}) for seed in range(5)]
    there, here = tmp_path / "there", tmp_path / "here"
    ended, broken_off = [], []
    for run in train_sweep(configs, there, cluster=nodes.address):
        if not ended:
            nodes.lose_second(
                when=lambda: bool(_at_work(there, nodes)), then=lambda: broken_off.extend(_unfinished(there))
            )
        ended.append(run.name)
    assert broken_off  # something was under way when the machine was lost
    assert sorted(ended) == [config.name for config in configs]
    for run in train_sweep(configs, here):
        assert _record(Run.open(there / run.name)) == _record(run)


def test_measures_of_a_run_are_the_same(nodes: Nodes, made: Run, tmp_path, monkeypatch):
    """What verify, figure and development measure, checkpoint by checkpoint."""
    alone, shared = (Library(made, find_study("binding").results, tmp_path / name, n=6) for name in ("here", "there"))
    names = alone.order(("trajectory", "chain", "lookbacks"))
    fill_together(alone, names, jobs=1)
    taken = _lose_after_the_first_piece(nodes, monkeypatch)
    fill_together(shared, names, cluster=nodes.address)
    assert len(taken) > 2
    for name in names:
        xr.testing.assert_identical(alone.filled[name].dataset, shared.filled[name].dataset)


def test_a_series_of_grids_has_the_same_bytes(nodes: Nodes, made: Run, tmp_path, monkeypatch):
    opened, question = Opened.of(made), Grids(run="made", n=6)
    here = question.answer(opened, [tmp_path / "here"], jobs=1)
    taken = _lose_after_the_first_piece(nodes, monkeypatch)
    there = question.answer(opened, [tmp_path / "there"], cluster=nodes.address)
    assert len(taken) == len(STEPS)
    assert there.measured == STEPS
    assert _contents(there.series.folder) == _contents(here.series.folder)


def test_the_command_answers_on_a_cluster_as_it_does_here(nodes: Nodes, tmp_path, capsys):
    """By way of ray://, with a run that asks for the GPU which only the second node has."""
    words = ["experiment", "pair-fraction-small", "--seeds", "1", "--steps", "6", "--only", "fraction-0.06"]
    assert run_command([*words, "--out", str(tmp_path / "here")]) == 0
    told = capsys.readouterr().out
    there = [*words, "--out", str(tmp_path / "there"), "--cluster", nodes.client]
    assert run_command([*there, "--gpus-per-run", "2"]) == 2
    assert "none of its machines has 1 processors and 2 GPUs for a run" in capsys.readouterr().err
    assert run_command([*there, "--gpus-per-run", "1"]) == 0
    assert capsys.readouterr().out.replace("/there", "/here") == told


def test_a_run_that_cannot_be_trained_is_told_of_when_the_others_have_ended(nodes: Nodes, tmp_path):
    short = override(CONFIG, {"training.steps": 6})
    configs = [config_to_mapping(override(short, {"name": name})) for name in ("a", "b", "c")]
    (tmp_path / "b").mkdir()
    with pytest.raises(BindscopeError, match=r"1 of 3 runs did not end; give the command again .*/b: not a run"):
        list(train_on_cluster(configs, tmp_path, nodes.address, per_run=PerRun(retries=0)))
    assert sorted(path.parent.name for path in tmp_path.glob("*/manifest.json")) == ["a", "c"]


def _at_work(directory: Path, nodes: Nodes) -> list[Path]:
    """The runs that the second node trains and has not finished, of which something was saved."""
    workers, unfinished = set(nodes.workers_of_second()), _unfinished(directory)
    saved = [directory / name for name in unfinished if (directory / name / "optimizer" / "latest.json").exists()]
    return [path for path in saved if process_that_locks(path) in workers]


def _unfinished(directory: Path) -> list[str]:
    runs = [Run.open(path.parent) for path in directory.glob("*/manifest.json")]
    return [run.name for run in runs if run.status not in ENDED]


def _lose_after_the_first_piece(nodes: Nodes, monkeypatch) -> list[object]:
    """The pieces that were taken, growing; after the first one the second node is lost."""
    take, taken = ClusterWorkers.take, []

    def take_and_lose(workers, ended):
        if not taken:
            nodes.lose_second()
        taken.append(ended)
        return take(workers, ended)

    monkeypatch.setattr(ClusterWorkers, "take", take_and_lose)
    return taken


def _record(run: Run) -> object:
    hashes = {step: kept.sha256 for step, kept in run.manifest.checkpoints.items()}
    evaluations = [{key: value for key, value in each.items() if key != "elapsed"} for each in run.metrics]
    return run.status, hashes, evaluations


def _contents(folder: Path) -> dict[str, bytes]:
    """Its files, without the lock and what a lost process was writing: nobody reads that."""
    return {path.name: path.read_bytes() for path in folder.glob("*") if not path.name.startswith(".")}
