"""What ``bindscope import`` may be told beyond what the files say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bindscope.cli.main import run
from bindscope.model.config import ModelConfig
from bindscope.model.convert import export_hugging_face, state_to_transformer_lens
from bindscope.model.convert.compare import differ_from_transformers
from bindscope.model.transformer import Transformer
from bindscope.runs.config import fit_model
from bindscope.runs.directory import Run
from bindscope.runs.weights import pack_weights
from bindscope.studies.framework.command import find_command
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask
from cli.answers import answer, refusal

SHAPE = ModelConfig(
    1, 1, n_layers=2, n_heads=1, d_model=8, d_head=8, d_mlp=8, positions="learned", norm="none", bias=False
)


def test_an_import_can_be_told_the_activation_that_files_do_not_tell(tmp_path: Path, capsys) -> None:
    task = AssignAddTask(modulus=11, n_variables=5)
    model = Transformer(fit_model(replace(SHAPE, activation="gelu"), task))
    torch.save(state_to_transformer_lens(model), tmp_path / "step_3.pth")
    options = ["--family", "assign-add", "--as", "theirs", "--out", str(tmp_path / "runs"), "--n", "10"]
    options += ["--set", "modulus=11", "--set", "task.n_variables=5"]
    answer(capsys, "import", str(tmp_path / "step_3.pth"), *options, "--set", "model.activation=gelu")
    made = Run.open(tmp_path / "runs" / "theirs")
    assert made.config.model.activation == "gelu"
    assert "--set model.activation=gelu" in find_command(made)


def test_an_activation_that_nobody_tells_is_not_assumed(tmp_path: Path, capsys) -> None:
    """The binding presets have GELU; a ReLU model on the same task must not become one in silence."""
    task = BindingTask(lines=4, max_depth=2)
    model = Transformer(fit_model(replace(SHAPE, activation="relu", norm="layer"), task))
    torch.save(state_to_transformer_lens(model), tmp_path / "step_3.pth")
    arguments = ["import", str(tmp_path / "step_3.pth"), "--family", "binding", "--as", "theirs", "--n", "10"]
    arguments += ["--out", str(tmp_path / "runs"), "--set", "lines=4", "--set", "max_depth=2"]
    assert "does not tell its activation; give it, as in model.activation=relu" in refusal(capsys, *arguments)
    answer(capsys, *arguments, "--set", "model.activation=relu")
    made = Run.open(tmp_path / "runs" / "theirs")
    tokens = torch.randint(task.n_positions, (3, 9))
    torch.testing.assert_close(made.checkpoint(3)(tokens), model.eval()(tokens))


def test_a_setting_that_a_file_contradicts_is_refused(tmp_path: Path, capsys) -> None:
    task = BindingTask(lines=4, max_depth=2)
    model = Transformer(fit_model(replace(SHAPE, activation="relu", norm="layer"), task))
    (tmp_path / "step_3.safetensors").write_bytes(pack_weights(model.state_dict(), 3, model.config))
    arguments = ["import", str(tmp_path / "step_3.safetensors"), "--family", "binding", "--as", "x", "--set", "lines=4"]
    arguments += ["--set", "max_depth=2", "--set", "model.activation=gelu", "--out", str(tmp_path / "runs")]
    assert "says that model.activation is relu, not gelu" in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("model.n_heads=2", "only the task's settings, model.activation, model.norm and model.parallel can be set"),
        ("training.steps=3", "only the task's settings, model.activation, model.norm and model.parallel can be set"),
        ("model.activation=swish", "model.activation: 'swish' is not a choice"),
        ("modulos=7", "unknown setting 'task.modulos'. Did you mean 'task.modulus'?"),
    ],
)
def test_a_setting_that_an_import_cannot_take_is_refused(setting: str, sentence: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "step_3.pth").write_bytes(b"never read")
    arguments = ["import", str(tmp_path / "step_3.pth"), "--family", "assign-add", "--as", "x", "--set", setting]
    said = refusal(capsys, *arguments)
    assert sentence in said
    assert f"Did you mean '{setting.partition('=')[0]}'" not in said


@pytest.fixture
def series(tmp_path: Path) -> dict[int, Transformer]:
    """Two exported checkpoints of one model on short programs, in directories named by their steps."""
    task = BindingTask(lines=4, max_depth=2)
    shape = fit_model(ModelConfig(1, 1, n_layers=2, n_heads=2, d_model=16, d_head=8, d_mlp=24, parallel=True), task)
    models = {step: Transformer(shape, torch.Generator().manual_seed(step)).eval() for step in (20, 1000)}
    for step, model in models.items():
        export_hugging_face(model, tmp_path / f"step{step}", task.vocabulary)
    return models


def import_series(tmp_path: Path, *more: str) -> list[str]:
    directories = [str(tmp_path / f"step{step}") for step in (1000, 20)]
    options = [
        "--as",
        "theirs",
        "--n",
        "10",
        "--out",
        str(tmp_path / "runs"),
        "--set",
        "lines=4",
        "--set",
        "max_depth=2",
    ]
    return ["import", *directories, *options, *more]


def test_exported_directories_become_a_series_of_checkpoints(series, tmp_path: Path, capsys) -> None:
    answer(capsys, *import_series(tmp_path))
    made, tokens = Run.open(tmp_path / "runs" / "theirs"), torch.randint(40, (3, 19))
    assert list(made.steps) == [20, 1000]
    for step, model in series.items():
        assert torch.equal(made.checkpoint(step)(tokens), model(tokens))
    assert str(tmp_path / "step1000") in find_command(made)


def test_the_largest_difference_from_transformers_is_printed_and_grows_with_a_wrong_weight(
    series, tmp_path: Path, capsys
) -> None:
    pytest.importorskip("transformers")
    said = answer(capsys, *import_series(tmp_path)).splitlines()
    found = [float(line.split("largest difference of logits from transformers ")[1]) for line in said[:2]]
    assert all(number < 1e-5 for number in found)
    changed = series[1000]
    assert differ_from_transformers(changed, tmp_path / "step1000") < 1e-5
    changed.unembed.weight.data[3] *= 2
    assert differ_from_transformers(changed, tmp_path / "step1000") > 1e-4


def test_nothing_is_compared_where_transformers_is_not_installed(series, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("bindscope.model.convert.compare.find_spec", lambda name: None)
    assert "transformers" not in answer(capsys, *import_series(tmp_path))


def swap_tokens(vocabulary: dict) -> None:
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (swap_tokens, "where the task has"),
        (lambda vocabulary: vocabulary.update({"!": 40}), "has 41 tokens where the task has 40"),
        (lambda vocabulary: vocabulary.pop("z"), "token 'z' has the number None where the task has"),
    ],
)
def test_a_tokenizer_that_is_not_the_tasks_is_refused(series, tmp_path: Path, capsys, change, sentence: str) -> None:
    path = tmp_path / "step20" / "tokenizer.json"
    content = json.loads(path.read_text())
    change(content["model"]["vocab"])
    path.write_text(json.dumps(content))
    assert sentence in refusal(capsys, *import_series(tmp_path))
    assert not (tmp_path / "runs" / "theirs").exists()
    path.unlink()
    answer(capsys, *import_series(tmp_path))


def test_directories_of_different_shapes_are_not_one_run(series, tmp_path: Path, capsys) -> None:
    path = tmp_path / "step1000" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "use_parallel_residual": False}))
    assert run(import_series(tmp_path)) == 2
    assert "step1000: has another shape than the first checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "theirs").exists()


def test_a_context_shorter_than_the_tasks_programs_is_refused(series, tmp_path: Path, capsys) -> None:
    arguments = [*import_series(tmp_path)[:-4], "--set", "lines=9", "--set", "max_depth=2"]
    assert "model.n_positions: the binding task needs at least 39, got 19" in refusal(capsys, *arguments)
