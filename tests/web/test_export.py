"""The static copy: the server's bytes under the server's addresses, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from bindscope.cli.main import run as run_command
from bindscope.errors import BindscopeError
from bindscope.web.app import create_app
from bindscope.web.export import MARKER, Export, add_policy, export_site
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import SVG, Page, Parameters, Resource
from bindscope.web.pages import PAGES
from bindscope.web.pages.weights import read_weights
from bindscope.web.security import POLICY

INDEX = '<!doctype html>\n<html>\n  <head>\n    <meta charset="utf-8" />\n    <title>x</title>\n  </head>\n</html>\n'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built page, as small as can be."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(INDEX)
    (folder / "assets" / "index-1.js").write_text("export {};")
    (folder / ".sources").write_text("a stamp that nobody needs to read")
    return folder


@pytest.fixture(scope="module")
def exported(small_run: Path, page: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Export, Path]:
    """An export of everything, and where its results were saved."""
    folder = tmp_path_factory.mktemp("export")
    lab = Lab.open([small_run], kept_in=folder / "kept", read_only=[small_run])
    made = export_site(lab, folder / "site", page=page)
    assert lab.live, "the lab itself was changed"
    return made, folder / "kept"


def files_in(directory: Path) -> set[str]:
    return {file.relative_to(directory).as_posix() for file in directory.rglob("*") if file.is_file()}


def test_every_body_of_the_api_is_a_file_with_the_same_bytes(small_run: Path, exported: tuple[Export, Path]) -> None:
    made, kept_in = exported
    still = Lab.open([small_run], kept_in=kept_in, read_only=[small_run], live=False)
    expected, refused = {"index.html", "assets/index-1.js", MARKER}, set()
    with TestClient(create_app(still), base_url="http://127.0.0.1:8420") as client:
        for resource in (resource for each in PAGES for resource in each.resources):
            for parameters in resource.instances(still):
                path = resource.path.format(**parameters)
                response = client.get(f"/api/{path}")
                if response.status_code == 200:
                    assert (made.directory / "api" / path).read_bytes() == response.content, path
                    expected.add(f"api/{path}")
                else:
                    assert response.status_code < 500, path
                    refused.add(path)
    assert files_in(made.directory) == expected
    assert {path for path, _ in made.skipped} == refused
    assert made.n_files == len(expected)


def test_an_export_says_that_nobody_answers_and_holds_every_checkpoint(
    small_run: Path, exported: tuple[Export, Path]
) -> None:
    site = exported[0].directory
    listed = json.loads((site / "api/runs.json").read_text())
    assert listed["live"] is False
    steps = listed["runs"][0]["steps"]
    assert steps
    for step in steps:
        weights = (site / f"api/runs/small/weights/{step}.safetensors").read_bytes()
        assert weights == (small_run / f"checkpoints/step_{step:08d}.safetensors").read_bytes()


def test_fewer_steps_and_no_weights(small_run: Path, page: Path, tmp_path: Path) -> None:
    lab = Lab.open([small_run], kept_in=tmp_path / "kept", read_only=[small_run])
    run = lab.find("small")
    shown = (run.run.steps[0], run.run.steps[-1])
    assert len(run.run.steps) > 2
    run.show_steps(shown)
    pages = tuple(each for each in PAGES if each.name in ("runs", "weights"))
    export_site(lab, tmp_path / "with", page=page, pages=pages)
    export_site(lab, tmp_path / "without", page=page, pages=pages, weights=False)
    assert json.loads((tmp_path / "with/api/runs.json").read_text())["runs"][0]["steps"] == list(shown)
    weights = {f"api/runs/small/weights/{step}.safetensors" for step in shown}
    assert files_in(tmp_path / "with") - files_in(tmp_path / "without") == weights


def test_what_a_run_cannot_give_is_left_out_and_listed(small_run: Path, page: Path, tmp_path: Path) -> None:
    def make(lab: Lab, run: LabRun, part: str) -> dict[str, str]:
        if part == "bad":
            raise BindscopeError("there is nothing of this here.")
        return {"part": part}

    def each(lab: Lab, run: LabRun) -> list[Parameters]:
        return [{"part": "good"}, {"part": "bad"}]

    pages = (Page("test", (Resource("runs/{run}/{part}.json", make, "A part", each=each),)),)
    seen: list[tuple[int, int]] = []
    made = export_site(
        Lab.open([small_run]), tmp_path / "site", page=page, pages=pages, on_progress=lambda *at: seen.append(at)
    )
    assert made.skipped == (("runs/small/bad.json", "there is nothing of this here."),)
    assert "api/runs/small/good.json" in files_in(tmp_path / "site")
    assert seen == [(1, 2), (2, 2)]


def test_the_page_carries_the_servers_policy() -> None:
    index = add_policy(INDEX)
    policy = index.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {name: value for name, value in POLICY.items() if name != "frame-ancestors"}
    assert index.index("Content-Security-Policy") < index.index("<title>")
    with pytest.raises(BindscopeError, match="build it again"):
        add_policy("<html></html>")


def test_only_an_earlier_export_is_replaced(small_run: Path, page: Path, tmp_path: Path) -> None:
    lab, site = Lab.open([small_run], kept_in=tmp_path / "kept", read_only=[small_run]), tmp_path / "site"
    (site).mkdir()
    (site / "letter.txt").write_text("keep me")
    for replace in (False, True):
        with pytest.raises(BindscopeError, match="not empty and not an earlier export"):
            export_site(lab, site, page=page, pages=(), replace=replace)
    (site / "letter.txt").unlink()
    export_site(lab, site, page=page, pages=())
    (site / "old.txt").write_text("of the earlier export")
    with pytest.raises(BindscopeError, match="say --replace"):
        export_site(lab, site, page=page, pages=())
    export_site(lab, site, page=page, pages=(), replace=True)
    assert files_in(site) == {"index.html", "assets/index-1.js", MARKER}
    assert {path.name for path in tmp_path.iterdir()} == {"site"}, "something was left beside it"


def test_a_failed_export_leaves_what_was_there(
    small_run: Path, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, site = Lab.open([small_run], kept_in=tmp_path / "kept", read_only=[small_run]), tmp_path / "site"
    export_site(lab, site, page=page, pages=())
    before = files_in(site)

    def fail(lab: Lab) -> dict[str, str]:
        raise MemoryError

    broken = (Page("test", (Resource("all.json", fail, "Never"),)),)
    with pytest.raises(MemoryError):
        export_site(lab, site, page=page, pages=broken, replace=True)
    assert files_in(site) == before
    assert {path.name for path in tmp_path.iterdir()} == {"site"}


def test_weights_of_large_models_are_not_offered(small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab.open([small_run], read_only=[small_run])
    monkeypatch.setattr("bindscope.web.pages.weights.MOST_PARAMETERS", 10)
    with pytest.raises(BindscopeError, match="too many to send"):
        read_weights(lab, lab.find("small"), 0)
    (resource,) = next(page for page in PAGES if page.name == "weights").resources
    assert not list(resource.instances(lab))


def test_the_command_refuses_with_one_sentence(small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "letter.txt").write_text("keep me")
    for arguments, said in (
        ([str(tmp_path), str(small_run)], "not empty and not an earlier export"),
        ([str(tmp_path / "site"), "nobody"], "there is no run 'nobody'"),
        ([str(tmp_path / "site"), str(small_run), "--steps", "1"], "--steps: show at least"),
    ):
        assert run_command(["export", *arguments]) == 2
        captured = capsys.readouterr()
        assert said in captured.err
        assert captured.err.count("\n") == 1
        assert not captured.out
    assert not (tmp_path / "site").exists()


def test_each_figure_is_drawn_once_though_results_were_missing(
    small_run: Path, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, drawn = [], []

    def make(lab: Lab, run: LabRun, **_: str) -> dict:
        read.append(run.name)
        (tmp_path / "kept" / "small" / "results").mkdir(parents=True, exist_ok=True)
        run.library.fill("trajectory")  # a result that was missing: all bodies are written once more
        return {}

    def draw(lab: Lab, run: LabRun, **_: str) -> str:
        drawn.append(run.name)
        return "<svg/>"

    resources = (
        Resource("runs/{run}/a.json", make, "A body"),
        Resource("runs/{run}/a.svg", draw, "A figure", media=SVG),
    )
    lab = Lab.open([small_run], kept_in=tmp_path / "kept", read_only=[small_run])
    made = export_site(lab, tmp_path / "site", page=page, pages=(Page("a", resources, ()),))
    assert (len(read), len(drawn)) == (2, 1)
    assert (made.directory / "api/runs/small/a.svg").read_text() == "<svg/>"
