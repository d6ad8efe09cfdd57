"""Subspaces, circuits and interventions survive a file, and do again what they did."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import bindscope
from bindscope.cli.main import run
from bindscope.errors import BindscopeError
from bindscope.interventions.circuit import Circuit, Move
from bindscope.questions.findings import SwappedSubspace, apply_finding, save_subspace
from bindscope.questions.opened import Opened
from bindscope.runs.findings import HEADER, Finding, Shape, read_finding, write_finding
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.schema import from_mapping

LAPTOP = "binding-laptop"
SAVED = {
    "patch": ["patch", LAPTOP, "--site", "L2.resid_pre@query", "--n", "8", "--depth", "1"],
    "circuit": ["circuit", LAPTOP, "--depth", "1", "--n", "6"],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One finding of each kind, saved by the commands; the subspace by its function, on a basis that changes answers."""
    folder = tmp_path_factory.mktemp("findings")
    for kind, arguments in SAVED.items():
        assert run([*arguments, "--save", str(folder / f"{kind}.safetensors")]) == 0
    opened = Opened.at(LAPTOP).run
    whole, step = torch.eye(opened.config.model.d_model), opened.find_step("last")
    swapped = SwappedSubspace("values", opened.config.model.n_layers, "colon", n=8, seed=1)
    save_subspace(folder / "subspace.safetensors", opened, step, swapped, whole, "by hand")
    return {kind: folder / f"{kind}.safetensors" for kind in (*SAVED, "subspace")}


@pytest.mark.parametrize("kind", [*SAVED, "subspace"])
def test_applied_to_where_it_comes_from_a_finding_has_its_saved_effect_exactly(
    kind: str, saved: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    finding, _ = read_finding(saved[kind])
    assert (finding.kind, finding.run, finding.sha256) == (
        kind, LAPTOP, Opened.at(LAPTOP).run.manifest.checkpoints[finding.step].sha256,
    )  # fmt: skip
    applied = bindscope.open_run(LAPTOP).apply(saved[kind], steps=["first", "last"])
    for name, value in finding.effect.items():
        assert float(applied[name].sel(step=finding.step)) == value, name
    changed = [name for name in applied.data_vars if float(applied[name][0]) != float(applied[name][1])]
    assert changed, "the untrained checkpoint does the same"
    assert applied.attrs["same_weights"] == str(finding.step)
    assert run(["apply", str(saved[kind]), LAPTOP, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {name: printed[name] for name in finding.effect} == {name: [v] for name, v in finding.effect.items()}
    assert run(["apply", str(saved[kind]), LAPTOP]) == 0
    assert f"the {kind} of {LAPTOP}" in capsys.readouterr().out


def test_swapping_the_whole_stream_that_leaves_the_model_gives_the_counterfactual_answer(
    saved: dict[str, Path],
) -> None:
    assert read_finding(saved["subspace"])[0].effect["success"] == pytest.approx(1, abs=0.13)


@pytest.mark.parametrize("kind", [*SAVED, "subspace"])
def test_a_finding_survives_its_file_bit_for_bit(kind: str, saved: dict[str, Path], tmp_path: Path) -> None:
    finding, tensors = read_finding(saved[kind])
    again = write_finding(tmp_path / "again.safetensors", finding, tensors)
    assert again.read_bytes() == saved[kind].read_bytes()
    other, others = read_finding(again)
    assert other == finding
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())


def test_a_circuit_is_read_back_as_it_was(saved: dict[str, Path]) -> None:
    content = read_finding(saved["circuit"])[0].content["circuit"]
    circuit = from_mapping(Circuit, content, "circuit")
    assert circuit.moves
    assert all(isinstance(move, Move) and move.n_pairs > 0 for move in circuit.moves)


def test_a_model_of_another_shape_is_refused(saved: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["apply", str(saved["circuit"]), "binding-plain"]) == 2
    assert "apply it to a run of the same shape" in capsys.readouterr().err
    assert run(["apply", str(saved["circuit"]), "assign-add"]) == 2
    assert "programs are for runs on" in capsys.readouterr().err


class _Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("executed"),))  # type: ignore[return-value]


def test_damaged_and_foreign_files_are_refused_and_nothing_is_executed(
    saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = saved["patch"].read_bytes()
    (tmp_path / "mine.py").write_text("open('executed', 'w')\ndef f(*_): ...\n")
    finding, _ = read_finding(saved["patch"])
    files = {
        "short": whole[: len(whole) // 2], "empty": b"",
        "pickle": pickle.dumps(_Harm()), "weights": next((SHIPPED_DIRECTORY / LAPTOP / "checkpoints").iterdir()).read_bytes(),
        "json": _with_header("{"), "list": _with_header("[]"), "schema": _with_header('{"schema": 2}'),
        "code": _changed(finding, content={**finding.content, "metric": "mine.py:f"}),
        "site": _changed(finding, content={**finding.content, "sites": ["L99.H0"]}),
        "field": _changed(finding, content={**finding.content, "unknown": 1}),
        "grid": _changed(finding, content={**finding.content, "sites": []}),
        "kind": _changed(finding, kind="subspace"),
        "layers": _changed(finding, shape={"n_layers": "2"}),
    }  # fmt: skip
    for name, content in files.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        assert run(["apply", str(path), LAPTOP]) == 2, name
        said = capsys.readouterr().err
        assert said.startswith("bindscope: "), (name, said)
        assert said.count("\n") == 1, (name, said)
        assert not (tmp_path / "executed").exists(), name
    assert run(["apply", str(tmp_path / "missing.safetensors"), LAPTOP]) == 2


def test_a_basis_with_holes_is_refused(tmp_path: Path) -> None:
    opened = Opened.at(LAPTOP)
    step, shape = opened.find_step("last"), Shape.of(opened.run.config.model)
    content = {"quality": "values", "layer": 1, "position": "colon", "n": 4, "seed": 0}
    finding = Finding("subspace", "mine", step, "0", "", shape, content, {})
    for basis, sentence in (
        (torch.full((2, shape.d_model), torch.nan), "not finite"),
        (torch.ones(2, shape.d_model), "not orthonormal"),
        (torch.eye(3), "one tensor, 'basis'"),
    ):
        path = write_finding(tmp_path / "basis.safetensors", finding, {"basis": basis})
        with pytest.raises(BindscopeError, match=sentence):
            apply_finding(path, opened)


def test_what_is_no_intervention_is_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "no.safetensors"
    for arguments in (["patch", LAPTOP], ["patch", LAPTOP, "--site", "L1.H0", "--steps", "all"],
                      ["subspace", LAPTOP, "--everywhere"]):  # fmt: skip
        assert run([*arguments, "--save", str(file)]) == 2
        assert capsys.readouterr().err.startswith(f"bindscope: --save {file}")
    assert not file.exists()


def _with_header(text: str) -> bytes:
    return safetensors.torch.save({"basis": torch.from_numpy(np.eye(2, dtype=np.float32))}, {HEADER: text})


def _changed(finding: Finding, **changes: object) -> bytes:
    from dataclasses import asdict

    return safetensors.torch.save({}, {HEADER: json.dumps({**asdict(finding), **changes})})
