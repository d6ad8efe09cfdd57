"""What the doctor says is there is there, and what it says is missing is missing."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from bindscope.cli import doctor
from bindscope.cli.main import run
from cli.answers import answer


def findings(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in map(json.loads, answer(capsys, "doctor", "--json").splitlines())}


def test_it_names_the_torch_and_the_package_that_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys)
    assert found["torch"]["found"].startswith(metadata.version("torch"))
    assert found["bindscope"]["found"].startswith(metadata.version("bindscope"))
    assert found["[test]"]["state"] == "ok"  # this test runs


def test_the_table_says_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    lines = answer(capsys, "doctor").splitlines()
    for name, one in findings(capsys).items():
        assert any(line.split()[:2] == [one["state"], name.split()[0]] for line in lines)


def test_a_package_that_is_not_there_is_missing_and_the_command_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor.metadata, "requires", lambda name: ["no-such-package>=2", 'nor-this ; extra == "cluster"']
    )
    assert run(["doctor"]) == 2
    printed = capsys.readouterr().out
    assert "pip install 'no-such-package>=2'" in printed
    assert "not installed: sweeps and measures on a Ray cluster (nor-this)" in printed


def test_a_version_that_was_not_asked_for_is_noted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: ["numpy<1"])
    assert findings(capsys)["numpy"]["state"] == "note"


def test_a_page_that_was_not_built_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bindscope.web.app.static_directory", lambda: tmp_path)
    assert doctor._page().state == "missing"


def test_a_full_disk_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_FREE", 2**100)
    assert [one.state for one in doctor._places() if one.name == "runs"] == ["note"]
