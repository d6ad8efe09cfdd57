"""``bindscope language``, and what the other commands say of runs on text."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from bindscope.cli.main import run
from studies.test_symbols_language import SETTINGS
from tasks.made_text import write_text

OPTIONS = [word for setting in SETTINGS if not setting.startswith("training.steps") for word in ("--set", setting)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a text and a trained experiment on it."""
    directory = tmp_path_factory.mktemp("language")
    text = write_text(directory / "made.txt")
    arguments = ["language", str(text), "--seeds", "1", "--steps", "4", "--threads", "1", "--device", "cpu"]
    arguments += ["--out", str(directory / "runs"), "--figure", str(directory / "language.png")]
    with (directory / "printed.txt").open("w", encoding="utf-8") as printed, redirect_stdout(printed):
        assert run([*arguments, *OPTIONS]) == 0
    return directory


def test_it_trains_both_and_says_how_they_differ(directory: Path) -> None:
    printed = (directory / "printed.txt").read_text(encoding="utf-8")
    assert "2 of 2 · both-seed-0" in printed
    assert "Against the plain model of the same seed" in printed
    assert (directory / "language.png").stat().st_size > 10_000
    assert {path.name for path in (directory / "runs").iterdir()} == {"plain-seed-0", "both-seed-0", "language.nc"}


def test_other_commands_know_runs_on_text(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained = str(directory / "runs" / "plain-seed-0")
    assert run(["evaluate", trained]) == 0
    assert "perplexity" in capsys.readouterr().out
    assert run(["trajectory", trained, "--out", str(directory / "life.svg")]) == 0
    assert run(["runs", str(directory / "runs")]) == 0
    assert "plain-seed-0" in capsys.readouterr().out
    for command in (["predict", trained, "the cat"], ["lens", trained], ["behaviour", trained]):
        assert run(command) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_samples_are_pieces_of_the_text(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", f"source={directory / 'made.txt'}", "--set", "vocabulary_size=300", "--set", "context=16"]
    assert run(["sample", "text", "--n", "2", "--json", *settings]) == 0
    examples = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    text = (directory / "made.txt").read_text(encoding="utf-8")
    for example in examples:
        assert example["text"] + example["answer"] in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.txt"], "there is no file or directory"),
        (["made.txt", "--seeds", "0"], "--seeds. Must be >= 1"),
        (["made.txt", "--preset", "binding-tiny"], "needs a run on text"),
        (["made.txt", "--figure", "figure.gif"], "figure.gif"),
        (["made.txt", "--set", "task.sorce=x"], "Did you mean 'task.source'"),
        (["made.txt", "--tokenizer", "nowhere"], "has no tokenizer.json"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(directory)
    assert run(["language", *arguments, "--out", "new"]) == 2
    assert sentence in capsys.readouterr().err
    assert not (directory / "new").exists()


def test_a_preset_of_text_without_a_text_says_how_to_name_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "text-small", "--out", str(tmp_path)]) == 2
    assert "task.source: name the text to train on" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
