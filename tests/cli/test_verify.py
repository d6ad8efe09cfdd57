"""``verify`` and ``figure`` as a person uses them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bindscope.cli.main import run
from bindscope.runs import locate
from bindscope.runs.config import config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.manifest import Manifest
from bindscope.studies.binding.mechanism import measure as mechanism
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.verify import find_study
from bindscope.tasks.binding import BindingTask
from cli.answers import answer, refusal
from studies.made_runs import make_run

FEW = ["--n", "16"]
ENOUGH = ["--n", "90"]  # pairs for the intervals of VB3 to lie on one side of their thresholds


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "runs" / "made").path


@pytest.fixture
def workplace(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory with a copy of the made run under ./runs."""
    shutil.copytree(made, tmp_path / "runs" / "made")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_verdicts_are_printed_with_reasons_and_the_page_is_written(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = answer(capsys, "verify", "made", "--claim", "VB1", "--claim", "vb3", *ENOUGH)
    assert "2 replicates" in text
    assert "VB3  Every position between root and colon carries the value" in text
    assert "measured trajectory, chain, algorithm in" in text
    assert {path.name for path in (workplace / "runs/made/results").iterdir()} == {
        "trajectory.nc",
        "chain.nc",
        "algorithm.nc",
    }
    page = (workplace / "runs/made/verify.html").read_text(encoding="utf-8")
    assert "bindscope verify made --claim VB1 --claim vb3 --n 90 --seed 0" in page


def test_everything_is_what_is_saved_with_a_shipped_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_demand = {result.name for result in find_study("binding").results if result.on_demand}
    saved = {path.stem for path in (locate.SHIPPED_DIRECTORY / "binding-plain" / "results").glob("*.nc")}
    shipped = saved - on_demand
    for arguments, expected in (
        (["--claim", "VB3"], {"chain", "algorithm"}),
        (["--claim", "VB3", "--everything"], shipped),
    ):
        found = json.loads(answer(capsys, "verify", "binding-plain", "--json", *arguments))
        assert {result["name"] for result in found["results"] if result["origin"] == "kept"} == expected
        assert not any(result["origin"] == "computed" and result["file"] for result in found["results"])


def test_what_was_kept_is_used_again_and_said_to_be(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["verify", "made", "--claim", "VB3", "--no-html"]
    answer(capsys, *arguments, *FEW)
    before = (workplace / "runs/made/results/chain.nc").stat().st_mtime_ns
    text = answer(capsys, *arguments, *FEW)
    assert "read     chain, algorithm from runs/made/results" in text
    assert "measured" not in text
    assert (workplace / "runs/made/results/chain.nc").stat().st_mtime_ns == before
    assert "measured chain" in answer(capsys, *arguments, "--n", "17")
    assert "measured chain" in answer(capsys, *arguments, "--n", "17", "--fresh")
    assert not (workplace / "runs/made/verify.html").exists()


@pytest.mark.parametrize("name", ["made", "assign-add", "symbols"])
def test_json_is_printed_without_loading_what_draws_and_with_no_page(name: str, workplace: Path) -> None:
    program = (
        "import sys; from bindscope.cli.main import run; code = run(sys.argv[1:]);"
        "print(code, [name for name in ('matplotlib',) if name in sys.modules], file=sys.stderr)"
    )
    arguments = ["verify", name, "--json", *(["--claim", "VB3", *FEW] if name == "made" else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment)
    assert done.stderr == "0 []\n"
    assert json.loads(done.stdout)["claims"]
    assert not list(workplace.rglob("verify.html"))


def test_json_holds_every_number(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(answer(capsys, "verify", "made", "--claim", "VB3", "--json", "--no-html", *ENOUGH))
    (claim,) = found["claims"]
    assert (claim["id"], claim["verdict"]) == ("VB3", "replicates")
    assert claim["quantities"][0]["value"] == 1.0
    assert found["results"] == [
        {
            "name": name,
            "origin": "computed",
            "file": f"runs/made/results/{name}.nc",
            "seconds": found["results"][index]["seconds"],
            "reason": "",
            "note": "",
            "n": 90,
            "seed": 0,
        }
        for index, name in enumerate(("chain", "algorithm"))
    ]


def test_a_figure_is_drawn_from_what_was_kept(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "VB3 The value hops along the chain: replicates." in answer(capsys, "figure", "made", "VB3", *ENOUGH)
    assert (workplace / "runs/made/results/VB3.svg").is_file()
    for name in ("three.pdf", "three.png", "three.svg"):
        answer(capsys, "figure", "made", "vb3", "--out", name, *FEW)
        assert (workplace / name).stat().st_size > 1000


def test_a_figure_beside_the_claims_has_a_name_of_its_own(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "figure", "made", "ablations", *FEW)
    assert text.startswith("Answers that fall without each head, by depth and by hop\n")
    svg = (workplace / "runs/made/results/ablations.svg").read_text(encoding="utf-8")
    assert "the head that costs most" in svg
    assert "at colon" in svg


@pytest.fixture
def shipped(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made run as one that belongs to the package, seen from an empty directory."""
    monkeypatch.setattr(locate, "SHIPPED_DIRECTORY", tmp_path / "package")
    shutil.copytree(made, tmp_path / "package" / "made")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "package" / "made"


def test_a_shipped_run_is_never_written_to_and_its_own_results_are_used(
    shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in shipped.rglob("*")}
    arguments = ["verify", "made", "--claim", "VB3", *FEW]
    answer(capsys, *arguments)
    answer(capsys, "figure", "made", "VB3", *FEW)
    assert {path: path.stat().st_mtime_ns for path in shipped.rglob("*")} == before
    made = Path("runs/verify-made")
    assert (made / "results/chain.nc").is_file()
    assert (made / "verify.html").is_file()
    assert Path("made-VB3.svg").is_file()
    shutil.move(made / "results/chain.nc", shipped / "results/chain.nc")
    assert "package/made/results" in answer(capsys, *arguments)


def test_out_says_where_everything_goes(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "verify", "made", "--claim", "VB3", "--out", "there", *FEW)
    assert (workplace / "there/results/chain.nc").is_file()
    assert (workplace / "there/verify.html").is_file()
    assert list((workplace / "runs/made/results").iterdir()) == []


def test_an_interruption_keeps_what_was_finished(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bindscope.measures.binding.mechanism.depths_of", interrupt)
    assert run(["verify", "made", "--claim", "VB1", "--claim", "VB3", *FEW]) == 130
    assert "1 results are saved in runs/made/results" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(workplace)
    text = answer(capsys, "verify", "made", "--claim", "VB1", "--claim", "VB3", *FEW)
    assert "read     trajectory" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify", "made", "--claim", "VB13"], "there is no claim 'VB13'"),
        (["verify", "made", "--n", "0"], "--n. Must be >= 1"),
        (["verify", "mode"], "Did you mean 'made'?"),
        (["figure", "made", "VB3", "--out", "x.gif"], "unknown format 'gif'"),
        (["figure", "made", "ablation"], "there is no claim or figure 'ablation'. Did you mean 'ablations'?"),
        (["figure", "made", "VB12", "--n", "16"], "VB12: no figure, for nothing could be measured"),
    ],
)
def test_impossible_requests_are_refused(
    arguments: list[str], sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, *arguments)


def test_claims_about_experiments_are_the_same_for_every_run_on_templates_and_for_none(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", workplace / "nothing shipped")
    config = find_preset("templates-copy").config
    Run.create(Path("runs/copy"), Manifest("copy", config_to_mapping(config), {}, total_steps=1))
    told = []
    for name in ("copy", "symbols"):
        assert run(["verify", name, "--claim", "AS1"]) == 0
        told.append(capsys.readouterr().out)
    assert "not testable" in told[0]
    assert "bindscope experiment same-different" in " ".join(told[0].split())
    assert told[0].replace("copy", "symbols") == told[1].replace("verify-symbols", "symbols")


def test_a_run_too_small_to_show_anything_gets_reasons(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Run.open("runs/made")
    assert isinstance(opened.config.task, BindingTask)
    monkeypatch.setattr(mechanism, "LEAST_LINES", 9)
    text = answer(capsys, "verify", "made", "--claim", "VB3", "--claim", "VB5", "--no-html", *FEW)
    assert "2 not testable" in text
    assert "VB5  Programs of 6 lines are too short for roots from line 3 on." in text
