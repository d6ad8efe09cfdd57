"""docs/pythia.md and the stand-in it is tested on: every command of the page runs on models with Pythia's file layout."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from bindscope.cli.main import run
from bindscope.families import find_family
from bindscope.runs.directory import Run
from cli.answers import answer, refusal
from studies.code_series import write_series

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pythia.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.strip().splitlines()]


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_series(tmp_path_factory.mktemp("models") / "pythia-70m")


@pytest.fixture
def here(series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(series, tmp_path / "pythia-70m")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_of_the_page_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) > 12
    for command in COMMANDS:
        words = shlex.split(command)[1:]
        if words[0] == "serve":
            assert "programs" in find_family("code").pages  # what it shows is tested page by page
            continue
        printed = answer(capsys, *words)
        assert printed.strip(), command
        if words[0] == "import":
            assert printed.count("accuracy") == 2, printed
    evaluated = Run.open("runs/pythia").metrics
    assert [row["step"] for row in evaluated] == [0, 10]


def test_the_python_of_the_page_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, *shlex.split(COMMANDS[0])[1:])
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(block.replace('"all"', "(0, 10)"), "pythia.md", "exec"), {})


def test_the_stand_in_is_made_by_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import small_pythia

    small_pythia.main([str(tmp_path / "tiny"), "--steps", "1", "--width", "32"])
    sys.modules.pop("small_pythia")
    assert sorted(path.name for path in (tmp_path / "tiny").iterdir()) == ["step0", "step1"]
    for step in ("step0", "step1"):
        files = {path.name for path in (tmp_path / "tiny" / step).iterdir()}
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= files
    assert json.loads((tmp_path / "tiny/step0/config.json").read_text())["model_type"] == "gpt_neox"
    capsys.readouterr()
    answer(
        capsys, "import", str(tmp_path / "tiny"), "--family", "code", "--as", "a", "--out", str(tmp_path), "--n", "5"
    )


def test_what_cannot_be_asked_gets_one_sentence_and_leaves_no_run(here: Path, capsys) -> None:
    asked = ["import", "pythia-70m", "--family", "code", "--as", "p", "--n", "5"]
    assert "no surface form 'pyton'" in refusal(capsys, *asked, "--set", "form=pyton")
    names = ["--set", "names=alpha,beta,gamma", "--set", "n_variables=3", "--set", "lines=3"]
    assert "the names alpha, beta, gamma" in refusal(capsys, *asked, *names)
    assert "needs at least" in refusal(capsys, *asked, "--set", "shots=20")  # more tokens than the model reads
    (here / "pythia-70m/step10/tokenizer.json").write_text("{}")
    assert "cannot be read as a tokenizer" in refusal(capsys, *asked)
    (here / "pythia-70m/step10/tokenizer.json").unlink()
    assert "has no tokenizer.json" in refusal(capsys, *asked)
    shutil.copy(here / "pythia-70m/step0/tokenizer.json", here / "tokenizer.json")
    assert "leave it out" in refusal(capsys, "import", "pythia-70m", "--as", "p", "--tokenizer", "tokenizer.json")
    config = here / "pythia-70m/step0/config.json"
    assert not (here / "runs/p").exists()
    answer(capsys, *asked, "--tokenizer", "tokenizer.json")
    assert config.exists()


def test_a_tokenizer_larger_than_the_model_is_refused(here: Path, capsys) -> None:
    path = here / "pythia-70m/step0/tokenizer.json"
    settings = json.loads(path.read_text())
    token = {"id": 5000, "content": "<far>", "single_word": False, "lstrip": False, "rstrip": False}
    settings["added_tokens"].append({**token, "normalized": False, "special": True})
    settings["model"]["vocab"] |= {f"<{number}>": number for number in range(len(settings["model"]["vocab"]), 5000)}
    path.write_text(json.dumps(settings))
    sentence = refusal(capsys, "import", "pythia-70m", "--family", "code", "--as", "p")
    assert "tokens and the model 500" in sentence


def test_a_run_refuses_to_be_verified_and_says_why(here: Path, capsys) -> None:
    answer(capsys, *shlex.split(COMMANDS[0])[1:])
    assert run(["verify", "pythia"]) == 2
    assert "no published claims" in capsys.readouterr().err
