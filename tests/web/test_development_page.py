"""Curves side by side over the wire: the same numbers as in Python, with what would measure the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bindscope
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run
from bindscope.studies.binding.transplants.tell import tell_retraining, tell_transplants
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import study_or_none
from bindscope.web import lookups, transplants
from bindscope.web.body import Body, encode
from bindscope.web.lab import Lab, NotMeasured
from bindscope.web.pages import development
from studies.made_runs import AGAIN, make_run


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "made").path


def test_the_page_has_the_curves_of_the_notebook(path: Path, tmp_path: Path) -> None:
    lab = Lab.open([path], tmp_path)
    body = Body.model_validate_json(encode(development.read_development(lab, lab.find("made"))))
    dataset = bindscope.open_run(path).development()
    assert body.coords["curve"].values == dataset.curve.values.tolist()
    for name in ("value", "turned_at"):
        sent = np.array(body.variables[name].values, dtype=float)
        np.testing.assert_allclose(sent, dataset[name].values.ravel(), rtol=1e-6)
    assert body.command.startswith("bindscope development made")
    assert ("--measure" in body.command) == bool(dataset.attrs["missing"])
    assert ", ".join(body.missing or []) == dataset.attrs["missing"]


@pytest.mark.parametrize(
    ("name", "variable"), [("mixture", "weight"), ("identifiers", "swapped"), ("lookbacks", "end")]
)
def test_panels_of_lookups_have_the_saved_numbers_and_are_never_measured_while_a_reader_waits(
    path: Path, tmp_path: Path, name: str, variable: str
) -> None:
    lab = Lab.open([path], tmp_path)
    read = getattr(lookups, name)
    with pytest.raises(NotMeasured, match=f"bindscope figure made {name}"):
        read(lab, lab.find("made"))
    study = study_or_none("binding")
    kept = Library(lab.find("made").run, study.results, tmp_path / "made", n=12).fill(name).dataset
    body = Body.model_validate_json(encode(lookups.body_of(lab.find("made"), name, "a title", kept[[variable]], "")))
    sent = np.array(body.variables[variable].values, dtype=float)
    np.testing.assert_allclose(sent, kept[variable].values.ravel(), atol=6e-4)
    assert body.command.startswith(f"bindscope {name} made --n 12")
    for curve in study.curves:
        if curve.result == name:
            assert curve.read(kept).value.dims == ("step",)
    drawing = study.find_figure(name)
    assert drawing.draw({name: kept}).axes


def test_panels_send_the_saved_coefficient_and_diagnostics(tmp_path: Path) -> None:
    lab = Lab.open([find_run("binding-plain")], tmp_path)
    run = lab.find("binding-plain")
    for read, name in ((development.read_coefficient, "coefficient"), (development.read_diagnostics, "repetition")):
        body = Body.model_validate_json(encode(read(lab, run)))
        saved = bindscope.open_run("binding-plain").result("coefficient" if name == "coefficient" else "diagnostics")
        np.testing.assert_allclose(np.array(body.variables[name].values, dtype=float), saved[name].values, rtol=1e-6)
        assert body.command.startswith("bindscope figure binding-plain")
        assert "checkpoint" not in body.coords
    rows = Body.model_validate_json(encode(development.read_refined(lab, run)))
    assert rows.coords["row"].values == ["L0", "L3", "L5", "misleading", "depth=1", "depth=4"]
    announced = Body.model_validate_json(encode(development.read_announcements(lab, run)))
    assert "repetition of answers" in announced.coords["number"].values
    assert announced.attrs["answers_depart"] == 500


@pytest.mark.parametrize(("name", "variable"), [("transplants", "total_fraction"), ("retraining", "left")])
def test_panels_of_transplants_have_the_saved_numbers_and_what_they_show(
    path: Path, tmp_path: Path, name: str, variable: str
) -> None:
    lab = Lab.open([path], tmp_path)
    with pytest.raises(NotMeasured, match=f"bindscope figure made {name}"):
        getattr(transplants, f"read_{name}")(lab, lab.find("made"))
    shipped = Lab.open([find_run("binding-plain")], tmp_path)
    run = shipped.find("binding-plain")
    body = Body.model_validate_json(encode(getattr(transplants, f"read_{name}")(shipped, run)))
    kept = run.library.find(name).dataset
    sent = np.array(body.variables[variable].values, dtype=float)
    np.testing.assert_allclose(sent, kept[variable].values.ravel(), atol=6e-4)
    assert body.attrs["finding"] in (tell_transplants(kept) if name == "transplants" else tell_retraining(kept))
    assert body.command == f"bindscope figure binding-plain {name}"


def test_only_runs_with_reassignment_have_its_panel_which_says_what_each_step_shows(path: Path, tmp_path: Path) -> None:
    again = make_run(tmp_path / "again", steps=(0, 2000), task=AGAIN)
    assert "reassignment" not in Lab.open([path], tmp_path).find("made").kinds
    lab = Lab.open([again.path], tmp_path)
    run = lab.find("made")
    assert "reassignment" in run.kinds
    with pytest.raises(NotMeasured, match="bindscope figure made reassignment"):
        lookups.reassignment(lab, run)
    study = study_or_none("binding")
    kept = Library(run.run, study.results, again.path / "results").fill("reassignment").dataset
    body = Body.model_validate_json(encode(lookups.reassignment(Lab.open([again.path], tmp_path), run)))
    sent = np.array(body.variables["undone"].values, dtype=float)
    np.testing.assert_allclose(sent, kept.undone.values.ravel(), atol=6e-4)
    first, last = body.coords["finding"].values
    assert "nothing can be said" in first
    assert "answered with its last write in 100 %" in last
    curves = {curve.id: curve.read(kept).value for curve in study.curves if curve.result == "reassignment"}
    assert curves["last-write"].values[-1] == 1
    assert curves["last-write"].values[0] < 0.5
    assert curves["running-state"].values[-1] < 0.1
    assert study.find_figure("reassignment").draw({"reassignment": kept}).axes


def test_a_run_without_reassignment_is_not_said_to_lack_the_measure(path: Path) -> None:
    run = bindscope.open_run(path)
    assert "reassignment" not in run.development().attrs["missing"]
    with pytest.raises(BindscopeError, match="assign every variable once"):
        run.result("reassignment")
