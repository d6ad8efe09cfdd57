"""``bindscope kernel`` and ``bindscope templates`` as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr

from bindscope.cli.main import run
from bindscope.theory.kernel import KernelSettings
from bindscope.theory.kernel_learnable import learnable
from cli.answers import answer, refusal

QUICK = ("--points", "64")


def test_the_kernel_prints_its_matrix_its_eigenvalues_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "kernel", "AA", "AB", "--labels", "1,-1", *QUICK)
    report = learnable(["AA", "AB"], [1, -1], KernelSettings(points=64))
    assert "β = 3, γ = 1, φ = cos(1t + 0.5), with CLS" in text
    assert f"{report.matrix.value[0, 0]:.3f}" in text
    assert f"{report.smallest.value:.4g}" in text
    assert "learnable: N is not singular" in text
    assert "halves its error at about 7" in text


def test_numbers_come_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--labels", "-1,1", "--gamma", "0", "--no-cls", "--json", *QUICK)
    found = json.loads(answer(capsys, "kernel", "AA", "AB", *arguments))
    assert found["verdict"] == "not learnable"
    assert found["labels"] == [-1, 1]
    assert found["half_loss"] is None
    assert found["eigenvalues_low"][0] <= found["eigenvalues"][0] <= found["eigenvalues_high"][0] < 1e-12
    assert len(found["null_directions"]) == 1


def test_a_task_is_named_and_many_templates_fit_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "kernel", "counting-5", "--points", "16", "--activation", "relu")
    assert "… and 8 more templates" in text
    assert "of 16 eigenvalues, the smallest 7 and the largest" in text
    assert "AAAAA" in text


def test_ridge_regression_is_tabled_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bindscope.cli.kernel.RIDGE_SIZES", (16, 128))
    figure = tmp_path / "ridge.svg"
    text = answer(capsys, "kernel", "same-different", "--ridge", "--points", "16", "--out", str(figure))
    assert "error on fresh symbols" in text
    assert "\n      128  0." in text
    assert "never seen" in figure.read_text(encoding="utf-8")
    assert str(figure) in text


def test_the_kernel_is_written_as_figure_or_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("kernel.svg", "kernel.nc"):
        answer(capsys, "kernel", "AB", "AA", "Ax", "--out", str(tmp_path / name), *QUICK)
    assert "eigenvalues of N" in (tmp_path / "kernel.svg").read_text(encoding="utf-8")
    with xr.open_dataset(tmp_path / "kernel.nc") as dataset:
        assert list(dataset.template.values) == ["AB", "AA", "Ax"]
        assert dataset.attrs["verdict"] == "not covered"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give templates"),
        (["aba-abc"], "Did you mean 'aba-abb'?"),
        (["AA", "AB", "--labels", "1"], "as many labels"),
        (["AA", "AB", "--labels", "A,B"], "must be numbers"),
        (["copy"], "must be numbers"),
        (["AA", "AB", "--ridge"], "needs labels"),
        (["AA", "BB"], "equivalent"),
        (["AA", "AB", "--beta", "-1"], "beta"),
        (["AA", "AB", "--activation", "tan"], "Did you mean 'tanh'?"),
        (["AA", "AB", "--out", "kernel.txt"], "unknown ending"),
        (["A'b"], "closing '"),
    ],
)
def test_what_has_no_kernel_is_refused(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sentence in refusal(capsys, "kernel", *arguments)


def test_templates_that_form_a_task_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert "fine: equally long" in answer(capsys, "templates", "check", "ABx", "AAx", "--labels", "1,-1")
    found = json.loads(answer(capsys, "templates", "check", "AA", "AB", "--json"))
    assert found == {"templates": ["AA", "AB"], "fine": True, "problems": []}


def test_templates_that_overlap_end_with_code_one_and_a_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["templates", "check", "AB", "Ax"]) == 1
    assert "both match s0 x" in capsys.readouterr().out
    assert run(["templates", "check", "AB", "ABC", "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["fine"]


def test_samples_show_their_substitution(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "templates", "sample", "ABA", "--n", "4").splitlines()[2:]
    assert len(rows) == 4
    line = json.loads(answer(capsys, "templates", "sample", "ABA", "--n", "1", "--json"))
    assert line["sequence"] == [line["substitution"][name] for name in "ABA"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check"], "at least one template"),
        (["sample", "ABA", "--n", "0"], "1 to 10,000"),
        (["check", "A'b"], "closing '"),
        (["chek", "AB"], "check"),
    ],
)
def test_impossible_questions_about_templates_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, "templates", *arguments)


def test_the_choices_of_an_activation_are_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "kernel", "AA", "AB", "--activation", "swish")
    assert said == "activation: 'swish' is unknown; use one of cos, relu, gelu, tanh, identity."
