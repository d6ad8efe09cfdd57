"""The lens of one program against the model's prediction and a direct run, and the saved lens as the run has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from bindscope.model.run import run as run_model
from bindscope.tasks.binding import parse_program
from bindscope.tasks.binding.program import VOCABULARY
from bindscope.tasks.vocabulary import show_symbol
from bindscope.web import kept
from bindscope.web.lab import Lab, Missing

PROGRAM = "c=7;a=5;b=a;d=3;#b:"


@pytest.fixture
def lab(shipped_lab: Lab) -> Lab:
    return shipped_lab


@pytest.fixture
def client(shipped_client: TestClient) -> TestClient:
    return shipped_client


def ask(client: TestClient, operation: str, **question: object) -> dict:
    response = client.post(f"/api/live/{operation}", json={"program": PROGRAM, **question})
    assert response.status_code == 200, response.text
    return response.json()


def values(body: dict, name: str) -> np.ndarray:
    return np.array(body["variables"][name]["values"]).reshape(body["sizes"]["layer"], body["sizes"]["position"])


@pytest.mark.parametrize("run", ["binding-laptop", "binding-plain"])
def test_after_the_last_layer_the_colon_reads_what_the_model_predicts(client: TestClient, lab: Lab, run: str) -> None:
    for step in (lab.find(run).run.steps[4], lab.find(run).run.steps[-1]):
        lens = ask(client, "lens", run=run, step=step)
        predicted = ask(client, "predict", run=run, steps=[step])
        probability = predicted["variables"]["probability"]["values"]
        assert values(lens, "answer")[-1, -1] == pytest.approx(probability[5], abs=1e-5)
        assert values(lens, "line_1")[-1, -1] == pytest.approx(probability[7], abs=1e-5)
        assert values(lens, "top_probability")[-1, -1] == pytest.approx(max(probability), abs=1e-5)
        output = predicted["coords"]["output"]["values"][int(np.argmax(probability))]
        assert values(lens, "top")[-1, -1] == output


def test_every_cell_is_the_unembedded_stream_of_a_plain_run(client: TestClient, lab: Lab) -> None:
    run, program = lab.find("binding-plain"), parse_program(PROGRAM.replace(";", "\n"))
    step = run.run.steps[-3]
    body, model = ask(client, "lens", run=run.name, step=step), run.run.checkpoint(step).eval()
    tokens = torch.tensor([program.tokens])
    for layer, site in enumerate(body["coords"]["site"]["values"]):
        with torch.no_grad():
            logits = model.to_logits(run_model(model, tokens, [site])[site])[0].double()  # [position, output]
        fractions = logits.softmax(-1).numpy()
        np.testing.assert_allclose(values(body, "answer")[layer], fractions[:, 5], atol=1e-5)
        np.testing.assert_allclose(values(body, "answer_logit")[layer], logits[:, 5], atol=1e-4)
        np.testing.assert_allclose(values(body, "line_1_logit")[layer], logits[:, 7], atol=1e-4)
        np.testing.assert_allclose(values(body, "entropy")[layer], -(fractions * np.log2(fractions)).sum(1), atol=1e-4)
        tops = [show_symbol(VOCABULARY.symbols[index]) for index in fractions.argmax(1)]
        assert values(body, "top")[layer].tolist() == tops
    assert "".join(body["coords"]["token"]["values"]) == program.text.replace("\n", "\\n")


def test_the_kept_lens_is_sent_as_it_is_kept(client: TestClient, lab: Lab) -> None:
    run = lab.find("binding-laptop")
    kept = run.library.fill("lens").dataset
    assert kept is not None
    body = client.get("/api/runs/binding-laptop/lens.json").json()
    assert body["coords"]["step"]["values"] == kept.step.values.tolist()
    for name in ("probability", "probability_low", "margin_high"):
        assert body["variables"][name]["dims"] == list(kept[name].dims)
        np.testing.assert_allclose(body["variables"][name]["values"], kept[name].values.ravel(), rtol=1e-6)
    assert body["provenance"]["n"] == kept.attrs["n"] > 100
    assert "bootstrap" in body["provenance"]["interval"]


@pytest.mark.parametrize("question", [{"step": 1}, {"step": -1}, {"step": 10**30}, {"step": "x"}, {}])
def test_a_checkpoint_that_is_not_there_is_refused(client: TestClient, question: dict) -> None:
    response = client.post("/api/live/lens", json={"run": "binding-laptop", "program": PROGRAM, **question})
    assert response.status_code in (404, 422)
    assert response.json()["error"]


def test_what_would_take_minutes_is_refused_with_what_makes_it(
    small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Lab.open([small_run], kept_in=tmp_path, read_only=[small_run]).find("small")
    monkeypatch.setattr(kept, "MOST_WORK", 1.0)
    for name in ("lens", "grids"):
        with pytest.raises(Missing, match="takes a while"):
            kept.kept_result(run, name)
    assert not list(tmp_path.rglob("*.nc"))
