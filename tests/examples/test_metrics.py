"""Metrics in one file outside the package: in every grid, on the command line and in Python, with the same numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import xarray as xr

import bindscope
from bindscope.cli.main import run
from bindscope.interventions.own_metric import load_metric
from bindscope.questions.patch import Patch
from examples.conftest import ROOT
from measures.test_patching import HOPS, hops_of

METRICS = f"{ROOT}/examples/metrics.py"
ON = ["patch", "binding-laptop", "--n", "6", "--seed", "3"]


def refusal(capsys: pytest.CaptureFixture[str], location: str, *more: str) -> str:
    assert run([*ON, "--metric", location, *more]) == 2
    (sentence,) = capsys.readouterr().err.strip().splitlines()
    return sentence


def test_the_commands_of_the_page_about_metrics_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    commands = re.findall(r"^bindscope (.+)$", text, re.MULTILINE)
    assert len(commands) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands:
        assert run([*command.split(), "--n", "4"]) == 0
        name = re.search(r"metrics.py:(\w+)", command)
        assert name is not None
        assert name[1] in capsys.readouterr().out
    assert (tmp_path / "heads.svg").is_file()


def test_a_command_and_a_notebook_measure_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    location = f"{METRICS}:source_probability"
    out = tmp_path / "numbers.nc"
    assert run([*ON, "--grid", "heads", "--metric", location, "--out", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["metric"], printed["metric_from"]) == ("source_probability", location)
    function = load_metric(location).function
    opened = bindscope.open_run("binding-laptop")
    for given in (function, location):
        grid = opened.patch(grid="heads", metric=given, n=6, seed=3)
        mean = grid.source_probability.mean("pair").values.ravel()
        assert [cell["mean"] for cell in printed["cells"]] == pytest.approx(mean.tolist(), abs=1e-6)
        assert all(cell["low"] <= cell["mean"] <= cell["high"] for cell in printed["cells"])
        assert grid.plot().axes[-1].get_ylabel() == "source_probability"
    with xr.open_dataset(out, engine="h5netcdf") as saved:
        assert saved.source_probability.dims == ("step", "layer", "head", "pair")
        assert saved.attrs["metric"] == "source_probability"


def test_a_question_with_it_is_written_down_and_asked_again() -> None:
    location = f"{METRICS}:margin"
    question = Patch(run="binding-laptop", grid="heads", metric=load_metric(location).function)
    assert question.metric.location == location
    assert question.command() == f"bindscope patch binding-laptop --grid heads --metric {location}"
    assert f'run.patch(grid="heads", metric="{location}")' in question.python()
    assert Patch(run="binding-laptop", grid="heads", metric=location) == question


def test_on_the_constructed_transformer_it_finds_the_circuit() -> None:
    assert hops_of(load_metric(f"{METRICS}:margin")) == HOPS
    assert hops_of(load_metric(f"{METRICS}:source_probability")) == HOPS


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("nowhere.py:f", "--metric nowhere.py:f: there is no file nowhere.py."),
        (METRICS, f"--metric: say which function in {METRICS} is the metric, as in {METRICS}:f."),
        (f"{METRICS}:margn", "'margn' is not a function in"),
        ("no_such_module:f", "the module no_such_module cannot be loaded: ModuleNotFoundError"),
        ("succes", "--metric: there is no metric 'succes'. Did you mean 'success'?"),
    ],
)
def test_a_metric_that_is_not_there_is_refused_with_a_hint(
    location: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, location)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return patched[:, :2]", "tensor of one number for each of 6 pairs, and it returned one of shape [6, 2]."),
        ("return patched.mean()", "it returned one of shape []."),
        ("return 'high'", "it returned a str."),
        ("pass", "it returned nothing."),
        ("return (patched[:, 0] * 0).log() * 0", "it returned nan for 6 of them; give every pair a finite number."),
        ("return patched[:, 0].log()[99]", "mine.py:f failed, line 3: IndexError"),
        ("return patched[:, 0] + 1j", "it returned complex numbers."),
        ("return patched[:, 0] - patched[:, 0].mean()", "a pair's number changes with the pairs beside it"),
    ],
)
def test_what_a_metric_may_not_return_is_said_with_its_file(
    body: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(f"# mine\ndef f(patched, base, source, answers):\n    {body}\n")
    sentence = refusal(capsys, f"{tmp_path}/mine.py:f", "--site", "L2.H1")
    assert f"{tmp_path}/mine.py:f" in sentence
    assert said in sentence


def test_it_is_not_estimated_by_a_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    assert "a gradient estimates logit_difference and new_logit, not margin." in refusal(
        capsys, f"{METRICS}:margin", "--approximate"
    )


def test_a_name_that_means_something_already_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("def success(*given): ...\ndef pair(*given): ...\n")
    assert "a metric 'success' comes with Bindscope already" in refusal(capsys, f"{tmp_path}/mine.py:success")
    assert "'pair' names something else in results" in refusal(capsys, f"{tmp_path}/mine.py:pair")
