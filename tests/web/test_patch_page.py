"""Patching over the wire equals patching in Python, part by part and as a whole; what cannot be patched is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.grids import head_grid, mlp_grid, position_grid, residual_grid
from bindscope.interventions.metrics import METRICS
from bindscope.interventions.outcome import measure_outcomes
from bindscope.measures.binding.algorithm.reading import read_algorithm
from bindscope.measures.binding.patching_live import empty_grid, stream_grid
from bindscope.model.run import run as run_model
from bindscope.studies.binding.mechanism.measure import sample_pairs
from bindscope.studies.framework.measuring import N_BITS, round_bits
from bindscope.tasks.binding import named_positions, pair_programs, parse_program
from bindscope.web.lab import Lab
from bindscope.web.live import Worker
from bindscope.web.pages.patch import PAGE

RUN, LAST, EARLIER = "binding-laptop", 3700, 1900
PROGRAM, COUNTERFACTUAL = "c=7;d=3;a=5;b=a;e=b;#e:", "c=7;d=3;a=8;b=a;e=b;#e:"
GRIDS = {"residual": residual_grid, "heads": head_grid, "mlps": mlp_grid}


@pytest.fixture
def lab(shipped_lab: Lab) -> Lab:
    return shipped_lab


@pytest.fixture
def client(shipped_client: TestClient) -> TestClient:
    return shipped_client


def contrast(direction: str = "noising") -> Contrast:
    programs = (parse_program(text.replace(";", "\n")) for text in (PROGRAM, COUNTERFACTUAL))
    return contrast_pairs(pair_programs(*programs), direction)  # type: ignore[arg-type]


def pair(**others: object) -> dict[str, object]:
    return {"run": RUN, "program": PROGRAM, "counterfactual": COUNTERFACTUAL, **others}


def stream(client: TestClient, **others: object) -> tuple[dict, list[dict]]:
    response = client.post("/api/live/grid", json=pair(step=LAST, **others))
    assert response.status_code == 200, response.text
    first, *parts = map(json.loads, response.text.splitlines())
    return first, parts


def join(body: dict, parts: list[dict], name: str) -> np.ndarray:
    """The values of a streamed variable in the shape of its axes."""
    labelled = body["variables"][name]
    values = np.array([np.nan if value is None else value for value in labelled["values"]])
    for part in parts:
        values[part["at"] : part["at"] + len(part["variables"][name])] = part["variables"][name]
    return values.reshape([body["sizes"][dim] for dim in labelled["dims"]])


@pytest.mark.parametrize("direction", ["noising", "denoising"])
@pytest.mark.parametrize("grid", GRIDS)
def test_the_parts_of_a_live_grid_are_the_whole_grid(client: TestClient, lab: Lab, grid: str, direction: str) -> None:
    body, parts = stream(client, grid=grid, direction=direction)
    expected = GRIDS[grid](lab.find(RUN).model(LAST), contrast(direction)).isel(pair=0)
    assert all(value is None for value in body["variables"]["success"]["values"])
    for name in METRICS:
        wanted = expected[name].transpose(*body["variables"][name]["dims"])
        np.testing.assert_allclose(join(body, parts, name), wanted, atol=1e-5)


def test_every_cell_is_sent_once(client: TestClient) -> None:
    body, parts = stream(client, grid="residual")
    sent = [index for part in parts for index in range(part["at"], part["at"] + len(part["variables"]["kl"]))]
    assert sorted(sent) == list(range(body["sizes"]["position"] * body["sizes"]["layer"]))


def test_columns_that_are_wanted_first_come_first_and_change_nothing(lab: Lab) -> None:
    model, asked = lab.find(RUN).model(LAST), contrast()
    body = empty_grid(model, asked, "residual")
    grids = []
    for first in ((), (22, 14, 18)):
        values = np.full(body.sizes["position"] * body.sizes["layer"], np.nan, np.float32)
        parts = list(stream_grid(model, asked, "residual", first=first))
        for part in parts:
            values[part.at : part.at + len(part.values["kl"])] = part.values["kl"]
        grids.append(values)
        if first:
            begun = sorted(part.at // body.sizes["layer"] for part in parts[1 : 1 + len(first)])
            assert begun == sorted(first)
            assert parts[0].at == 0
            assert not parts[0].values["kl"].any()  # what is before the first difference is known already
    np.testing.assert_allclose(grids[0], grids[1], atol=1e-5)
    assert np.isfinite(grids[0]).all()


def test_a_live_cell_equals_a_run_of_the_model_with_that_one_change(client: TestClient, lab: Lab) -> None:
    model, pairs = lab.find(RUN).model(LAST), contrast()
    body, parts = stream(client, grid="residual")
    moved = join(body, parts, "logit_difference")
    for position, layer in [(10, 1), (14, 3), (18, 2), (22, 4)]:
        site = f"L{layer}.resid_pre@{position}"
        with torch.no_grad():
            source = run_model(model, pairs.source, [site])
            base = run_model(model, pairs.base).logits[:, pairs.at]
            changed = run_model(model, pairs.base, write={site: source[site]}).logits[:, pairs.at]
        outcome = measure_outcomes(changed, base, source.logits[:, pairs.at], pairs)
        assert moved[position, layer] == pytest.approx(float(outcome["logit_difference"][0]), abs=1e-4)


def test_tokens_and_answers_are_those_of_the_program_that_is_run(client: TestClient) -> None:
    for direction, text, answers in [("noising", PROGRAM, ("5", "8")), ("denoising", COUNTERFACTUAL, ("8", "5"))]:
        body, _ = stream(client, direction=direction)
        assert "".join(body["coords"]["token"]["values"]).replace("\\n", ";") == text
        assert (body["attrs"]["base_answer"], body["attrs"]["source_answer"]) == answers


def test_patching_the_whole_stream_gives_the_counterfactuals_prediction(client: TestClient) -> None:
    sites = [f"L0.resid_pre@{position}" for position in range(23)]
    body = client.post("/api/live/patch", json=pair(steps=[EARLIER, LAST], sites=sites)).json()
    shape = [body["sizes"][dim] for dim in body["variables"]["probability"]["dims"]]
    fractions = np.array(body["variables"]["probability"]["values"]).reshape(shape)  # [step, condition, output]
    np.testing.assert_allclose(fractions[:, 2], fractions[:, 1], atol=1e-6)
    np.testing.assert_allclose(fractions.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(body["variables"]["logit_difference"]["values"], 1, atol=1e-4)
    alone = client.post("/api/live/predict", json={"run": RUN, "steps": [LAST], "program": COUNTERFACTUAL}).json()
    np.testing.assert_allclose(fractions[1, 1], alone["variables"]["probability"]["values"], atol=1e-6)


@pytest.mark.parametrize("source_step", [None, EARLIER])
def test_a_patched_cell_has_the_numbers_of_the_grid(client: TestClient, source_step: int | None) -> None:
    body, parts = stream(client, grid="residual", source_step=source_step)
    question = pair(steps=[LAST], sites=["L3.resid_pre@14"], source_step=source_step)
    patched = client.post("/api/live/patch", json=question).json()
    for name in METRICS:
        alone = patched["variables"][name]["values"][0]
        assert alone == pytest.approx(join(body, parts, name)[14, 3], abs=1e-4)


def test_a_position_can_be_named(client: TestClient) -> None:
    answers = [
        client.post("/api/live/patch", json=pair(steps=[LAST], sites=[site])).json()["variables"]["kl"]["values"]
        for site in ("L2.resid_pre@rhs 2", "L2.resid_pre@14", "L2.resid_pre@18")
    ]
    assert answers[0] == answers[1] != answers[2]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sites": ["L9.resid_pre@3"]}, "layers 0 to 4"),
        ({"sites": ["L2.resid_pre@999"]}, "positions 0 to 22"),
        ({"sites": ["L2.nothing"]}, "nothing"),
        ({"sites": ["../../etc"]}, "expected the form"),
        ({"sites": ["L1.H0", "L1.H0"]}, "twice"),
        ({"counterfactual": PROGRAM}, "same program"),
        ({"counterfactual": "a=1;b=a;#b:"}, "equal length"),
        ({"counterfactual": PROGRAM.replace("c=7", "c=9")}, "both programs have the answer 5"),
        ({"program": "a=q;#a:"}, "line 1"),
    ],
)
def test_what_cannot_be_patched_is_refused_with_a_sentence(
    client: TestClient, change: dict[str, object], sentence: str
) -> None:
    response = client.post("/api/live/patch", json=pair(**{"steps": [LAST], "sites": ["L1.H0"], **change}))
    assert response.status_code == 400
    assert sentence in response.json()["error"]


def test_questions_are_bounded(client: TestClient) -> None:
    many = [f"L0.resid_pre@{position}" for position in range(65)]
    for change in ({"sites": many}, {"sites": []}, {"sites": ["x" * 41]}, {"steps": []}, {"more": 1}):
        question = pair(**{"steps": [LAST], "sites": ["L1.H0"], **change})
        assert client.post("/api/live/patch", json=question).status_code == 422
    assert client.post("/api/live/patch", json=pair(steps=[12], sites=["L1.H0"])).status_code == 404
    assert client.post("/api/live/grid", json=pair(step=LAST, source_step=12)).status_code == 404


def test_another_source_step_is_another_answer(lab: Lab) -> None:
    operation, worker = PAGE.operations[0], Worker(lab)
    keys = {
        worker._key(operation, operation.read(operation.request.model_validate(pair(step=LAST, source_step=step))))
        for step in (None, EARLIER, LAST)
    }
    worker.close()
    assert len(keys) == 3


def test_mean_grids_are_means_over_the_studys_pairs(client: TestClient, lab: Lab) -> None:
    run = lab.find(RUN)
    body = client.get(f"/api/runs/{RUN}/grid-chain.json").json()
    pairs = sample_pairs(run.run, np.random.default_rng(0), body["provenance"]["n"])
    positions = {name: column for name, column in named_positions(pairs).items() if name in ("rhs 2", "colon")}
    expected = position_grid(run.model(LAST), contrast_pairs(pairs), positions).mean("pair")
    values = join(body, [], "success")[body["coords"]["step"]["values"].index(LAST), 0]  # [layer, position]
    for name in positions:
        position = body["coords"]["position"]["values"].index(name)
        np.testing.assert_allclose(values[:, position], expected.success.sel(position=name), rtol=2**-N_BITS, atol=1e-4)


def test_mean_grids_cover_every_kept_checkpoint_with_intervals(client: TestClient, lab: Lab) -> None:
    for grid in ("chain", "heads"):
        body = client.get(f"/api/runs/{RUN}/grid-{grid}.json").json()
        assert body["coords"]["step"]["values"] == list(lab.find(RUN).run.steps)
        for name in METRICS:
            low, mean, high = (join(body, [], f"{name}{end}") for end in ("_low", "", "_high"))
            known = np.isfinite(mean)
            assert known.any()
            assert (low[known] <= mean[known] + 1e-3).all()
            assert (mean[known] <= high[known] + 1e-3).all()


def test_rounding_to_bits_is_near_and_keeps_what_is_missing() -> None:
    values = np.random.default_rng(0).normal(size=1000) * 100
    assert (np.abs(round_bits(values) - values) <= np.abs(values) * 2.0**-N_BITS).all()
    assert np.isnan(round_bits(np.array([np.nan]))).all()
    np.testing.assert_array_equal(round_bits(np.arange(65) / 64), (np.arange(65) / 64).astype(np.float32))


def test_the_algorithm_is_what_its_results_say_at_every_tracked_checkpoint(lab: Lab, client: TestClient) -> None:
    body = client.get(f"/api/runs/{RUN}/algorithm.json").json()
    assert not body.get("absent"), body["absent"]
    library = lab.find(RUN).library
    steps = library.fill("algorithm_steps").dataset
    last = read_algorithm(library.fill("algorithm").dataset)
    column = {name: body["coords"][name]["values"] for name in ("reading_step", "algorithm", "arrow_step", "source")}
    assert sorted(set(column["reading_step"])) == steps.step.values.tolist()
    named = [name for step, name in zip(column["reading_step"], column["algorithm"]) if step == LAST]
    assert named == [reading.algorithm for reading in last]
    drawn = [source for step, source in zip(column["arrow_step"], column["source"]) if step == LAST]
    assert drawn == [arrow.source for reading in last for arrow in reading.arrows]


def test_the_grid_by_depth_is_what_vb3_is_judged_on(lab: Lab, client: TestClient) -> None:
    body = client.get(f"/api/runs/{RUN}/grid-depths.json").json()
    kept = lab.find(RUN).library.fill("chain").dataset
    values = join(body, [], "success")
    np.testing.assert_allclose(values, kept.success.values, atol=1e-4)
    assert body["variables"]["success"]["dims"] == list(kept.success.dims)
    assert body["provenance"]["step"] == int(kept.attrs["step"])
