"""What ``open_study`` gives is what the experiments recorded and the theory computes, and it draws itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import bindscope
from bindscope.errors import BindscopeError
from bindscope.notebook import Drawn, SymbolsView
from bindscope.studies.framework.experiments import save_experiment_dataset
from bindscope.tasks.templates import Template, TemplateTask
from bindscope.theory.kernel import KernelSettings
from bindscope.theory.kernel_learnable import learnable
from bindscope.theory.kernel_ridge import ridge_generalises

FEW = {"points": 32, "inner_points": 4, "randomisations": 8}  # for speed: no number here is read as a finding
LOSSES = {("plain", 128): 0.9, ("plain", 512): 0.4, ("both", 32): 0.3, ("both", 64): 0.1}


def make_curves() -> xr.Dataset:
    """An experiment of two models with made-up losses and two seeds."""
    splits, seeds = ["train", "validation", "test"], [0, 1]
    loss = np.array([[[0.0, value, value]] * len(seeds) for value in LOSSES.values()])
    return xr.Dataset(
        {
            "last_loss": (("variant", "seed", "split"), loss),
            "last_accuracy": (("variant", "seed", "split"), 1 - loss / 2),
            "status": (("variant", "seed"), np.full(loss.shape[:2], "finished")),
            "last_step": (("variant", "seed"), np.full(loss.shape[:2], 100.0)),
            "split_n": ("split", [500.0] * 3),
        },
        {
            "variant": [f"{model}-{n}" for model, n in LOSSES],
            "model": ("variant", [model for model, _ in LOSSES]),
            "n": ("variant", [n for _, n in LOSSES]),
            "heads": ("variant", [4] * len(LOSSES)),
            "seed": seeds,
            "split": splits,
        },
        {"question": "How many?", "preset": "templates-same-different", "steps": 100, "title": "made up"},
    )


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SymbolsView:
    """The study with one experiment trained here, and none shipped."""
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", tmp_path / "shipped")
    save_experiment_dataset(make_curves(), tmp_path / "experiment-same-different" / "same-different.nc")
    return bindscope.open_study("symbols", tmp_path)


def test_a_study_is_opened_by_its_name(study: SymbolsView) -> None:
    assert {"same-different", "copy", "learnability", "gpt2", "language"} <= set(study.experiments)
    assert "seeds" not in study.experiments  # another study's
    assert repr(study) == f"<study symbols: {len(study.experiments)} experiments>"
    assert "no: bindscope experiment print-swapped" in study._repr_html_()
    with pytest.raises(FrozenInstanceError):
        study.name = "other"  # type: ignore[misc]
    assert {"open_run", "open_study"} <= set(dir(bindscope))


def test_curves_made_here_come_first_and_models_can_be_chosen(study: SymbolsView) -> None:
    found = study.curves("same-different")
    assert isinstance(found, Drawn)
    np.testing.assert_allclose(found.last_loss.sel(split="test", seed=0), list(LOSSES.values()))
    both = study.curves("same-different", models=["both"])
    assert both.variant.values.tolist() == ["both-32", "both-64"]
    assert isinstance(both.plot(), Figure)
    assert "0.40" in study.conclusion("same-different")


def test_a_shipped_experiment_is_read_where_none_was_made(study: SymbolsView) -> None:
    shipped = study.runs_directory / "shipped"
    with pytest.raises(BindscopeError, match="'bindscope experiment aba-abb' trains it"):
        study.curves("aba-abb")
    save_experiment_dataset(make_curves(), shipped / "aba-abb.nc")
    save_experiment_dataset(make_curves().isel(variant=[0]), shipped / "same-different.nc")
    assert study.curves("aba-abb").sizes["variant"] == study.curves("same-different").sizes["variant"] == 4


def test_samples_are_sequences_of_the_template(study: SymbolsView) -> None:
    text = "A='+1','print'(B)A"
    found, template = study.samples(text, n=7, seed=3), Template.parse(text)
    for sample in range(7):
        matched = template.match([str(token) for token in found.token.values[sample]])
        assert matched == dict(zip(["A", "B"], found.symbol.values[sample].tolist()))
    xr.testing.assert_equal(found, study.samples(text, n=7, seed=3))
    assert not found.equals(study.samples(text, n=7, seed=4))
    shown = [text.get_text() for text in found.plot().axes[0].texts]
    assert shown[::8] == list(found.written.values)  # the template above each column of seven sequences


def test_the_kernel_and_ridge_regression_are_those_of_the_theory(study: SymbolsView) -> None:
    settings = KernelSettings(beta=2.0, **FEW)
    found = study.kernel("ABA", "ABB", labels=(1, -1), beta=2.0, **FEW)
    expected = learnable(["ABA", "ABB"], [1, -1], settings)
    np.testing.assert_array_equal(found.kernel, expected.matrix.value)
    np.testing.assert_allclose(np.linalg.eigvalsh(found.kernel.values)[0], found.eigenvalue_value[0], atol=1e-4)
    assert (found.beta, found.verdict) == (2.0, expected.verdict)
    named = study.kernel("aba-abb", beta=2.0, **FEW)
    np.testing.assert_array_equal(named.label, [1, -1])
    np.testing.assert_array_equal(named.kernel, found.kernel)
    ridge = study.ridge("ABA", "ABB", labels=(1.0, -1.0), n=[8, 16], seeds=[5], beta=2.0, **FEW)
    task = TemplateTask(name="custom", templates=("ABA", "ABB"), labels=(1.0, -1.0))
    xr.testing.assert_equal(ridge.test_error, ridge_generalises(task, [8, 16], [5], settings).test_error)


def test_kernels_draw_themselves_also_from_a_file(study: SymbolsView, tmp_path: Path) -> None:
    drawn = [study.kernel("AA", "AB", **FEW), study.ridge("AA", "AB", labels=(1, -1), n=[8, 16], **FEW)]
    drawn.append(study.samples("ABA"))
    for index, dataset in enumerate(drawn):
        dataset.to_netcdf(tmp_path / f"{index}.nc", engine="h5netcdf")
        again = xr.load_dataset(tmp_path / f"{index}.nc", engine="h5netcdf")
        assert isinstance(Drawn.of(again, again.attrs["figure"]).plot(), Figure)


def test_claims_are_judged_from_the_experiments(study: SymbolsView) -> None:
    claim = study.claim("as1")
    assert claim.dataset.claim.values.tolist() == ["AS1"]
    judged = claim.verification.judged[0]
    assert judged.finding == judged.claim.judge(judged.datasets)
    assert judged.datasets["same-different"].attrs["title"] == "made up"
    assert isinstance(claim.plot(), Figure)
    several = study.verify(["AS1", "AS3"])
    with pytest.raises(BindscopeError, match="name the claim to draw: AS1, AS3"):
        several.plot()


MISTAKES: list[tuple[Callable[[SymbolsView], object], str]] = [
    (lambda study: study.curves("same-diferent"), "no experiment 'same-diferent'. Did you mean 'same-different'"),
    (lambda study: study.curves("seeds"), "the study has no experiment 'seeds'"),
    (lambda study: study.curves("print-swapped"), "'bindscope experiment print-swapped' trains it"),
    (lambda study: study.curves("same-different", ["bth"]), "no model 'bth'. Did you mean 'both'"),
    (lambda study: study.conclusion("nothing"), "no experiment 'nothing'"),
    (lambda study: study.kernel(), "give templates"),
    (lambda study: study.kernel("aba-bab"), "neither a task nor a template .* Did you mean 'aba-abb'"),
    (lambda study: study.kernel("AA", "AB", bta=1), "no setting 'bta'. Did you mean 'beta'"),
    (lambda study: study.kernel("AA", "AB", labels=(1,)), "2 templates need as many labels"),
    (lambda study: study.kernel("copy"), "must be numbers"),
    (lambda study: study.ridge("AA", "AB"), "regression needs them"),
    (lambda study: study.samples("ABA", n=0), "give 1 to 10,000 samples"),
    (lambda study: study.claim("AS99"), "no claim 'AS99'"),
    (lambda study: study.curves("same-different").isel(variant=[]).plot(), "no variant left"),
    (lambda study: bindscope.open_study("binding"), "no study 'binding' to open; open 'symbols', or a run"),
]


@pytest.mark.parametrize(("ask", "words"), MISTAKES, ids=[words[:24] for _, words in MISTAKES])
def test_mistakes_get_one_clear_sentence(study: SymbolsView, ask: Callable[[SymbolsView], object], words: str) -> None:
    with pytest.raises(BindscopeError, match=words):
        ask(study)
