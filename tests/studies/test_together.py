"""Several processes measure what one does, to the last bit; what they cannot is made here, and a lost one is named."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.runs import workers
from bindscope.runs.directory import Run
from bindscope.runs.placement import CPU
from bindscope.studies.framework import together
from bindscope.studies.framework.results import Context, Library, Result
from bindscope.studies.framework.together import Piece, fill_together, measure_piece
from bindscope.studies.framework.verify import find_study
from ray_cluster import start_cluster
from studies.made_runs import make_run

NAMES = ("trajectory", "chain", "lookbacks", "mixture", "diagnostics")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("made") / "run", steps=(0, 500, 1450, 2000))


def open_library(run: Run, folder: Path, *own: Result) -> Library:
    return Library(run, [*find_study("binding").results, *own], folder, n=6)


def test_two_processes_measure_what_one_does(run: Run, tmp_path: Path) -> None:
    alone, shared = open_library(run, tmp_path / "alone"), open_library(run, tmp_path / "shared")
    told: list[tuple[str, int, int]] = []

    def on_result(result: Result, index: int, total: int) -> None:
        told.append((result.name, index, total))

    own, calls = _own_result()
    shared.results[own.name] = own
    names = [*alone.order(NAMES)]
    fill_together(alone, names, jobs=1)
    fill_together(shared, [*names, own.name], 2, on_result)
    for name in names:
        assert alone.filled[name].dataset is not None, alone.filled[name].reason
        xr.testing.assert_identical(alone.filled[name].dataset, shared.filled[name].dataset)
    assert calls == [os.getpid()]  # a result of one's own is not handed out
    assert {name for name, _, _ in told} == {*names, own.name}
    assert [total for *_, total in told] == [len(names) + 1] * len(told)
    assert not multiprocessing.active_children()


def test_a_cluster_measures_what_one_process_does(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, shared = open_library(run, tmp_path / "alone"), open_library(run, tmp_path / "shared")
    names = alone.order(("trajectory", "chain", "lookbacks"))
    with start_cluster() as address:
        fill_together(alone, names, jobs=1)
        monkeypatch.setattr(Library, "fill", _refuse_to_measure(Library.fill))
        fill_together(shared, names, cluster=address)
    for name in names:
        xr.testing.assert_identical(alone.filled[name].dataset, shared.filled[name].dataset)


def test_a_cluster_that_cannot_be_reached_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BindscopeError, match=r"--cluster: Ray is not installed here.*bindscope\[cluster\]"):
        fill_together(open_library(run, tmp_path), ["chain"], cluster="auto")
    monkeypatch.undo()
    pytest.importorskip("ray")
    with pytest.raises(BindscopeError, match=r"--cluster 127.0.0.1:1: no Ray cluster answers there"):
        fill_together(open_library(run, tmp_path), ["chain"], cluster="127.0.0.1:1")


def test_of_a_run_that_grew_only_new_checkpoints_are_handed_out(run: Run, tmp_path: Path) -> None:
    short = open_library(run.only((0, 500)), tmp_path)
    short.fill("lookbacks")
    grown = open_library(run, tmp_path)
    before = grown.find_before("lookbacks")
    assert together._new_steps(grown, "lookbacks", before) == [1450, 2000]
    fill_together(grown, ["lookbacks"], 2)
    xr.testing.assert_equal(
        grown.filled["lookbacks"].dataset, open_library(run, tmp_path / "x").fill("lookbacks").dataset
    )


def test_saved_results_need_no_process(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_together(open_library(run, tmp_path), ["trajectory", "chain"], 1)
    monkeypatch.setattr(workers, "ProcessPoolExecutor", None)
    again = open_library(run, tmp_path)
    fill_together(again, ["trajectory", "chain"], 2)
    assert again.filled["chain"].origin == "kept"


def test_a_result_that_cannot_be_made_says_why_from_another_process_too(run: Run, tmp_path: Path) -> None:
    empty = run.only(())
    piece = Piece("lookbacks", str(run.path), CPU, Context(None, 6), steps=())
    measured = measure_piece(piece)
    assert measured.dataset is None
    assert measured.may_come
    assert measured.problem == open_library(empty, tmp_path).fill("lookbacks").reason
    with pytest.raises(BindscopeError, match=measured.problem):
        measured.unwrap()


def test_a_process_that_is_lost_is_told_in_a_sentence(run: Run, tmp_path: Path) -> None:
    killer = threading.Thread(target=_kill_a_child)
    killer.start()
    with pytest.raises(BindscopeError, match=r"ended from outside.*--jobs 1"):
        fill_together(open_library(run, tmp_path), ["chain", "lookbacks"], 2)
    killer.join()
    assert not multiprocessing.active_children()


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=40), st.integers(1, 9))
def test_every_step_is_in_one_group_and_groups_are_nearly_equal(steps: list[int], n_groups: int) -> None:
    groups = together._split(steps, n_groups)
    assert sorted(step for group in groups for step in group) == sorted(steps)
    sizes = [len(group) for group in groups]
    assert len(groups) == min(n_groups, len(steps))
    assert not sizes or max(sizes) - min(sizes) <= 1


def _refuse_to_measure(fill: Any) -> Any:
    """``Library.fill`` for results that take no time alone: others must be measured by whoever they are given to."""

    def fill_quick(library: Library, name: str, *others: Any) -> Any:
        assert name in library.filled or name == "trajectory"
        return fill(library, name, *others)

    return fill_quick


def _own_result() -> tuple[Result, list[int]]:
    calls: list[int] = []

    def compute(context: Context) -> xr.Dataset:
        calls.append(os.getpid())
        return xr.Dataset({"drawn": ("item", context.rng.random(3))})

    return Result("own", "own", compute, n=3, steps=lambda run: run.steps), calls


def _kill_a_child() -> None:
    while not (children := multiprocessing.active_children()):
        time.sleep(0.01)
    os.kill(children[0].pid or 0, signal.SIGKILL)


def test_what_takes_longest_with_all_that_waits_for_it_is_handed_out_first(run: Run, tmp_path: Path) -> None:
    library, handed_out = open_library(run, tmp_path), []

    class Listed(workers.LocalWorkers):
        def submit(self, work: Any, piece: Any) -> Future[Any]:
            handed_out.append(piece.name)
            return Future()

    names = library.order(("lens", "heads", "emergence", "probes"))
    together._Filling(library, names, Listed(2), None).hand_out()
    work = {name: library.estimate_work(name) for name in names}
    work["chain"] += work.pop("emergence")  # which waits for the chain
    assert work["chain"] > work["heads"] > library.estimate_work("chain")
    assert handed_out == sorted(work, key=lambda name: work[name], reverse=True)
    assert names[0] == "lens"
