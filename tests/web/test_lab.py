"""The runs that are shown: named, found, growing, appearing, gone."""

from __future__ import annotations

import fcntl
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bindscope.runs.directory import MANIFEST, Run
from bindscope.runs.lock import LOCK_FILE, hold_lock, is_locked
from bindscope.web import lab as lab_module
from bindscope.web.lab import Lab, LabRun, Missing
from bindscope.web.pages.runs import list_runs


def copy_run(source: Path, target: Path, **changes: object) -> Path:
    """A run of one's own, with some entries of its manifest changed."""
    shutil.copytree(source, target)
    manifest = replace(Run.open(target).manifest, **changes)  # type: ignore[arg-type]
    (target / MANIFEST).write_bytes(manifest.to_json())
    return target


def write_evaluation(run: Path, step: int) -> None:
    """One more evaluation, as the last one was."""
    grown = Run.open(run)
    grown.keep_evaluation({**grown.metrics[-1], "step": step})


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_module, "LOOK_EVERY", 0.0)


def test_runs_of_one_name_are_told_apart_by_a_number(small_run: Path, tmp_path: Path) -> None:
    positions = [copy_run(small_run, tmp_path / name) for name in ("a", "b", "c")]
    lab = Lab.open(positions)
    assert list(lab.runs) == ["small", "small-2", "small-3"]
    assert [run.path for run in lab.runs.values()] == positions
    assert [lab.find(name).name for name in lab.runs] == list(lab.runs)


def test_one_run_is_shown_once_however_it_is_named(small_run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(small_run)
    assert list(Lab.open([small_run, tmp_path / "link", small_run / "." / ".." / "small"]).runs) == ["small"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc", "etc"),
        ("a b/c", "a-b-c"),
        ("", "run"),
        ("…", "run"),
        ("x" * 300, "x" * 80),
        ("v1.2+b_c", "v1.2+b_c"),
    ],
)
def test_a_name_that_no_address_could_hold_is_made_plain(
    name: str, shown: str, small_run: Path, tmp_path: Path
) -> None:
    assert list(Lab.open([copy_run(small_run, tmp_path / "odd", name=name)]).runs) == [shown]


def test_an_unknown_name_is_refused_with_the_nearest(lab: Lab) -> None:
    with pytest.raises(Missing, match="Did you mean 'small'"):
        lab.find("smal")


def test_a_run_that_appears_in_a_watched_directory_is_shown(small_run: Path, tmp_path: Path) -> None:
    lab = Lab.open([small_run], watched=[tmp_path])
    before = lab.version
    assert [run.name for run in list_runs(lab).runs] == ["small"]
    copy_run(small_run, tmp_path / "new", name="new")
    assert lab.version != before
    assert [run.name for run in list_runs(lab).runs] == ["small", "new"]
    assert lab.find("new").path == tmp_path / "new"


def test_a_directory_need_not_be_there_yet_to_be_watched(small_run: Path, tmp_path: Path) -> None:
    lab = Lab.open([], watched=[tmp_path / "later"])
    assert lab.version
    copy_run(small_run, tmp_path / "later" / "run")
    assert lab.find("small")


def test_unfinished_and_damaged_directories_are_not_shown(small_run: Path, tmp_path: Path) -> None:
    lab = Lab.open([], watched=[tmp_path])
    copy_run(small_run, tmp_path / ".tmp-small")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / MANIFEST).write_text("{")
    (tmp_path / "other").mkdir()
    assert list_runs(lab).runs == []
    assert lab.version
    assert lab.runs == {}


def test_a_run_that_cannot_be_opened_is_named_with_its_reason_until_it_can(small_run: Path, tmp_path: Path) -> None:
    lab = Lab.open([small_run], watched=[tmp_path])
    damaged = copy_run(small_run, tmp_path / "damaged", name="damaged")
    whole = (damaged / MANIFEST).read_bytes()
    (damaged / MANIFEST).write_text("{")
    before = lab.version
    assert list_runs(lab).problems == ["damaged/manifest.json: the manifest is damaged: it is not valid JSON."]
    (damaged / MANIFEST).write_bytes(whole)
    assert lab.version != before
    assert list_runs(lab).problems == []
    assert [run.name for run in list_runs(lab).runs] == ["small", "damaged"]


def test_a_run_that_is_gone_is_shown_no_more(small_run: Path, tmp_path: Path) -> None:
    gone = copy_run(small_run, tmp_path / "gone", name="gone")
    lab = Lab.open([small_run, gone])
    before = lab.version
    shutil.rmtree(gone)
    assert lab.version != before
    assert [run.name for run in list_runs(lab).runs] == ["small"]


def test_a_run_that_was_damaged_meanwhile_is_named_and_the_others_shown(small_run: Path, tmp_path: Path) -> None:
    damaged = copy_run(small_run, tmp_path / "damaged", name="damaged")
    lab = Lab.open([small_run, damaged])
    (damaged / MANIFEST).write_text("{")
    listed = list_runs(lab)
    assert [run.name for run in listed.runs] == ["small"]
    assert len(listed.problems) == 1
    assert listed.problems[0].startswith("damaged")
    assert str(tmp_path) not in listed.problems[0]


def test_a_growing_run_is_read_again(small_run: Path, tmp_path: Path) -> None:
    directory = copy_run(small_run, tmp_path / "growing", status="training")
    run = LabRun(Run.open(directory))
    lab = Lab([run])
    first = list_runs(lab).runs[0]
    assert (first.last_step, first.status) == (12, "interrupted")
    write_evaluation(directory, 16)
    second = list_runs(lab).runs[0]
    assert second.last_step == 16
    assert second.version != first.version
    with hold_lock(directory):
        third = list_runs(lab).runs[0]
        assert third.status == "training"
        assert third.version != second.version
    assert list_runs(lab).runs[0].status == "interrupted"


def test_a_run_is_summarised_only_when_it_has_changed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    list_runs(lab)
    monkeypatch.setattr("bindscope.web.pages.runs.trajectory_dataset", None)
    assert list_runs(lab).runs[0].name == "small"


def test_asking_whether_a_run_is_trained_never_keeps_it_from_being_trained(small_run: Path, tmp_path: Path) -> None:
    directory = copy_run(small_run, tmp_path / "run")
    with (directory / LOCK_FILE).open("w") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)  # as one who asks does, for an instant
        assert not is_locked(directory)  # nor does another who asks
        threading.Timer(0.03, lambda: fcntl.flock(reader, fcntl.LOCK_UN)).start()
        with hold_lock(directory):
            assert is_locked(directory)


def test_models_are_kept_within_their_memory(lab: Lab) -> None:
    lab.models.limit = 1
    run = lab.find("small")
    first = run.model(0)
    assert run.model(0) is first
    for step in run.steps:
        run.model(step)
    assert len(lab.models) == 2
    assert run.model(0) is not first
