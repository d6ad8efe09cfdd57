"""``hypotheses`` as a person uses it, on the constructed transformer and with one of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr

import bindscope
from bindscope.measures.binding.hypotheses.causal import Variable
from cli.answers import answer, refusal
from studies.made_runs import make_run

ROOT = Path(__file__).parents[2]
OWN = f"{ROOT}/examples/hypotheses.py:last_line"
FEW = ["--n", "8"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "runs" / "made", steps=(0, 2000)).path


@pytest.fixture
def workplace(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made.parents[1])
    return made.parents[1]


def test_scores_sites_and_controls_are_printed(
    workplace: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = answer(capsys, "hypotheses", "made", *FEW, "--out", str(tmp_path / "h.svg"))
    rows = {line.split("  ")[0]: line.split()[1:] for line in text.splitlines()[3:6]}
    assert rows["value-forward"] == ["1.00", "0.00", "0.00", "0.00"]
    assert rows["pointer-backward"][0] == "0.00"
    assert "queried value" in text
    assert (tmp_path / "h.svg").is_file()


def test_one_of_your_own_is_scored_alike_in_command_and_notebook(
    workplace: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["hypotheses", "made", "--second", OWN, "--n", "24", "--json", "--out", str(tmp_path / "h.nc")]
    printed = json.loads(answer(capsys, *words))
    assert printed["scores"]["value-forward"]["model"] == 1
    assert printed["scores"]["last_line"]["model"] < 0.2

    def last_line(depth: int) -> list[Variable]:
        return [
            Variable("last value", "query", lambda program, lines: program.values[-1]),
            Variable("answer", "colon", lambda program, lines, value: value, ("last value",)),
        ]

    view = bindscope.open_run("made")
    for given in (OWN, last_line):
        found = view.hypotheses(second=given, n=24)
        assert found.score.sel(hypothesis="last_line", condition="model") < 0.2
    assert len(found.plot().axes) >= 2
    with xr.open_dataset(tmp_path / "h.nc", engine="h5netcdf") as saved:
        assert saved.followed.dims == ("condition", "site", "layer")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--first", "value-foward"], "--first: there is no hypothesis 'value-foward'"),
        (["--second", "value-forward"], "the two hypotheses are both 'value-forward'; name two."),
        (["--second", f"{ROOT}/examples/hypotheses.py:last_lin"], "'last_lin' is not a function in"),
        (["--second", "mine.py:f"], "mine.py:f failed, line 2: KeyError"),
        (["--n", "4"], "--n"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    words: list[str], said: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.py").write_text("def f(depth):\n    return {}[depth]\n")
    assert said in refusal(capsys, "hypotheses", "made", *words)
