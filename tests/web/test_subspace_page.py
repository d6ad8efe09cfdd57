"""Points against direct projections, swaps against full patching, and controls of equal rank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from fastapi.testclient import TestClient

from bindscope.cli.main import run as run_command
from bindscope.intervals import student_quantile
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.patching import patch_logits
from bindscope.measures.binding.projections import N_POINTS
from bindscope.measures.binding.subspace_pair import kept_axes, project_program, swap_pair
from bindscope.studies.binding.representation.measure import N_PAIRS, sample_halves
from bindscope.studies.binding.representation.one_pair import Kept, find_kept_subspace
from bindscope.subspaces import (
    Subspace,
    default_search,
    find_columns,
    fit_axes,
    principal_angles,
    random_subspace,
    sample_stream,
)
from bindscope.subspaces.axes import Axes, align_axes
from bindscope.tasks.binding import pair_programs, parse_program
from bindscope.web.lab import Lab, LabRun
from bindscope.web.pages.subspace import Subspaces

RUN = "binding-plain"
PROGRAM, OTHER = "c=1;d=2;a=5;b=a;#b:", "c=1;d=2;a=8;b=a;#b:"


@pytest.fixture(scope="module")
def lab(shipped_lab: Lab) -> Lab:
    return shipped_lab


@pytest.fixture(scope="module")
def client(shipped_client: TestClient) -> TestClient:
    return shipped_client


@pytest.fixture(scope="module")
def run(lab: Lab) -> LabRun:
    return lab.find(RUN)


@pytest.fixture(scope="module")
def projections(run: LabRun) -> xr.Dataset:
    return run.run.result("projections")


@pytest.fixture(scope="module")
def kept(run: LabRun) -> Kept:
    return find_kept_subspace(run.run, run.model(run.find_step("last")), "values")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def typed(text: str):
    return parse_program(text.replace(";", "\n"))


def ask(client: TestClient, operation: str, **question: object) -> dict:
    response = client.post(f"/api/live/{operation}", json={"run": RUN, "program": PROGRAM, **question})
    assert response.status_code == 200, response.text
    return response.json()


def refusal(client: TestClient, operation: str, **question: object) -> tuple[int, str]:
    response = client.post(f"/api/live/{operation}", json={"run": RUN, "program": PROGRAM, **question})
    return response.status_code, response.json()["error"]


def array(body: dict, name: str) -> np.ndarray:
    found = body["variables"][name]
    return np.array(found["values"], float).reshape([body["sizes"][dim] for dim in found["dims"]])


def test_frozen_points_of_the_last_step_equal_a_direct_projection(run: LabRun, projections: xr.Dataset) -> None:
    model = run.model(run.find_step("last"))
    _, test = sample_halves(run.run, np.random.default_rng(0), N_PAIRS // 2)["values"]
    search = default_search(model, "values")
    points = sample_stream(model, test, of="values", layer=search.layer, position=search.position).vectors[:N_POINTS]
    subspace = find_kept_subspace(run.run, model, "values").subspace
    expected = fit_axes(points, subspace, 3).coordinates(points).numpy()
    frozen = projections.sel(quality="values", kind="frozen").isel(step=-1)
    resolution = projections.attrs["resolution"]
    np.testing.assert_allclose(frozen.coordinate, expected, atol=0.51 * resolution + 1e-4)
    refitted = projections.sel(quality="values", kind="refitted").isel(step=-1)
    np.testing.assert_allclose(refitted.coordinate, expected, atol=0.51 * resolution + 1e-4)


def test_the_kept_subspace_is_that_of_the_kept_swaps(run: LabRun, projections: xr.Dataset) -> None:
    """Both results draw the same pairs, so what they measure of the last step alike is equal."""
    swaps = run.run.result("subspaces").sel(condition="found")
    last = projections.sel(kind="frozen").isel(step=-1)
    np.testing.assert_allclose(last.success, swaps.success_fraction, atol=1e-6)
    np.testing.assert_allclose(last.score, swaps.score, atol=1e-6)


def test_a_random_subspace_of_equal_rank_changes_far_fewer_answers(projections: xr.Dataset) -> None:
    last = projections.success.isel(step=-1)
    assert (last.sel(kind="frozen") > 2 * last.sel(kind="random")).all()


def test_neighbouring_refitted_axes_lie_alike(projections: xr.Dataset) -> None:
    """Turning one step's points any further towards the next step's brings nothing: the best rotation is none."""
    coordinates = projections.sel(quality="values", kind="refitted").coordinate
    for index in (-2, -6):
        before, after = (torch.from_numpy(coordinates.isel(step=at).values) for at in (index, index + 1))
        before, after = before - before.mean(0), after - after.mean(0)
        left, _, right = torch.linalg.svd(before.T @ after)
        torch.testing.assert_close(left @ right, torch.eye(3, dtype=before.dtype), atol=0.02, rtol=0)


def test_aligning_undoes_a_rotation() -> None:
    points = torch.randn(50, 8, generator=generator())
    axes = fit_axes(points, random_subspace(8, 5, generator(1)), 3)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator(2))).Q
    turned = axes.turn(turn)
    torch.testing.assert_close(turned.coordinates(points), axes.coordinates(points) @ turn, atol=1e-5, rtol=0)
    back = align_axes(turned, points, axes.coordinates(points))
    torch.testing.assert_close(back.directions, axes.directions, atol=1e-5, rtol=0)
    whole = Axes(points.mean(0), torch.eye(8))
    assert float(whole.variance_fractions(points).sum()) == pytest.approx(1, abs=1e-5)


def test_swapping_the_whole_space_equals_full_patching(run: LabRun, kept: Kept) -> None:
    model, pairs = run.model(run.find_step("last")), pair_programs(typed(PROGRAM), typed(OTHER))
    whole = Subspace(torch.eye(model.config.d_model))
    swapped = swap_pair(model, pairs, kept.search, whole.swap).probability.sel(condition="swapped")
    columns = find_columns(pairs, kept.search.position)[0]
    site = f"L{kept.search.layer}.resid_pre@{','.join(map(str, columns[columns >= 0]))}"
    logits = patch_logits(model, contrast_pairs(pairs), [site])
    np.testing.assert_allclose(swapped, logits.patched[0].detach().double().softmax(-1), atol=1e-5)
    nothing = swap_pair(model, pairs, kept.search, whole.swap_rest).probability
    np.testing.assert_allclose(nothing.sel(condition="swapped"), nothing.sel(condition="base"), atol=1e-6)


def test_controls_have_the_rank_of_what_was_found(kept: Kept) -> None:
    base, source = torch.randn(2, 4, kept.subspace.d_model, generator=generator(3))
    for seed in (0, 1):
        moved = kept.change("random", seed)(base, source) - base
        assert torch.linalg.matrix_rank(moved) == 4
        basis = torch.eye(kept.subspace.d_model)
        image = kept.change("random", seed)(torch.zeros_like(basis), basis)
        assert torch.linalg.matrix_rank(image) == kept.subspace.rank
    torch.testing.assert_close(kept.change("rest")(base, source), kept.subspace.swap(source, base))
    assert not torch.allclose(kept.change("random", 0)(base, source), kept.change("random", 1)(base, source))


def test_the_live_swap_is_the_study_s_and_beats_its_control(client: TestClient, run: LabRun, kept: Kept) -> None:
    step = run.find_step("last")
    question = {"step": step, "counterfactual": OTHER, "quality": "values"}
    found = ask(client, "swap", **question)
    expected = swap_pair(run.model(step), pair_programs(typed(PROGRAM), typed(OTHER)), kept.search, kept.subspace.swap)
    np.testing.assert_allclose(array(found, "probability"), expected.probability, atol=1e-5)
    assert found["coords"]["condition"]["values"] == ["base", "counterfactual", "swapped"]
    assert found["variables"]["success"]["values"] == [1]
    control = ask(client, "swap", **question, control="random", seed=4)
    assert control["variables"]["success"]["values"] == [0]
    assert control["provenance"]["seed"] == 4
    given: dict = {}
    exec(control["python"].replace("run.swap(", "answer = run.swap("), given)
    np.testing.assert_allclose(given["answer"].probability, array(control, "probability"), atol=1e-5)


def test_a_subspace_is_found_once_and_few_are_remembered(run: LabRun) -> None:
    remembered, last = Subspaces(most=1), run.find_step("last")
    first = remembered.find(run, last, run.model(last), "values")
    assert remembered.find(run, last, run.model(last), "values") is first
    other = remembered.find(run, last, run.model(last), "names")
    assert (other.subspace.rank, first.subspace.rank) == (26, 10)
    assert remembered.find(run, last, run.model(last), "names") is other
    again = remembered.find(run, last, run.model(last), "values")
    assert again is not first
    assert principal_angles(again.subspace, first.subspace).max() < 1e-3


@pytest.mark.parametrize("axes", ["frozen", "refitted", "random"])
def test_the_live_projection_reads_the_stream_at_the_program_s_positions(
    client: TestClient, run: LabRun, projections: xr.Dataset, axes: str
) -> None:
    step = run.run.steps[-4]
    body = ask(client, "project", step=step, quality="names", axes=axes)
    model = run.model(step)
    along = kept_axes(projections, "names", axes, step)
    expected = project_program(model, typed(PROGRAM), default_search(model, "names"), along)
    np.testing.assert_allclose(array(body, "coordinate"), expected.coordinate, atol=1e-4)
    assert body["coords"]["token"]["values"] == ["b", ":"]
    assert body["coords"]["name"]["values"] == ["b", "b"]
    assert body["coords"]["value"]["values"] == [5, 5]
    given: dict = {}
    exec(body["python"].replace("run.project(", "answer = run.project("), given)
    np.testing.assert_allclose(given["answer"].coordinate, array(body, "coordinate"), atol=1e-4)


def test_the_bodies_to_read_are_the_kept_results(client: TestClient, projections: xr.Dataset, run: LabRun) -> None:
    body = client.get(f"/api/runs/{RUN}/projections/names.json").json()
    np.testing.assert_allclose(array(body, "coordinate"), projections.sel(quality="names").coordinate, atol=1e-4)
    assert body["attrs"]["rank"] == 26
    assert set(body["coords"]) >= {"value", "name", "depth", "position", "pair", "step", "kind"}
    assert "basis" not in body["variables"]
    swaps = client.get(f"/api/runs/{RUN}/subspaces.json").json()
    np.testing.assert_allclose(
        array(swaps, "success_fraction"), run.run.result("subspaces").success_fraction, atol=1e-6
    )


def test_what_cannot_be_answered_is_refused_with_a_sentence(client: TestClient, run: LabRun) -> None:
    step = run.find_step("last")
    assert client.get(f"/api/runs/{RUN}/projections/letters.json").status_code == 404
    assert refusal(client, "swap", step=step, counterfactual=OTHER, quality="letters")[0] == 422
    status, sentence = refusal(client, "swap", step=step, counterfactual="c=1;d=2;a=5;b=d;#a:")
    assert (status, sentence) == (
        400,
        "both programs have the answer 5; change the counterfactual so that its answer differs.",
    )
    assert "equal length" in refusal(client, "swap", step=step, counterfactual="a=8;b=a;#b:")[1]
    assert refusal(client, "project", step=step + 1)[0] == 404
    assert refusal(client, "swap", step=step, counterfactual=OTHER, seed=-1)[0] == 422


def test_what_the_page_reads_is_kept_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["subspace", RUN, "--over-training", "--keep"]) == 0
    assert f"{RUN}: 200 points at 25 checkpoints, kept in" in capsys.readouterr().out
    assert run_command(["subspace", RUN, "--keep"]) != 0
    assert "--keep: keeps what --over-training measures" in capsys.readouterr().err


def test_draws_of_a_control_are_averaged_with_an_interval_over_them(client: TestClient, run: LabRun) -> None:
    """The mean of several draws is that of each asked alone; what is not drawn is swapped once."""
    pair = {"step": run.find_step("last"), "counterfactual": OTHER, "quality": "values"}
    for control in ("random", "shuffled"):
        alone = [ask(client, "swap", **pair, control=control, seed=seed) for seed in (3, 4, 5)]
        several = ask(client, "swap", **pair, control=control, seed=3, draws=3)
        each = np.array([body["variables"]["probability"]["values"] for body in alone]).reshape(3, 3, -1)
        shown = np.array(several["variables"]["probability"]["values"]).reshape(3, -1)
        np.testing.assert_allclose(shown, each.mean(0), atol=1e-6)
        half = student_quantile(2) * each[:, 2].std(0, ddof=1) / np.sqrt(3)
        low = np.array(several["variables"]["probability_low"]["values"])
        np.testing.assert_allclose(low, np.clip(each[:, 2].mean(0) - half, 0, 1), atol=1e-5)
        tops = [alone[0]["coords"]["output"]["values"][index] for index in each[:, 2].argmax(1)]
        assert several["attrs"]["n_success"] == tops.count(several["attrs"]["source_answer"])
        assert (several["attrs"]["draws"], "over draws" in several["provenance"]["interval"]) == (3, True)
        assert not np.allclose(each[0, 2], each[1, 2])  # one draw is not another
    once = ask(client, "swap", **pair, control="rest", draws=3)
    assert "probability_low" not in once["variables"]
