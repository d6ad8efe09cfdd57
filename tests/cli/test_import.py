"""What ``bindscope import`` may be told beyond what the files say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bindscope.model.config import ModelConfig
from bindscope.model.convert import state_to_transformer_lens
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
