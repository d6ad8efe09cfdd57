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
from bindscope.studies.framework.command import find_command
from bindscope.tasks.assign_add import AssignAddTask
from cli.answers import answer, refusal


def test_an_import_can_be_told_the_activation_that_files_do_not_tell(tmp_path: Path, capsys) -> None:
    task = AssignAddTask(modulus=11, n_variables=5)
    shape = ModelConfig(
        1, 1, n_layers=2, n_heads=1, d_model=8, d_head=8, d_mlp=8, positions="learned", norm="none", bias=False
    )
    model = Transformer(fit_model(replace(shape, activation="gelu"), task))
    torch.save(state_to_transformer_lens(model), tmp_path / "step_3.pth")
    options = ["--family", "assign-add", "--as", "theirs", "--out", str(tmp_path / "runs"), "--n", "10"]
    options += ["--set", "modulus=11", "--set", "task.n_variables=5"]
    answer(capsys, "import", str(tmp_path / "step_3.pth"), *options, "--set", "model.activation=gelu")
    made = Run.open(tmp_path / "runs" / "theirs")
    assert made.config.model.activation == "gelu"
    assert "--set model.activation=gelu" in find_command(made)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("model.n_heads=2", "only the task's settings and model.activation can be set"),
        ("training.steps=3", "only the task's settings and model.activation can be set"),
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
