from __future__ import annotations

from pathlib import Path

import pytest

from bindscope.errors import BindscopeError
from bindscope.runs import locate
from bindscope.runs.locate import find_run, is_shipped, runs_in


def make_run(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text("{}")
    return directory


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locate, "SHIPPED_DIRECTORY", tmp_path / "package" / "shipped")
    return tmp_path


def test_a_path_wins_over_a_name_and_a_name_over_a_shipped_run(workplace: Path) -> None:
    shipped = make_run(workplace / "package" / "shipped" / "one")
    assert find_run("one").resolve() == shipped
    named = make_run(workplace / "runs" / "one")
    assert find_run("one").resolve() == named
    here = make_run(workplace / "one")
    assert find_run("one").resolve() == here


def test_only_runs_inside_the_package_count_as_shipped(workplace: Path) -> None:
    assert is_shipped(make_run(workplace / "package" / "shipped" / "one"))
    assert not is_shipped(make_run(workplace / "runs" / "one"))


def test_a_directory_without_a_manifest_is_not_a_run(workplace: Path) -> None:
    (workplace / "empty").mkdir()
    with pytest.raises(BindscopeError, match=r"empty is not a run: it has no manifest\.json"):
        find_run("empty")


def test_an_unknown_name_suggests_the_nearest_run(workplace: Path) -> None:
    make_run(workplace / "runs" / "binding-tiny")
    with pytest.raises(BindscopeError, match="Did you mean 'binding-tiny'"):
        find_run("binding-tny")


def test_without_any_run_the_way_to_make_one_is_named(workplace: Path) -> None:
    with pytest.raises(BindscopeError, match="bindscope train"):
        find_run("anything")


def test_other_directories_beside_runs_are_passed_over(workplace: Path) -> None:
    run = make_run(workplace / "runs" / "one")
    (workplace / "runs" / "notes").mkdir()
    (workplace / "runs" / "file").write_text("")
    assert [path.resolve() for path in runs_in(workplace / "runs")] == [run]
