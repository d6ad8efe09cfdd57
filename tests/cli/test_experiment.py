"""``bindscope experiment`` as a person uses it."""

import json
import sys

import pytest

from bindscope.cli.main import run
from bindscope.studies.framework.experiments import all_experiments, load_experiment_dataset


def test_all_experiments_are_listed_with_their_question(capsys):
    assert run(["experiment"]) == 0
    printed = capsys.readouterr().out
    for experiment in all_experiments().values():
        assert experiment.name in printed
        assert experiment.question in printed


def test_an_experiment_trains_its_runs_and_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["experiment", "loss", "--only", "answer", "--seeds", "1", "--steps", "2", "--figure", "loss.png"]
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "answer (1 seed): plateau left never in 2 steps" in printed
    assert (tmp_path / "loss.png").is_file()
    dataset = load_experiment_dataset(tmp_path / "runs" / "experiment-loss" / "loss.nc")
    assert list(dataset.variant.values) == ["answer"]
    assert run(["experiment", "loss", "--show"]) == 0  # what was made here comes before what is shipped
    assert "never in 2 steps" in capsys.readouterr().out


def write_shape(directory, d_vocab):
    directory.mkdir()
    shape = {"model_type": "gpt2", "vocab_size": d_vocab, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
    (directory / "config.json").write_text(json.dumps(shape))
    return str(directory)


def test_variants_that_a_directory_has_too_few_tokens_for_are_named_with_the_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    directory = write_shape(tmp_path / "small", 600)
    assert run(["experiment", "gpt2", "--pretrained", directory, "--show"]) == 0
    told = capsys.readouterr().err
    assert "left out: pretrained-128, pretrained-256; " in told
    assert "has embeddings for 600 tokens, and pretrained-128 needs 641 of them." in told
    assert run(["experiment", "gpt2", "--pretrained", write_shape(tmp_path / "whole", 50257), "--show"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["experiment", "gpt2", "--pretrained", write_shape(tmp_path / "tiny", 300), "--show"]) == 2
    assert "nothing can start from these weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["identiy"], "Did you mean 'identity'?"),
        (["loss", "--only", "al"], "Did you mean 'all'?"),
        (["loss", "--seeds", "0"], "--seeds. Must be >= 1"),
        (["loss", "--show", "--out", "nowhere"], "there is no dataset of it yet"),
        (["loss", "--figure", "loss.xyz", "--show"], "unknown format 'xyz'"),
        (["loss", "--pretrained", "gpt2"], "the experiment gpt2 starts from pretrained weights, 'loss' does not"),
        (["gpt2", "--pretrained", "nowhere"], "nowhere: there is no such directory; copy a GPT-2 there"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["experiment", *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_without_ray_is_refused_before_anything_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(["experiment", "pair-fraction-small", "--cluster", "auto"]) == 2
    assert "Ray is not installed here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
