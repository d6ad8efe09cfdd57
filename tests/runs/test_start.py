"""A run that starts from a GPT-2 has its weights, bit for bit, and its symbols take the embeddings of GPT-2's tokens."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bindscope.cli.main import run as cli
from bindscope.errors import BindscopeError
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, StartConfig, config_from_mapping, config_to_mapping, fit_model, override
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run, train_run
from bindscope.runs.start import draw_rows, fit_to_start, load_start
from bindscope.tasks.templates import TemplateTask
from bindscope.training.config import CheckpointPlan, TrainingConfig

GPT2 = ModelConfig(
    40, 9, n_layers=2, n_heads=2, d_model=16, d_head=8, d_mlp=64, positions="learned", activation="gelu_tanh", tied=True,
    init=InitConfig("gpt2", std=0.5),
)  # fmt: skip
EMBEDDINGS = ("embed.weight", "pos_embed")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> tuple[Path, Transformer]:
    directory, model = tmp_path_factory.mktemp("pretrained") / "gpt2", Transformer(GPT2)
    for parameter in model.parameters():  # biases and LayerNorms too
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3))
    export_hugging_face(model, directory)
    return directory, model


def make_config(directory: Path, task: TemplateTask | None = None, **changes) -> RunConfig:
    task = task or TemplateTask(name="aba-abb", alphabet=12, test_alphabet=6)
    shape = fit_model(replace(GPT2, tied=task.target_kind == "token"), task)
    training = TrainingConfig(
        batch_size=12, data="fixed", epochs=6, checkpoints=CheckpointPlan(every=100), evaluate_every=3, evaluation_size=8,
        save_every=2,
    )  # fmt: skip
    return replace(RunConfig("started", task, shape, training, start=StartConfig(str(directory))), **changes)


def test_a_run_begins_with_the_weights_in_the_directory(pretrained, tmp_path):
    directory, theirs = pretrained
    config = make_config(directory)
    run = train_run(config, tmp_path / "run", device="cpu", threads=1)
    first, state = run.checkpoint(0).state_dict(), theirs.state_dict()
    rows = draw_rows(config, GPT2.d_vocab)
    assert torch.equal(first["embed.weight"], state["embed.weight"][rows])
    assert torch.equal(first["pos_embed"], state["pos_embed"][:4])
    body = [name for name in state if name not in EMBEDDINGS]
    assert body
    assert all(torch.equal(first[name], state[name]) for name in body)
    assert first.keys() - state.keys() == {"unembed.weight"}
    assert not all(
        torch.equal(run.checkpoint("last").state_dict()[name], state[name]) for name in body
    )  # it was trained
    assert run.manifest.start["directory"] == str(directory)
    assert len(run.manifest.start["sha256"]) == 64


def test_symbols_with_tied_embeddings_are_read_out_by_the_rows_they_took(pretrained):
    directory, theirs = pretrained
    config = make_config(directory, TemplateTask(name="copy", alphabet=12, test_alphabet=6))
    model, _ = load_start(config)
    assert model.unembed is None
    assert torch.equal(model.W_E, theirs.W_E[draw_rows(config, GPT2.d_vocab)])


@torch.no_grad()
def test_it_computes_what_the_gpt2_computes_for_the_rows_it_took(pretrained):
    directory, theirs = pretrained
    config = make_config(directory, TemplateTask(name="copy", alphabet=12, test_alphabet=6))
    model, _ = load_start(config)
    rows = torch.from_numpy(draw_rows(config, GPT2.d_vocab))
    tokens = torch.from_numpy(config.task.training_set().tokens)
    torch.testing.assert_close(model(tokens), theirs(rows[tokens])[..., rows], atol=1e-5, rtol=1e-5)


def test_each_symbol_takes_a_token_of_its_own_by_the_runs_seed(pretrained):
    config = make_config(pretrained[0])
    draws = [draw_rows(replace(config, seed=seed), GPT2.d_vocab) for seed in range(3)]
    for rows in draws:
        assert len(rows) == len(config.task.vocabulary) == len(set(rows.tolist()))
        assert rows.max() < GPT2.d_vocab
    assert not any(np.array_equal(draws[0], other) for other in draws[1:])
    assert np.array_equal(draws[0], draw_rows(config, GPT2.d_vocab))


def test_the_shape_is_taken_from_the_directory(pretrained):
    wrong = make_config(pretrained[0])
    wrong = replace(wrong, model=replace(wrong.model, n_layers=3, d_model=32, causal=False, positions="none"))
    with pytest.raises(BindscopeError, match=r"needs model.n_layers = 2, got 3"):
        load_start(wrong)
    assert fit_to_start(wrong).model == make_config(pretrained[0]).model
    plain = replace(wrong, start=None)
    assert fit_to_start(plain) is plain


def test_settings_name_the_directory(pretrained):
    config = make_config(pretrained[0])
    assert config_from_mapping(json.loads(json.dumps(config_to_mapping(config)))) == config
    plain = replace(config, start=None)
    assert override(plain, {"start.directory": str(pretrained[0])}) == config


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start.directory": ""}, "start.directory: name the directory of a GPT-2"),
        ({"model.identity_qk": True}, "as a plain transformer"),
        ({"baseline.kind": "lstm"}, "as a plain transformer"),
    ],
)
def test_what_cannot_start_from_a_gpt2_is_refused(changes, said, pretrained):
    with pytest.raises(BindscopeError, match=said):
        override(make_config(pretrained[0]), changes)


def test_a_directory_with_too_few_tokens_or_positions_is_refused(pretrained):
    many = make_config(pretrained[0], TemplateTask(name="aba-abb", alphabet=30, test_alphabet=6))
    with pytest.raises(BindscopeError, match=r"embeddings for 40 tokens and this task needs 43; lower task.alphabet"):
        fit_to_start(many)
    long = TemplateTask(
        name="custom", alphabet=12, test_alphabet=6, templates=("αααααααααα", "αβαβαβαβαβ"), labels=(1.0, -1.0)
    )
    with pytest.raises(BindscopeError, match="has 9 positions and this task needs 11"):
        fit_to_start(make_config(pretrained[0], long))


def test_the_command_line_fits_the_model_to_the_directory(pretrained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sizes = ["task.alphabet=12", "task.test_alphabet=6", "training.batch_size=12", "training.epochs=2"]
    command = ["train", "templates-gpt2", "--threads", "1", "--name", "fitted", *(f"--set={size}" for size in sizes)]
    assert cli(["train", "templates-gpt2", "--set", "start.directory=nowhere"]) == 2
    assert capsys.readouterr().err == (
        "bindscope: nowhere: there is no such directory; copy a GPT-2 there, a directory with config.json and "
        "model.safetensors.\n"
    )
    assert cli([*command, "--set", f"start.directory={pretrained[0]}"]) == 0
    assert Run.open("runs/fitted").config.model.d_model == 16


def interrupt(config: RunConfig, path: Path, at: int) -> None:
    """Train until the evaluation ``at``, counted from 0, and stop there."""
    seen = []

    def fail(model):
        seen.append(model)
        if len(seen) > at:
            raise KeyboardInterrupt
        return {"watched": [0.0]}

    with pytest.raises(KeyboardInterrupt):
        train_run(config, path, device="cpu", threads=1, evaluate=fail)


def test_a_run_goes_on_without_the_directory(pretrained, tmp_path):
    directory = shutil.copytree(pretrained[0], tmp_path / "gpt2")
    config = make_config(directory)
    whole = train_run(config, tmp_path / "whole", device="cpu", threads=1)
    interrupt(config, tmp_path / "broken", at=1)
    shutil.rmtree(directory)
    resumed = resume_run(tmp_path / "broken")
    assert resumed.manifest.checkpoints[6].sha256 == whole.manifest.checkpoints[6].sha256


def test_a_run_that_kept_no_state_names_the_directory_it_needs(pretrained, tmp_path):
    directory = shutil.copytree(pretrained[0], tmp_path / "gpt2")
    interrupt(make_config(directory), tmp_path / "run", at=0)
    assert Run.open(tmp_path / "run").load_state() is None
    shutil.move(directory, tmp_path / "away")
    with pytest.raises(BindscopeError, match=r"gpt2: there is no such directory; copy a GPT-2 there"):
        resume_run(tmp_path / "run")
    export_hugging_face(Transformer(GPT2), directory)
    with pytest.raises(BindscopeError, match="are not those that this run began with"):
        resume_run(tmp_path / "run")
    shutil.rmtree(directory)
    shutil.move(tmp_path / "away", directory)
    assert resume_run(tmp_path / "run").status == "finished"
