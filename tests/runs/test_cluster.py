"""A sweep on a cluster: the same runs as in local processes, and clear sentences where it cannot be.

The cluster is a real one, two Ray nodes on this machine; these tests are skipped where Ray is not installed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from bindscope.errors import BindscopeError
from bindscope.runs import cluster as on_cluster
from bindscope.runs.cluster import PerRun
from bindscope.runs.config import config_to_mapping, override
from bindscope.runs.directory import Run
from bindscope.runs.execute import train_run
from bindscope.runs.sweep import train_sweep
from bindscope.studies.framework.presets import find_preset
from ray_cluster import process_that_locks, start_cluster

FLASH = {
    "training.steps": 6, "training.batch_size": 8, "training.evaluate_every": 3, "training.evaluation_size": 20,
    "training.save_every": 2,
}  # fmt: skip
CONFIG = override(find_preset("assign-add-small").config, FLASH)


def flash(name: str, **changes):
    return override(CONFIG, {"name": name, **{key.replace("__", "."): value for key, value in changes.items()}})


@pytest.fixture(scope="module")
def cluster():
    """The address of a cluster of two nodes with one processor each."""
    with start_cluster() as address:
        yield address


@pytest.mark.parametrize("gpus", [None, 0, 0.25, 1, 2])
def test_a_run_may_ask_for_a_fraction_of_a_gpu_or_for_whole_ones(gpus):
    assert PerRun(gpus=gpus).gpus_on("cuda") == (1 if gpus is None else gpus)


@pytest.mark.parametrize("gpus", [-0.5, 1.5])
def test_what_no_machine_could_give_is_refused(gpus):
    with pytest.raises(BindscopeError, match="--gpus-per-run: a fraction of one, or whole ones"):
        PerRun(gpus=gpus)


def test_without_ray_the_sentence_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BindscopeError, match=r"Ray is not installed here.*bindscope\[cluster\]"):
        list(train_sweep([flash("a")], tmp_path, cluster="auto"))


def test_an_address_where_nothing_answers_is_refused(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(BindscopeError, match=r"--cluster 127.0.0.1:1: no Ray cluster answers there"):
        list(train_sweep([flash("a")], tmp_path, cluster="127.0.0.1:1"))


def test_a_cluster_trains_the_same_runs_as_this_machine_and_keeps_what_has_ended(cluster, tmp_path):
    configs = [flash(f"seed-{seed}", seed=seed) for seed in range(3)]
    done = train_run(configs[0], tmp_path / "seed-0", device="cpu", threads=1)
    stamp = (done.path / "manifest.json").stat().st_mtime_ns
    runs = {run.name: run for run in train_sweep(configs, tmp_path, cluster=cluster)}
    assert set(runs) == {"seed-0", "seed-1", "seed-2"}
    assert (done.path / "manifest.json").stat().st_mtime_ns == stamp
    here = train_run(configs[2], tmp_path / "here" / "seed-2", device="cpu", threads=1)
    assert runs["seed-2"].manifest.checkpoints[6].sha256 == here.manifest.checkpoints[6].sha256
    assert not list(tmp_path.glob(".seen-by-all*"))


def test_a_run_whose_process_is_lost_goes_on_elsewhere_as_if_nothing_had_happened(cluster, tmp_path):
    config = flash("lost", training__steps=400, training__save_every=20, training__evaluate_every=200)
    killed: list[int] = []

    def kill_once() -> None:
        """End the process that trains, once it has saved something."""
        for _ in range(600):
            time.sleep(0.1)
            states = list((tmp_path / "lost" / "optimizer").glob("*"))
            trainer = process_that_locks(tmp_path / "lost") if states else None
            if trainer is not None:
                os.kill(trainer, signal.SIGKILL)
                killed.append(trainer)
                return

    killer = threading.Thread(target=kill_once)
    killer.start()
    (run,) = train_sweep([config], tmp_path, cluster=cluster)
    killer.join()
    assert killed
    assert run.status == "finished"
    undisturbed = train_run(config, tmp_path / "undisturbed" / "lost", device="cpu", threads=1)
    assert run.manifest.checkpoints[400].sha256 == undisturbed.manifest.checkpoints[400].sha256


def test_what_a_worker_refuses_is_said_in_its_own_words(cluster, tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(BindscopeError, match="a"):
        list(on_cluster.train_on_cluster([config_to_mapping(flash("a"))], tmp_path, cluster))


def test_a_directory_that_a_machine_does_not_see_is_refused_before_training(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(on_cluster, "_look_around", lambda token: (False, on_cluster.__version__))
    with pytest.raises(BindscopeError, match=r"does not see .*--out that all machines share"):
        list(train_sweep([flash("a")], tmp_path, cluster=cluster))
    assert list(tmp_path.iterdir()) == []


def test_another_version_on_a_machine_is_refused(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(on_cluster, "_look_around", lambda token: (True, "0.0.1"))
    with pytest.raises(BindscopeError, match=r"has Bindscope 0\.0\.1 and this machine"):
        list(train_sweep([flash("a")], tmp_path, cluster=cluster))


def test_runs_opened_after_a_cluster_has_trained_are_ordinary_runs(cluster, tmp_path):
    (run,) = train_sweep([flash("plain")], tmp_path, cluster=cluster)
    assert Run.open(run.path).steps[-1] == 6
