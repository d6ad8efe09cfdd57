"""Programs over the wire: examples of the task, new ones to a wish, and predictions equal to the model's own."""

from __future__ import annotations

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.tasks.binding import BindingTask, ask_programs, parse_program
from bindscope.tasks.binding.examples import draw_examples, draw_pair
from bindscope.web.lab import Lab

RUN = "binding-laptop"
PROGRAM = "c=7;a=5;b=a;d=3;#b:"


@pytest.fixture
def lab(shipped_lab: Lab) -> Lab:
    return shipped_lab


@pytest.fixture
def client(shipped_client: TestClient) -> TestClient:
    return shipped_client


def ask(client: TestClient, operation: str, **question: object) -> dict:
    response = client.post(f"/api/live/{operation}", json={"run": RUN, **question})
    assert response.status_code == 200, response.text
    return response.json()


def test_examples_cover_every_depth_and_the_first_is_worth_patching(client: TestClient, lab: Lab) -> None:
    body = client.get(f"/api/runs/{RUN}/programs.json").json()
    task = lab.find(RUN).run.config.task
    columns = {name: labelled["values"] for name, labelled in body["coords"].items()}
    assert set(columns["depth"]) == set(range(1, task.max_depth + 1))
    assert columns["depth"][0] >= 2
    assert columns["root_line"][0] > 2
    for row, text in enumerate(columns["text"]):
        program, other = task.parse(text), task.parse(columns["counterfactual"][row])
        assert program.n_lines == other.n_lines == task.lines
        assert sum(ours != theirs for ours, theirs in zip(program.tokens, other.tokens)) == 1
        assert program.with_root_constant(other.answer) == other
        assert (program.answer, other.answer) == (columns["answer"][row], columns["counterfactual_answer"][row])
        assert columns["answer"][row] != columns["counterfactual_answer"][row]
        assert (program.depth, program.root_line) == (columns["depth"][row], columns["root_line"][row])


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("n_lines", [6, 16])
def test_a_drawn_program_is_what_was_asked_for(client: TestClient, depth: int, n_lines: int) -> None:
    free = ask(client, "sample", depth=depth, n_lines=n_lines, seed=5)["coords"]
    distractors = free["distractors"]["values"][0]
    drawn = ask(client, "sample", depth=depth, n_lines=n_lines, distractors=distractors, seed=6)["coords"]
    program = parse_program(drawn["text"]["values"][0])
    assert (program.depth, program.n_lines, len(program.distractor_chains)) == (depth, n_lines, distractors)
    assert parse_program(drawn["counterfactual"]["values"][0]).answer != program.answer
    again = ask(client, "sample", depth=depth, n_lines=n_lines, distractors=distractors, seed=6)["coords"]
    assert again == drawn
    assert ask(client, "sample", depth=depth, n_lines=n_lines, seed=7)["coords"]["text"] != free["text"]


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"depth": 5}, "questions about 16 lines have depths 1 to 4 here, not 5"),
        ({"n_lines": 17}, "programs of this task have 2 to 16 lines, not 17"),
        (
            {"depth": 3, "n_lines": 4, "distractors": 4},
            "none with 4 lines and a question of depth 3 has 4 other chains",
        ),
    ],
)
def test_a_wish_that_nothing_fits_is_refused_with_what_there_is(client: TestClient, wish: dict, sentence: str) -> None:
    response = client.post("/api/live/sample", json={"run": RUN, **wish})
    assert response.status_code == 400
    assert sentence in response.json()["error"]


@pytest.mark.parametrize(
    "task",
    [
        BindingTask(lines=2, max_depth=1),
        BindingTask(lines=3, max_depth=3, n_constants=2),
        BindingTask(lines=12, max_depth=3, held_out=0.3),
        BindingTask(lines=20, max_depth=3, n_variables=8, reassign=0.5),
    ],
)
def test_every_task_has_examples_and_pairs_that_training_could_show(task: BindingTask) -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_pair(task, rng) for _ in range(20)]
    for base, other in [*draw_examples(task, rng, 12), *drawn]:
        assert task.parse(base.text) == base
        assert base.answer != other.answer
        for program in (base, other):
            held_out = task.held_out_combinations[ord(program.query) - ord("a"), program.answer]
            assert not held_out


def test_a_task_without_pairs_says_so() -> None:
    with pytest.raises(BindscopeError, match="2 constants"):
        draw_pair(BindingTask(n_constants=1), np.random.default_rng(0))
    with pytest.raises(BindscopeError, match="no pair"):
        draw_examples(BindingTask(n_constants=1), np.random.default_rng(0), 4)


def test_predictions_are_the_model_s_own_at_every_step_asked(client: TestClient, lab: Lab) -> None:
    run = lab.find(RUN)
    steps = [run.run.steps[0], run.run.steps[-1]]
    body = ask(client, "predict", steps=steps, program=PROGRAM)
    probability = np.array(body["variables"]["probability"]["values"]).reshape(2, -1)
    for row, step in enumerate(steps):
        logits = read_answers(run.run.checkpoint(step), ask_programs([parse_program(PROGRAM.replace(";", "\n"))]))[0]
        expected = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
        np.testing.assert_allclose(probability[row], expected, atol=1e-6)
    assert body["attrs"]["answer"] == "5"
    assert body["attrs"]["line_1"] == "7"
    assert body["coords"]["output"]["values"][probability[1].argmax()] == "5"


@pytest.mark.parametrize("operation", ["predict", "lens"])
def test_a_program_the_model_cannot_read_is_refused_with_its_line(client: TestClient, operation: str) -> None:
    where = {"steps": [0]} if operation == "predict" else {"step": 0}
    for program, sentence in [
        ("a=5;b=c;#b:", "line 2: 'c' is used before it is assigned."),
        (";".join(f"{name}={index % 10}" for index, name in enumerate("abcdefghijklmnopq")) + ";#a:", "17 lines"),
    ]:
        response = client.post(f"/api/live/{operation}", json={"run": RUN, "program": program, **where})
        assert response.status_code == 400
        assert sentence in response.json()["error"]


def test_the_python_beside_an_answer_runs_and_gives_the_same(client: TestClient) -> None:
    body = ask(client, "predict", steps=[0, 3700], program=PROGRAM)
    *lines, last = body["python"].splitlines()
    names: dict = {}
    exec("\n".join(lines), names)
    answered = eval(last, names)
    np.testing.assert_allclose(
        answered.probability.values.ravel(), body["variables"]["probability"]["values"], atol=1e-6
    )


def test_the_python_beside_a_drawn_program_draws_it(client: TestClient) -> None:
    body = ask(client, "sample", depth=3, n_lines=9, seed=4)
    *lines, last = body["python"].splitlines()
    names: dict = {}
    exec("\n".join(lines), names)
    drawn = eval(last, names)
    assert drawn.text.item() == body["coords"]["text"]["values"][0]
    assert drawn.counterfactual.item() == body["coords"]["counterfactual"]["values"][0]
