"""Claims of one's own: documents beside the package, on saved results, on questions, and on a family of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import bindscope
from bindscope.cli.main import run
from cli.answers import answer, refusal
from examples.conftest import RECALL, ROOT, alone

HOPS = f"{ROOT}/examples/hops.toml"
RECALLED = ["--claims", f"{ROOT}/examples/recall.toml", "--result", f"{ROOT}/examples/recall_patching.py:carried"]
ASKED = """
[[claim]]
id = "asked"
title = "Heads move the margin"
statement = "Some head's output moves the margin."
source = "us"
figure = "none"
fixed = {on = 2026-11-18, seen = "nothing"}

[[claim.criterion]]
question = "patch"
ask = {grid = "heads", n = 8, metric = "margin"}
variable = "margin"
select = {step = "last"}
reduce = ["mean over pair", "max over head", "max over layer"]
at_least = -1000

[[claim.control]]
question = "patch"
ask = {grid = "heads", n = 8, metric = "margin"}
variable = "success"
select = {step = "last", layer = 0, head = 0}
reduce = ["mean over pair"]
at_most = 0.9
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_the_example_of_the_page_is_the_file_and_its_commands_work(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "own-claims.md").read_text(encoding="utf-8")
    shown = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    assert _bare(shown) in _bare(Path(HOPS).read_text(encoding="utf-8"))
    commands = [line.split("#")[0].split() for line in re.findall(r"^bindscope (.*hops.*)$", page, re.MULTILINE)]
    assert [words[0] for words in commands] == ["explain", "explain", "verify"]
    texts = [answer(capsys, *words, *(["--no-html"] if words[0] == "verify" else [])) for words in commands]
    assert "criterion  success of chain at depth 2, position rhs 2, max over layer is at least 0.8\n" in texts[0]
    assert "nothing has to be measured" in texts[1]
    assert "(reads 5 numbers)" in texts[1]
    number = re.search(r"first \*differs\*: (61.1 % \[.*?\])", page)
    assert number is not None
    assert number[1] in texts[2]


def _bare(text: str) -> str:
    return "\n".join(line.split(" #")[0].rstrip() for line in text.splitlines() if line.strip())


def test_own_claims_are_judged_beside_shipped_ones_with_the_same_words(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = json.loads(answer(capsys, "verify", "binding-laptop", "--claims", HOPS, "--claim", "VB6", "--json"))
    verdicts = {claim["id"]: claim["verdict"] for claim in printed["claims"]}
    assert list(verdicts) == ["VB6", "second-hop", "values-over-shuffled"]
    (hop,) = [claim for claim in printed["claims"] if claim["id"] == "second-hop"]
    assert hop["fixed"] == {"on": "2026-11-18", "seen": "VB3 on the four shipped runs"}
    assert hop["results"] == ["chain"]
    view = bindscope.open_run("binding-laptop").verify(["VB6"], documents=HOPS)
    assert dict(zip(view.dataset.claim.values, view.dataset.verdict.values, strict=True)) == verdicts
    assert len(view.plot("second-hop").axes) == 3


def test_a_shipped_claim_as_a_document_gets_its_own_verdict(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("vb6.toml").write_text(answer(capsys, "claims", "VB6"), encoding="utf-8")
    own = json.loads(answer(capsys, "verify", "binding-laptop", "--claims", "vb6.toml", "--json"))
    shipped = json.loads(answer(capsys, "verify", "binding-laptop", "--claim", "VB6", "--json"))
    assert own["claims"] == shipped["claims"]


def test_a_question_with_a_metric_of_ones_own_is_asked(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("asked.toml").write_text(ASKED, encoding="utf-8")
    metric = ["--metric", f"{ROOT}/examples/metrics.py:margin"]
    words = ["verify", "binding-laptop", "--claims", "asked.toml", "--json"]
    (claim,) = json.loads(answer(capsys, *words, *metric))["claims"]
    assert claim["quantities"][0]["n"] == 8
    grid = bindscope.open_run("binding-laptop").patch(grid="heads", n=8, metric=metric[1])
    assert claim["quantities"][0]["value"] == pytest.approx(float(grid.margin.isel(step=0).mean("pair").max()))
    assert "there is no metric 'margin'" in refusal(capsys, *words)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('metric = "margin"', f'metric = "{ROOT}/examples/metrics.py:margin"', "a document cannot name code"),
        ('grid = "heads"', 'grid = "haeds"', "question 'patch': grid: must be one of"),
        ("n = 8, metric", "m = 8, metric", "question 'patch': it has no setting 'm'"),
        ('question = "patch"', 'question = "algoritm"', "there is no question 'algoritm'. Did you mean 'algorithm'?"),
    ],
)
def test_what_a_question_cannot_be_asked_is_refused(
    old: str, new: str, said: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("asked.toml").write_text(ASKED.replace(old, new), encoding="utf-8")
    assert said in refusal(capsys, "verify", "binding-laptop", "--claims", "asked.toml")
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--claims", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--claims", HOPS, "--result", "mine.py:f"], "--result mine.py:f: there is no file mine.py."),
        (["--claims", HOPS, "--result", "mine.py"], "--result mine.py: say which function of which file"),
        (["--result", "mine.py:f"], "name their file with --claims"),
        (["--claims", HOPS, "--claims", HOPS], "two claims are called 'second-hop'"),
        (["--claims", "chian.toml"], "there is no result 'chian'. Did you mean 'chain'?"),
        (["--claims", "empty.toml"], "criterion 1, on 'chain': select: there is no position 'rhs 9'."),
    ],
)
def test_what_the_command_is_given_wrongly_is_one_sentence(
    words: list[str], said: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(HOPS).read_text(encoding="utf-8")
    Path("chian.toml").write_text(text.replace('result = "chain"', 'result = "chian"'), encoding="utf-8")
    Path("empty.toml").write_text(text.replace('"rhs 2"', '"rhs 9"'), encoding="utf-8")
    assert said in refusal(capsys, "verify", "binding-laptop", *words)
    if words[-1] == "empty.toml":
        assert said in refusal(capsys, "explain", "empty.toml", "binding-laptop")


def test_a_claim_about_a_family_of_ones_own_is_judged(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], trained: Path
) -> None:
    family = ["--family", RECALL]
    early = json.loads(answer(capsys, "verify", str(trained), *RECALLED, *family, "--json"))
    assert early["claims"][0]["verdict"] == "not testable"  # 24 steps teach it nothing
    options = ["--steps", "150", "--set", "training.evaluate_every=150", "--set", "training.evaluation_size=100"]
    with alone():
        assert run(["train", *family, "--threads", "1", *options]) == 0
        capsys.readouterr()
        (claim,) = json.loads(answer(capsys, "verify", "recall-small", *RECALLED, *family, "--json"))["claims"]
        assert claim["verdict"] == "replicates"
        assert claim["control"][0]["value"] < 0.05
        assert "as much as" in answer(capsys, "explain", RECALLED[1], "recall-small", *RECALLED[2:], *family)
        assert "recalling" in answer(capsys, "trajectory", "recall-small", *family)


def test_code_of_ones_own_that_fails_is_no_verdict(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], trained: Path
) -> None:
    words = ["verify", str(trained), *RECALLED[:3], "mine.py:carried", "--family", RECALL]
    Path("mine.py").write_text("def carried(context):\n    return 1 / 0\n")
    assert refusal(capsys, *words) == "mine.py:carried failed, line 2: ZeroDivisionError: division by zero."
    Path("other.py").write_text("def carried(context):\n    return 3\n")
    said = refusal(capsys, *words[:-3], "other.py:carried", *words[-2:])
    assert said == "other.py:carried: it must return an xarray Dataset, and it returned a int."
