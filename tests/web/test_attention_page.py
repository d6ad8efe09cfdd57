"""Attention and ablation over the wire equal the model's own, and taking nothing away changes nothing."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from bindscope.interventions.ablation import ablate_together
from bindscope.measures.binding.one_program import N_REFERENCE, other_programs
from bindscope.model.run import run as run_model
from bindscope.questions.pairs import draw_pairs
from bindscope.tasks.binding import ask_programs, parse_program
from bindscope.web.lab import Lab

RUN, STEP = "binding-laptop", 3700
PROGRAM = "c=7;d=3;a=5;b=a;e=b;#e:"
LONGEST = "n=0;j=0;r=3;w=r;z=1;f=w;a=f;v=f;c=0;d=f;h=f;k=f;g=6;b=f;e=z;x=0;#v:"


@pytest.fixture
def lab(shipped_lab: Lab) -> Lab:
    return shipped_lab


@pytest.fixture
def client(shipped_client: TestClient) -> TestClient:
    return shipped_client


def ask(client: TestClient, operation: str, **question: object) -> tuple[dict, np.ndarray]:
    response = client.post(f"/api/live/{operation}", json={"run": RUN, "step": STEP, "program": PROGRAM, **question})
    assert response.status_code == 200, response.text
    body = response.json()
    (labelled,) = body["variables"].values()
    return body, np.array(labelled["values"]).reshape([body["sizes"][dim] for dim in labelled["dims"]])


def test_patterns_are_the_models_and_their_rows_sum_to_one(client: TestClient, lab: Lab) -> None:
    body, pattern = ask(client, "attention")  # [layer, head, query, key]
    tokens = torch.tensor([parse_program(PROGRAM.replace(";", "\n")).tokens])
    with torch.no_grad():
        trace = run_model(lab.find(RUN).model(STEP), tokens, [f"L{layer}.pattern" for layer in range(5)])
    for layer in range(5):
        np.testing.assert_allclose(pattern[layer], trace[f"L{layer}.pattern"][0], atol=6e-5)
    np.testing.assert_allclose(pattern.sum(-1), 1, atol=5e-5 * pattern.shape[-1])
    assert (pattern[..., *np.triu_indices(pattern.shape[-1], 1)] == 0).all()
    assert "".join(body["coords"]["token"]["values"]).replace("\\n", ";") == PROGRAM


def test_ablating_nothing_changes_nothing(client: TestClient) -> None:
    _, fractions = ask(client, "ablate", sites=[])
    np.testing.assert_array_equal(fractions[0], fractions[1])
    np.testing.assert_array_equal(ask(client, "attention", ablate=[])[1], ask(client, "attention")[1])


@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_an_ablated_answer_is_that_of_ablate_together(client: TestClient, lab: Lab, kind: str) -> None:
    sites, run = ["L0.H0", "L2.mlp_out"], lab.find(RUN)
    body, fractions = ask(client, "ablate", sites=sites, kind=kind)
    batch = ask_programs([parse_program(PROGRAM.replace(";", "\n"))])
    reference = other_programs(run.run.config.task, 5) if kind == "mean" else None  # type: ignore[arg-type]
    expected = ablate_together(run.model(STEP), batch, sites, kind, reference=reference)  # type: ignore[arg-type]
    answer = int(body["attrs"]["answer"])
    assert np.log(fractions[0, answer]) == pytest.approx(float(expected.base_log_probability[0]), abs=1e-4)
    assert np.log(fractions[1, answer]) == pytest.approx(float(expected.log_probability[0]), abs=1e-3)
    assert fractions[1].argmax() == int(expected.answer[0])


def test_patterns_below_an_ablated_head_stay_and_those_above_change(client: TestClient) -> None:
    (_, whole), (_, changed) = ask(client, "attention"), ask(client, "attention", ablate=["L2.H1"], kind="zero")
    np.testing.assert_array_equal(whole[:3], changed[:3])
    assert np.abs(whole[3:] - changed[3:]).max() > 1e-3


def test_the_mean_is_taken_over_programs_of_the_same_length(lab: Lab) -> None:
    for n_lines in (1, 2, 5, 16):
        reference = other_programs(lab.find(RUN).run.config.task, n_lines)  # type: ignore[arg-type]
        assert reference.tokens.shape == (N_REFERENCE, 4 * n_lines + 3)


def test_the_longest_program_of_the_run_is_small_to_send(client: TestClient) -> None:
    response = client.post("/api/live/attention", json={"run": RUN, "step": STEP, "program": LONGEST})
    assert len(gzip.compress(response.content, 5)) < 400_000


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"sites": ["L2.H9"]}, "heads 0 to 3"),
        ({"sites": ["nonsense?"]}, "expected the form"),
        ({"program": "a=1;b=c;#b:"}, "line 2"),
    ],
)
def test_what_cannot_be_ablated_is_refused_with_a_sentence(
    client: TestClient, question: dict[str, object], sentence: str
) -> None:
    asked = {"run": RUN, "step": STEP, "program": PROGRAM, **question}
    response = client.post("/api/live/ablate", json=asked)
    assert response.status_code == 400
    assert sentence in response.json()["error"]


def test_the_python_of_a_body_runs_and_gives_the_same(client: TestClient) -> None:
    body, fractions = ask(client, "ablate", sites=["L1.H0"], kind="zero")
    *lines, wanted = body["python"].splitlines()
    scope: dict[str, object] = {}
    exec("\n".join(lines), scope)
    np.testing.assert_allclose(eval(wanted, scope).probability, fractions, atol=1e-6)


def test_heads_ablated_by_depth_and_hop_are_the_kept_result(client: TestClient, lab: Lab) -> None:
    kept = lab.find(RUN).library.fill("hops").dataset
    assert kept is not None
    body = client.get(f"/api/runs/{RUN}/ablations.json").json()

    def array(name: str) -> np.ndarray:
        labelled = body["variables"][name]
        values = np.array([np.nan if value is None else value for value in labelled["values"]])
        return values.reshape([body["sizes"][dim] for dim in labelled["dims"]])

    assert body["variables"]["lost"]["dims"] == ["ablated_at", "layer", "head", "depth"]
    for name in ("accuracy", "accuracy_low", "drop"):
        np.testing.assert_allclose(array(name), kept[name], atol=6e-5)
    whole = kept.base_accuracy.values[:, None, None, :]
    np.testing.assert_allclose(array("lost"), whole - kept.accuracy.values, atol=6e-5)
    assert np.isnan(array("lost")[1, :, :, 0]).all()  # a chain of depth 1 has no second line
    assert np.nansum(array("n")[0]) == kept.attrs["n_programs"]
    assert body["command"] == f"bindscope figure {RUN} ablations"


def numbers(body: dict, name: str) -> np.ndarray:
    labelled = body["variables"][name]
    return np.array(labelled["values"], float).reshape([body["sizes"][dim] for dim in labelled["dims"]])


def test_every_head_in_turn_and_a_set_together_lose_what_ablating_them_loses(client: TestClient, lab: Lab) -> None:
    asked = {"run": RUN, "step": STEP, "kind": "mean", "n": 24, "seed": 1, "first_root_line": 3}
    each, together = (
        client.post("/api/live/ablations", json={**asked, "sites": sites}).json() for sites in ([], ["L1.H0", "L2.H1"])
    )
    run = lab.find(RUN)
    programs = draw_pairs(run.run.config.task, 24, None, 3, 1).pairs.base  # type: ignore[arg-type]
    depths = each["coords"]["depth"]["values"]
    for body, sites in ((each, ["L2.H1"]), (together, ["L1.H0", "L2.H1"])):
        found = ablate_together(run.model(STEP), programs, sites, "mean")
        lost, accuracy = numbers(body, "lost"), numbers(body, "accuracy")
        if body is each:
            lost, accuracy = lost[2, 1], accuracy[2, 1]
        for row, depth in enumerate(depths):
            of = found.depth.values == depth
            expected = (found.base_margin - found.margin).values[of].mean()
            assert lost[row] == pytest.approx(expected, abs=2e-3)
            assert accuracy[row] == pytest.approx(found.correct.values[of].mean(), abs=1e-4)
    assert each["command"].startswith(f"bindscope ablate {RUN}")
    assert (numbers(each, "lost_low") <= numbers(each, "lost_high")).all()
    assert client.post("/api/live/ablations", json={**asked, "n": 401, "sites": []}).status_code == 422


@pytest.mark.parametrize("step", [True, "3700", 3700.5])
def test_what_is_no_whole_number_is_no_step(client: TestClient, step: object) -> None:
    asked = {"run": RUN, "step": step, "program": PROGRAM, "sites": [], "kind": "zero"}
    assert client.post("/api/live/ablate", json=asked).status_code == 422
