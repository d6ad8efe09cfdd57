"""Results are made once and kept by what they were made from; a run with a known mechanism gets the known verdicts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.runs.directory import Run
from bindscope.runs.results import read_result
from bindscope.studies.framework.results import KEY, Context, Library, NotTestable, Result
from bindscope.studies.framework.verify import Verification, find_study, verify
from bindscope.studies.plots.verify_page import render_verification
from studies.made_runs import make_run
from studies.test_report import Checked


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("made") / "run")


def counted(name: str = "counted", **settings) -> tuple[Result, list[int]]:
    """A result that notes the n of every time it is computed."""
    calls: list[int] = []

    def compute(context: Context) -> xr.Dataset:
        calls.append(context.n)
        drawn = context.rng.random(context.n)
        return xr.Dataset({"drawn": ("item", drawn)}, attrs={"flag": True, "nothing": None, "pair": [1, 2]})

    return Result(name, "counting", compute, n=5, **settings), calls


def library(run: Run, folder: Path, *results: Result, **settings) -> Library:
    return Library(run, results, folder, **settings)


def test_a_result_is_made_once_and_then_kept(run: Run, tmp_path: Path) -> None:
    result, calls = counted()
    first = library(run, tmp_path, result).fill("counted")
    again = library(run, tmp_path, result).fill("counted")
    assert (first.origin, again.origin, calls) == ("computed", "kept", [5])
    assert first.path == again.path == tmp_path / "counted.nc"
    xr.testing.assert_equal(first.dataset, again.dataset)


@pytest.mark.parametrize("changes", [{"n": 6}, {"seed": 1}, {"fresh": True}], ids=str)
def test_another_n_or_seed_or_a_wish_makes_it_anew(run: Run, tmp_path: Path, changes: dict) -> None:
    result, calls = counted()
    library(run, tmp_path, result).fill("counted")
    assert library(run, tmp_path, result, **changes).fill("counted").origin == "computed"
    assert len(calls) == 2


def test_a_changed_meaning_makes_it_anew(run: Run, tmp_path: Path) -> None:
    result, calls = counted()
    library(run, tmp_path, result).fill("counted")
    library(run, tmp_path, replace(result, revision=2)).fill("counted")
    assert len(calls) == 2


def test_what_a_result_reads_of_the_run_decides_its_key(tmp_path: Path) -> None:
    short = make_run(tmp_path / "short", steps=(0, 500))
    long = make_run(tmp_path / "long", steps=(0, 500, 2000))
    last, _ = counted(steps=lambda run: run.steps[-1:])
    first, _ = counted(steps=lambda run: run.steps[:1])

    def key(run: Run, result: Result) -> str:
        return library(run, tmp_path, result).key(result)

    assert key(short, first) == key(long, first)
    assert key(short, last) != key(long, last)
    evaluations, _ = counted(metrics=True)
    before = key(long, evaluations)
    long.keep_evaluation({"step": 2050, "test": {}})
    assert key(long, evaluations) != before


def test_a_result_depends_on_the_results_it_needs(run: Run, tmp_path: Path) -> None:
    base, _ = counted("base")
    total = Result("total", "adding", lambda c: xr.Dataset({"sum": c.found["base"].drawn.sum()}), needs=("base",))
    found = library(run, tmp_path, base, total, n=3)
    assert found.order(["total"]) == ["base", "total"]
    assert float(found.fill("total").dataset["sum"]) == pytest.approx(float(found.fill("base").dataset.drawn.sum()))
    assert library(run, tmp_path, base, total, n=3).fill("total").origin == "kept"
    assert library(run, tmp_path, base, total, n=4).fill("total").origin == "computed"


def test_what_cannot_be_made_gives_its_reason_and_so_does_all_that_needs_it(run: Run, tmp_path: Path) -> None:
    def refuse(context: Context) -> xr.Dataset:
        raise NotTestable("the programs are too short")

    short, after = Result("short", "", refuse), Result("after", "", lambda c: xr.Dataset(), needs=("short",))
    found = library(run, tmp_path, short, after)
    assert found.fill("after").dataset is None
    assert found.fill("after").reason == found.fill("short").reason == "the programs are too short"
    assert not list(tmp_path.iterdir())


def test_a_damaged_result_is_computed_again_and_the_damage_said(run: Run, tmp_path: Path) -> None:
    result, _calls = counted()
    path = library(run, tmp_path, result).fill("counted").path
    path.write_bytes(path.read_bytes()[:200])
    again = library(run, tmp_path, result).fill("counted")
    assert again.origin == "computed"
    assert "counted.nc is damaged" in again.note
    assert library(run, tmp_path, result).fill("counted").origin == "kept"


def test_a_result_with_the_names_of_an_earlier_version_is_computed_again(run: Run, tmp_path: Path) -> None:
    result, _calls = counted()
    path = library(run, tmp_path, result).fill("counted").path
    path.write_bytes(bytes(read_result(path).assign_attrs(names=1).to_netcdf(engine="h5netcdf")))
    assert library(run, tmp_path, result).fill("counted").origin == "computed"
    assert library(run, tmp_path, result).fill("counted").origin == "kept"


def test_folders_to_look_in_are_never_written_to(run: Run, tmp_path: Path) -> None:
    result, _calls = counted()
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    library(run, shipped, result).fill("counted")
    before = (shipped / "counted.nc").read_bytes()
    assert library(run, own, result, also_in=[shipped]).fill("counted").path == shipped / "counted.nc"
    made = library(run, own, result, also_in=[shipped], n=7).fill("counted")
    assert made.path == own / "counted.nc"
    assert (shipped / "counted.nc").read_bytes() == before


def test_what_was_finished_survives_an_interruption(run: Run, tmp_path: Path) -> None:
    first, _calls = counted("first")

    def interrupt(context: Context) -> xr.Dataset:
        raise KeyboardInterrupt

    second = Result("second", "", interrupt)
    found = library(run, tmp_path, first, second)
    found.fill("first")
    with pytest.raises(KeyboardInterrupt):
        found.fill("second")
    assert library(run, tmp_path, first).fill("first").origin == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["first.nc"]


def test_an_unknown_result_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(BindscopeError, match="Did you mean 'counted'"):
        library(run, tmp_path, counted()[0]).fill("cuonted")


@pytest.fixture(scope="module")
def verification(run: Run) -> Verification:
    study = find_study("binding")
    library = Library(run, study.results, run.path / "results", n=30, runs_directory=run.path / "none")
    return verify(library, study.claims)


@pytest.fixture(scope="module")
def mechanism(run: Run) -> Verification:
    """Its mechanism on enough pairs for intervals to lie on one side of their thresholds."""
    study = find_study("binding")
    library = Library(run, study.results, run.path / "more", n=90, runs_directory=run.path / "none")
    return verify(library, [study.find_claim(name) for name in ("VB1", "VB2", "VB3", "VB4", "VB5")])


def test_the_constructed_mechanism_is_recognised(mechanism: Verification, verification: Verification) -> None:
    for judged in mechanism.judged:
        assert judged.finding.verdict == "replicates", judged.finding.reason
    verdicts = {judged.claim.id: judged.finding.verdict for judged in verification.judged}
    assert verdicts["VB7"] == "differs"  # nothing of a heuristic is in written weights
    assert (verdicts["VB8"], verdicts["VB10"]) == ("inconclusive", "not testable")  # one seed; no positions beyond


def test_few_pairs_leave_the_mechanism_inconclusive(verification: Verification) -> None:
    verdicts = {judged.claim.id: judged.finding.verdict for judged in verification.judged}
    assert verdicts["VB3"] == "inconclusive"


def test_only_heads_of_the_mechanism_are_chosen(mechanism: Verification) -> None:
    heads = mechanism.filled["heads"].dataset
    assert set(heads.ranked_head.values.tolist()) == {0}
    assert heads.logit_difference.sel(head=1).max() == 0  # the decoy moves nothing, anywhere


def test_the_circuit_is_frozen_where_the_value_is_and_absent_before(verification: Verification) -> None:
    emergence = verification.filled["emergence"].dataset
    assert set(emergence.cell.values) == {
        "depth 1: query, L2", "depth 1: query, L3", "depth 2: rhs 2, L2", "depth 2: query, L3",
    }  # fmt: skip
    assert emergence.circuit.values.tolist() == [0, 0, 0, 1, 1]


def test_every_claim_has_a_reason_and_numbers_with_intervals(verification: Verification) -> None:
    for judged in verification.judged:
        assert re.fullmatch(r"[A-Z0-9].*[.]", judged.finding.reason, flags=re.DOTALL), judged.claim.id
        for quantity in (*judged.finding.quantities, *judged.finding.control):
            if quantity.low is not None and np.isfinite(quantity.value):
                assert quantity.low - 1e-9 <= quantity.value <= quantity.high + 1e-9, (judged.claim.id, quantity)


def test_the_verdicts_can_be_written_as_json(verification: Verification) -> None:
    mapping = json.loads(json.dumps(verification.to_mapping(), allow_nan=False))
    assert [claim["id"] for claim in mapping["claims"]] == [f"VB{number}" for number in range(1, 13)]
    assert {result["name"] for result in mapping["results"]} == set(verification.filled)


def test_all_results_are_labelled_and_keyed_in_the_run(run: Run, verification: Verification) -> None:
    made = [filled for filled in verification.filled.values() if filled.path is not None]
    assert len(made) >= 8
    for filled in made:
        stored = run.result(filled.name)
        assert stored.attrs[KEY] == filled.key
        assert stored.attrs["run"] == "made"


def test_the_page_is_sound_html_with_every_claim_its_terms_and_its_figure(verification: Verification) -> None:
    page = render_verification(verification, "bindscope verify made --n 30", {"task": {"lines": 6}})
    checked = Checked(page)
    assert len(checked.ids) == len(set(checked.ids))
    assert {f"#{judged.claim.id}" for judged in verification.judged} <= set(checked.addresses)
    assert {address[1:] for address in checked.addresses if address.startswith("#")} <= set(checked.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(checked.ids)
    assert checked.tags.count("svg") == sum(judged.has_figure for judged in verification.judged)
    assert "http" not in page
    assert "script" not in checked.tags
    for judged in verification.judged:
        for words in (judged.claim.statement, judged.claim.criterion, judged.finding.reason):
            assert words in checked.text
    assert "bindscope verify made --n 30" in checked.text


def test_colours_of_the_page_are_all_defined(verification: Verification) -> None:
    page = render_verification(verification, "", {})
    assert set(re.findall(r"var\(--([\w-]+)\)", page)) <= set(re.findall(r"--([\w-]+):", page))


@pytest.mark.parametrize("steps", [(), (2000,)], ids=["no checkpoint", "one checkpoint"])
def test_a_run_with_little_in_it_gets_verdicts_all_the_same(tmp_path: Path, steps: tuple[int, ...]) -> None:
    run = make_run(tmp_path / "run", steps, status="training")
    study = find_study("binding")
    found = verify(Library(run, study.results, run.path / "results", n=8, runs_directory=tmp_path), study.claims)
    verdicts = {judged.claim.id: judged.finding.verdict for judged in found.judged}
    assert verdicts["VB1"] == "replicates"  # its evaluations are whole
    assert verdicts["VB3"] == verdicts["VB5"] == verdicts["VB7"] == "inconclusive"  # few pairs, and what may still come
