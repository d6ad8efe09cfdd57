"""Bodies about sums are the study's own numbers, and what is asked of a model is what the model itself says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.circuit import circuit_matrices
from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.neurons import fit_neuron, preactivation
from bindscope.measures.arithmetic.spikes import Spike
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run as run_model
from bindscope.web.app import create_app
from bindscope.web.lab import Lab, NotMeasured
from bindscope.web.pages.arithmetic import read_neurons

RUN, STEP = "sums", 30
SUM = "_ c=1 b=7 | b+9"


@pytest.fixture(scope="module")
def lab(sum_run: Path, small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab.open([sum_run, small_run], tmp_path_factory.mktemp("kept"), read_only=[sum_run, small_run])


@pytest.fixture(scope="module")
def client(lab: Lab) -> Iterator[TestClient]:
    with TestClient(create_app(lab), base_url="http://127.0.0.1:8420") as opened:
        yield opened


def read(client: TestClient, path: str, run: str = RUN) -> dict[str, Any]:
    response = client.get(f"/api/runs/{run}/{path}.json")
    assert response.status_code == 200, response.text
    body = response.json()
    assert body.get("absent") is None, body["absent"]
    return body


def ask(client: TestClient, operation: str, **question: Any) -> dict[str, Any]:
    response = client.post(f"/api/live/{operation}", json={"run": RUN, **question})
    assert response.status_code == 200, response.text
    return response.json()


def array(body: dict[str, Any], name: str) -> np.ndarray:
    labelled = body["variables"].get(name) or body["coords"][name]
    return np.array(labelled["values"]).reshape([body["sizes"][dim] for dim in labelled["dims"]])


def test_a_sums_attention_and_answer_are_the_models(client: TestClient, lab: Lab) -> None:
    run = lab.find(RUN)
    steps = list(run.steps[-2:])
    body = ask(client, "sum", steps=steps, sequence=SUM)
    tokens = torch.from_numpy(run.run.config.task.parse(SUM))[None]
    for index, step in enumerate(steps):
        with torch.no_grad():
            trace = run_model(run.model(step), tokens, ["L0.pattern", "L1.pattern"])
        for layer in range(2):
            found = array(body, "pattern")[index, layer]
            np.testing.assert_allclose(found, trace[f"L{layer}.pattern"][0, 0], atol=6e-5)
        fractions = trace.logits[0, -1].softmax(-1)
        np.testing.assert_allclose(array(body, "probability")[index], fractions, atol=1e-6)
    assert body["attrs"] == {"text": SUM, "answer": "5"}  # 7 + 9 modulo 11
    assert body["coords"]["value_position"]["values"] == [4, 14]


def test_a_sum_that_cannot_be_read_is_refused_with_its_column(client: TestClient) -> None:
    for text, column in (("c=1 b=7", 8), ("c=1 | b+2", 7), ("c=1 | c+11", 9)):
        response = client.post("/api/live/sum", json={"run": RUN, "steps": [STEP], "sequence": text})
        assert response.status_code == 400
        assert response.json()["error"].startswith(f"column {column}: ")


def test_programs_and_sums_do_not_mix(client: TestClient) -> None:
    asked = client.post("/api/live/sum", json={"run": "small", "steps": [12], "sequence": SUM})
    assert asked.status_code == 400
    assert "sums are for runs on assign_add" in asked.json()["error"]
    for run, name in (("small", "splits"), ("sums", "programs")):
        assert client.get(f"/api/runs/{run}/{name}.json").status_code == 404


def test_example_sums_are_of_every_split_and_have_their_answers(client: TestClient, lab: Lab) -> None:
    body, task = read(client, "sums"), lab.find(RUN).run.config.task
    texts, splits = body["coords"]["text"]["values"], body["coords"]["split"]["values"]
    assert len(set(splits)) == 9
    assert not splits[0].startswith("0")  # the first one is shown first: it has a variable to look up
    for text, answer in zip(texts, body["coords"]["answer"]["values"], strict=True):
        assert int(task.solve(task.parse(text))) == answer


def test_splits_are_those_of_the_evaluations(client: TestClient, lab: Lab) -> None:
    body = read(client, "splits")
    last = lab.find(RUN).run.metrics[-1]
    splits = body["coords"]["split"]["values"]
    np.testing.assert_allclose(
        array(body, "split_accuracy")[-1], [last[split]["accuracy"] for split in splits], atol=1e-6
    )
    halves = array(body, "half_accuracy")[-1, splits.index("1add")]
    expected = [last["1add"][half]["accuracy"] for half in body["coords"]["half"]["values"]]
    np.testing.assert_allclose(halves.astype(float), expected, atol=1e-6)


def test_spikes_are_sent_with_their_splits(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = [("1tr", "2var2"), ("1tr", "1add", "2tr", "2add"), ("1var", "2var1", "2var2")]
    spikes = [Spike(number + 1, 10 * number, 10 * number + 5, own, 0.5) for number, own in enumerate(splits)]
    monkeypatch.setattr("bindscope.studies.assign_add.learning.phases.spikes_of", lambda dataset: spikes)
    client.app.state.stored.kept._kept.clear()  # type: ignore[attr-defined]
    body = read(client, "splits")
    sent = {
        name: body["variables"][f"spike_{name}"]["values"]
        for name in ("before", "after", "size", "splits", "published")
    }
    assert sent == {
        "before": [0, 10, 20],
        "after": [5, 15, 25],
        "size": [0.5] * 3,
        "splits": [" ".join(own) for own in splits],
        "published": [0, 1, 2],  # which of the paper's two it is
    }
    client.app.state.stored.kept._kept.clear()  # type: ignore[attr-defined]


def test_the_trajectory_of_sums_was_measured_on_sums(client: TestClient) -> None:
    assert read(client, "trajectory")["provenance"]["interval"] == "95 % Wilson interval over sums"


def test_the_circuit_is_read_off_the_weights_of_its_step(client: TestClient, lab: Lab) -> None:
    run = lab.find(RUN)
    task = run.run.config.task
    for step in run.steps[-2:]:
        expected = circuit_matrices(SumForms.of(run.model(step), task), task)
        body = read(client, f"steps/{step}/circuit")
        for name in ("qk1", "variable_identity"):
            np.testing.assert_allclose(array(body, name), expected[name], atol=6e-4)
        np.testing.assert_array_equal(array(body, "allowed"), expected.allowed)
        matrix = expected.variable_identity.values
        best_other = np.where(np.eye(len(matrix)), -np.inf, matrix).max(1)
        np.testing.assert_allclose(array(body, "identity_margin"), np.diag(matrix) - best_other, atol=6e-4)


def test_neurons_are_sent_with_their_fits_and_what_each_number_gives(client: TestClient, lab: Lab) -> None:
    run = lab.find(RUN)
    forms = SumForms.of(run.model(STEP), run.run.config.task)
    body = read(client, f"steps/{STEP}/neurons")
    part, first, second = (array(body, name) for name in ("part", "first", "second"))
    for neuron in (0, 17, 31):
        values = preactivation(forms, neuron)
        np.testing.assert_allclose(part[first, neuron][:, None] + part[second, neuron], values, atol=1.1e-3)
        fit = fit_neuron(values)
        assert array(body, "frequency")[neuron] == fit.frequency
        assert array(body, "explained_variance")[neuron] == pytest.approx(fit.explained_variance, abs=6e-4)


def test_neurons_of_numbers_that_are_no_circle_are_said_to_be_absent(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lab.find(RUN)
    task = replace(run.run.config.task, operator="symmetric", modulus=6)
    with pytest.raises(BindscopeError, match="no circle") as refused:
        CyclicNumbers.of(task)
    monkeypatch.setattr(CyclicNumbers, "of", Mock(side_effect=refused.value))
    with pytest.raises(NotMeasured, match=f"{RUN}: elements of a symmetric group"):
        read_neurons(lab, run, STEP)


def test_transplanting_everything_gives_the_donor_and_nothing_the_receiver(client: TestClient, lab: Lab) -> None:
    steps = lab.find(RUN).steps
    ends = {"receiver": steps[0], "donor": steps[-1], "n": 30, "seed": 3}
    whole = array(ask(client, "transplant", parts=["everything"], **ends), "accuracy")  # [condition, split]
    none = array(ask(client, "transplant", parts=["nothing"], **ends), "accuracy")
    np.testing.assert_array_equal(whole[1], whole[2])
    np.testing.assert_array_equal(none[1], none[0])
    np.testing.assert_array_equal(whole[[0, 2]], none[[0, 2]])


def test_a_transplant_is_measured_on_the_splits_of_its_seed(client: TestClient, lab: Lab) -> None:
    run = lab.find(RUN)
    body = ask(client, "transplant", receiver=10, donor=STEP, parts=["QK1", "MLP"], n=40, seed=5)
    splits = run.run.config.task.sample_evaluation(np.random.default_rng(5), 40)
    expected = [
        (read_answers(run.model(10), split).argmax(1) == split.targets[:, 0]).mean() for split in splits.values()
    ]
    np.testing.assert_allclose(array(body, "accuracy")[0], expected, atol=1e-6)
    assert body["attrs"]["parts"] == "QK1 + MLP"
    assert "--from 30 --to 10 --part 'QK1 + MLP' --n 40 --seed 5" in body["command"]
    assert (array(body, "accuracy_low") <= array(body, "accuracy")).all()


def test_a_part_that_does_not_exist_is_refused(client: TestClient) -> None:
    question = {"run": RUN, "receiver": 10, "donor": STEP, "parts": ["QK9"]}
    response = client.post("/api/live/transplant", json=question)
    assert response.status_code == 400
    assert "there is no part 'QK9'" in response.json()["error"]


def test_the_parts_cover_all_weights_of_the_model(client: TestClient, lab: Lab) -> None:
    body = read(client, "parts")
    named = set(body["variables"]["region_tensor"]["values"]) - {"*"}
    assert named == set(lab.find(RUN).model(STEP).state_dict())


def test_progress_is_the_kept_result(client: TestClient, lab: Lab) -> None:
    kept = lab.find(RUN).library.fill("progress").dataset
    assert kept is not None
    body = read(client, "progress")
    name = "attn_l1_num_to_prev"
    np.testing.assert_allclose(array(body, name), kept[name], atol=1e-6)
    assert body["coords"]["step"]["values"] == list(lab.find(RUN).steps)
    assert f"{name}_low" in body["variables"]


def test_a_run_on_sums_has_the_mean_of_its_splits_as_accuracy(client: TestClient, lab: Lab) -> None:
    summary = next(run for run in client.get("/api/runs.json").json()["runs"] if run["name"] == RUN)
    last = lab.find(RUN).run.metrics[-1]
    assert summary["accuracy"] == pytest.approx(
        np.mean([split["accuracy"] for split in last.values() if isinstance(split, dict) and "accuracy" in split])
    )


def test_the_claims_of_a_run_on_sums_are_those_of_its_study(client: TestClient) -> None:
    body = read(client, "claims")
    assert all(claim.startswith("AA") for claim in body["coords"]["claim"]["values"])


def test_score_terms_are_the_kept_result_and_name_the_variable_that_rises(client: TestClient, lab: Lab) -> None:
    kept = lab.find(RUN).library.fill("score_terms").dataset
    assert kept is not None
    body = read(client, "scores")
    assert body["variables"]["term"]["dims"] == ["step", "variable", "operand", "query_part", "key_part"]
    np.testing.assert_allclose(array(body, "term"), kept.term, atol=6e-4)
    np.testing.assert_allclose(array(body, "last_position_to_variable"), kept.last_position_to_variable, atol=6e-4)
    assert set(body["variables"]) == {"term", "last_position_to_variable"}  # the maps over all tokens stay out
    rise = kept.term.sum(("query_part", "key_part")).sel(step=STEP) - kept.term.sum(("query_part", "key_part")).isel(
        step=0
    )
    assert body["attrs"] == {"variable": str(rise.max("operand").idxmax("variable").item())}  # without a spike
    assert body["command"] == f"bindscope figure {RUN} score-terms"
