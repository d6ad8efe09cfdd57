from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.interventions.ablation import ablate_heads
from bindscope.interventions.answers import accuracy_by
from bindscope.measures.binding.one_program import ablate_program
from bindscope.runs.directory import Run
from bindscope.tasks.binding import sample_root_pairs
from cli.answers import answer, refusal

SMALL = ("--n", "20")


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    return json.loads(answer(capsys, "ablate", "small", *SMALL, *arguments, "--json"))["rows"]


def test_each_head_is_taken_away_with_the_librarys_numbers(
    workplace: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Run.open(trained)
    pairs = sample_root_pairs(opened.config.task, np.random.default_rng(0), 20)  # type: ignore[arg-type]
    expected = accuracy_by(ablate_heads(opened.checkpoint("last"), pairs.base, kind="zero"), "depth")
    found = rows(capsys, "--kind", "zero")
    assert {row["part"] for row in found} >= {"unchanged", "L0.H0", "L1.H1"}
    for row in found:
        if row["part"] != "unchanged":
            layer, head = (int(word[1:]) for word in row["part"].split("."))
            assert row["accuracy"] == expected.accuracy.sel(layer=layer, head=head, depth=row["depth"])
    assert "depth 1, n" in answer(capsys, "ablate", "small", *SMALL)


def test_mlps_sites_and_edges_are_taken_away_and_kept_as_figure_and_numbers(
    workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {row["part"] for row in rows(capsys, "--of", "mlps")} == {"unchanged", "L0.mlp_out", "L1.mlp_out"}
    together = ("--of", "L0.H1", "--of", "L1.H0@rhs 1", "--kind", "resample")
    assert {row["part"] for row in rows(capsys, *together)} == {"unchanged", "changed"}
    text = answer(capsys, "ablate", "small", *SMALL, "--cut", "colon>query", "--layer", "1", "--head", "0")
    assert "without colon>query in layer 1 head 0" in text
    for name in ("heads.svg", "mlps.png", "cut.pdf"):
        what = {"heads.svg": [], "mlps.png": ["--of", "mlps"], "cut.pdf": ["--cut", "colon>query"]}[name]
        answer(capsys, "ablate", "small", *SMALL, *what, "--out", str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000
    answer(capsys, "ablate", "small", *SMALL, "--cut", "colon>query", "--out", str(tmp_path / "cut.nc"))
    kept = xr.load_dataset(tmp_path / "cut.nc", engine="h5netcdf")
    assert kept.correct.sizes == {"example": 20}
    assert kept.attrs["cut"] == "colon>query"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--of", "L9.H0"], "in layers L0 to L1 with heads"),
        (["--of", "heads", "--of", "mlps"], "one by one"),
        (["--of", "heads", "--cut", "colon>query"], "choose one of the two"),
        (["--layer", "1"], "which edge to cut"),
        (["--cut", "colon"], "as in 'colon>query'"),
        (["--cut", "colon>nowhere"], "no position 'nowhere'"),
        (["--cut", "rhs 1>colon"], "cannot see it"),
        (["--cut", "colon>query", "--layer", "9"], "layers L0 to L1"),
        (["--cut", "colon>query", "--head", "9"], "heads H0 to"),
        (["--step", "7"], "the nearest is 8"),
        (["--of", "head"], "--of head: not a site. Did you mean 'heads'?"),
        (["--depth", "9"], "--depth"),
        (["--out", "figure.gif"], "svg, pdf, png, nc"),
    ],
)
def test_what_cannot_be_taken_away_is_refused(
    arguments: list[str], sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(workplace.rglob("*"))
    assert sentence in refusal(capsys, "ablate", "small", *SMALL, *arguments)
    assert sorted(workplace.rglob("*")) == before


def test_a_typed_program_is_answered_before_and_after(
    workplace: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, sites = "a=5;b=a;#b:", ("--of", "L0.H1", "--of", "L1.mlp_out", "--kind", "zero")
    opened = Run.open(trained)
    task, model = opened.config.task, opened.checkpoint("last")
    expected = ablate_program(model, task, task.read(program), ["L0.H1", "L1.mlp_out"], "zero")  # type: ignore[attr-defined, arg-type]
    out = ("--out", str(tmp_path / "answer.svg"))
    found = json.loads(answer(capsys, "ablate", "small", program, *sites, "--json", *out))
    np.testing.assert_allclose(found["variables"]["probability"]["values"], [expected.before, expected.after])
    assert (tmp_path / "answer.svg").stat().st_size > 1000
    text = answer(capsys, "ablate", "small", program, *sites)
    assert "without L0.H1, L1.mlp_out: zero" in text
    assert "true answer: 5" in text
    assert "draw programs" in refusal(capsys, "ablate", "small", program, "--cut", "colon>query")


def test_a_position_of_a_typed_program_is_named_as_in_drawn_ones(
    workplace: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def probabilities(site: str) -> np.ndarray:
        found = json.loads(answer(capsys, "ablate", "small", "a=5;b=a;#b:", "--of", site, "--json"))
        return np.array(found["variables"]["probability"]["values"])

    for name, number in {"lhs 1": 0, "rhs 1": 2, "lhs 2": 4, "rhs 2": 6, "query": 9, "colon": 10}.items():
        np.testing.assert_array_equal(probabilities(f"L0.resid_pre@{name}"), probabilities(f"L0.resid_pre@{number}"))
    assert len({probabilities(f"L0.resid_pre@{number}").tobytes() for number in (2, 9, 10)}) == 3
    assert "no position 'rhs 3'" in refusal(capsys, "ablate", "small", "a=5;b=a;#b:", "--of", "L0.H1@rhs 3")
