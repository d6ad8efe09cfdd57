"""The model in the reader's browser against the server: the same bodies for the same questions, number by number."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.model.config import ModelConfig
from bindscope.runs.directory import Run
from bindscope.runs.locate import shipped_runs
from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from bindscope.web.pages.weights import MOST_PARAMETERS

FRONTEND = Path(__file__).parents[2] / "frontend"
ROLLDOWN = FRONTEND / "node_modules" / "rolldown" / "bin" / "cli.mjs"
TOLERANCE = 1e-4
MANY_TOKENS = 30
ROUNDED = {
    "pattern": 1.5e-4,
    **dict.fromkeys(("held", "together", "head", "attended"), 5e-4),
}  # sent with four decimals: the last may fall either way
Asked = tuple[str, dict[str, Any]]

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="the browser's engine is run with Node"),
    pytest.mark.skipif(not ROLLDOWN.is_file(), reason="the front end is not installed: npm ci in frontend/"),
]


@pytest.fixture(scope="module")
def lab(sum_run: Path) -> Lab:
    paths = [path for path in (*shipped_runs(), sum_run) if runs_in_browser(Run.open(path).config.model)]
    return Lab.open(paths, read_only=paths)


def runs_in_browser(model: ModelConfig) -> bool:
    return model.n_parameters <= MOST_PARAMETERS and not model.parallel


@pytest.fixture(scope="module")
def client(lab: Lab) -> Iterator[TestClient]:
    with TestClient(create_app(lab), base_url="http://127.0.0.1:8420") as opened:
        yield opened


@pytest.fixture(scope="module")
def questions(lab: Lab, client: TestClient) -> list[Asked]:
    """Every operation, on all runs, at three checkpoints, on programs short, long, shallow and deep, and on sums."""
    asked: list[Asked] = []
    for name, run in lab.runs.items():
        steps = [run.run.steps[0], run.run.steps[len(run.run.steps) // 2], run.run.steps[-1]]
        if run.family == "assign_add":
            asked += _ask_sums(client, name, steps)
            continue
        examples = client.get(f"/api/runs/{name}/programs.json").json()["coords"]
        drawn = list(zip(examples["text"]["values"], examples["counterfactual"]["values"]))
        short, medium = ("a=5;b=a;c=1;#b:", "a=8;b=a;c=1;#b:"), ("e=2;a=5;b=a;d=3;c=b;#c:", "e=2;a=7;b=a;d=3;c=b;#c:")
        pairs = [short, medium, drawn[-1]]
        for step, (program, counterfactual) in zip(steps, pairs):
            asked += _ask_program(name, step, program) + _ask_pair(name, step, program, counterfactual)
        program, counterfactual = pairs[0]
        asked.append(("predict", {"run": name, "steps": steps, "program": program}))
        pair = {"run": name, "program": program, "counterfactual": counterfactual}
        asked.append(("patch", {**pair, "steps": steps, "sites": ["L2.H1"]}))
        asked.append(("grid", {**pair, "step": steps[1], "direction": "denoising"}))
        other = {**pair, "step": steps[-1], "source_step": steps[1]}
        asked += [("grid", {**other, "grid": grid}) for grid in ("residual", "heads", "mlps")]
    return asked


def _ask_sums(client: TestClient, run: str, steps: list[int]) -> list[Asked]:
    texts = client.get(f"/api/runs/{run}/sums.json").json()["coords"]["text"]["values"]
    ends = {"run": run, "receiver": steps[1], "donor": steps[2], "n": 40, "seed": 0}
    parts = (
        ["QK1"],
        ["everything"],
        ["variable b", "position 14", "QK2·OV1"],
        ["pattern 1 of =", "MLP"],
        ["pattern 2"],
    )
    return [
        *(("sum", {"run": run, "steps": at, "sequence": text}) for text in texts[::3] for at in (steps, steps[1:2])),
        *(("transplant", {**ends, "parts": chosen}) for chosen in parts),
    ]


def _ask_program(run: str, step: int, program: str) -> list[Asked]:
    question = {"run": run, "step": step, "program": program}
    return [
        ("predict", {"run": run, "steps": [step], "program": program}),
        ("lens", question),
        ("attention", question),
        ("attention", {**question, "ablate": ["L0.H1", "L1.mlp_out@3"]}),
        ("ablate", question),
        ("ablate", {**question, "sites": ["L2.H1", "L3.mlp_out"], "kind": "zero"}),
    ]


def _ask_pair(run: str, step: int, program: str, counterfactual: str) -> list[Asked]:
    question = {"run": run, "program": program, "counterfactual": counterfactual}
    together = [
        ["L2.resid_pre@2"],
        ["L1.resid_post@2,6", "L3.H0", "L2.mlp_out"],
        ["embed@2", "L1.H1.z@6"],
        ["L1.H0.q", "L2.k", "L2.H1.v@2"],
        ["L0.H0.pattern", "L3.H1.scores@10"],
        ["L2.rot_q@10", "L2.H0.rot_k", "L1.post@2", "L4.pre", "L3.attn_out@6", "L3.resid_mid@9"],
        ["final"],
    ]
    grids = [("residual", "noising"), ("heads", "noising"), ("mlps", "denoising")]
    if len(program) > MANY_TOKENS:  # fewer questions, as each takes its time
        together = together[:2]
    return [
        *(("patch", {**question, "steps": [step], "sites": sites}) for sites in together),
        ("patch", {**question, "steps": [step], "sites": ["L2.H1@6"], "direction": "denoising"}),
        *(("grid", {**question, "step": step, "grid": grid, "direction": direction}) for grid, direction in grids),
        *(("moves", {**question, "step": step, "direction": direction}) for direction in ("noising", "denoising")),
    ]


@pytest.fixture(scope="module")
def ask_browser(lab: Lab, client: TestClient, questions: list[Asked], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that gives questions to the engine, which reads run.json and weights as a static copy holds them."""
    directory = tmp_path_factory.mktemp("engine")
    bundle = [str(FRONTEND / "src/engine/engine.ts"), "--format", "esm", "--file", str(directory / "engine.mjs")]
    subprocess.run(["node", str(ROLLDOWN), *bundle], cwd=FRONTEND, check=True, capture_output=True)
    for name in lab.runs:
        (directory / "api" / "runs" / name / "weights").mkdir(parents=True)
        steps = {step for _, question in questions if question["run"] == name for step in _steps_of(question)}
        bodies = ["run.json", *(["parts.json"] if lab.find(name).family == "assign_add" else [])]
        files = [*bodies, *(f"weights/{step}.safetensors" for step in sorted(steps))]
        for file in files:
            response = client.get(f"/api/runs/{name}/{file}")
            assert response.status_code == 200
            (directory / "api" / "runs" / name / file).write_bytes(response.content)

    def ask(asked: list[Asked]) -> list[dict[str, Any]]:
        (directory / "questions.json").write_text(json.dumps(asked))
        files = [directory / "engine.mjs", directory / "api", directory / "questions.json", directory / "answers.json"]
        script = Path(__file__).parent / "ask_engine.mjs"
        subprocess.run(["node", str(script), *map(str, files)], check=True, capture_output=True)
        return json.loads((directory / "answers.json").read_text())

    return ask


def test_the_browser_answers_as_the_server_does(client: TestClient, questions: list[Asked], ask_browser: Any) -> None:
    answers = ask_browser(questions)
    assert len(answers) == len(questions)
    for (operation, question), answer in zip(questions, answers):
        response = client.post(f"/api/live/{operation}", json=question)
        assert response.status_code == 200, response.text
        what = f"{operation} {question}"
        assert "error" not in answer, f"{what}: {answer.get('error')}"
        found, expected = _join(answer["pieces"]), _join([json.loads(line) for line in response.text.splitlines()])
        if operation == "moves":  # means over other programs are not in the copy
            assert set(found["variables"].pop("lost")["values"]) == {None}
            expected["variables"].pop("lost")
        _assert_same_body(found, expected, what)


def test_the_browser_refuses_in_the_words_of_the_server(client: TestClient, lab: Lab, ask_browser: Any) -> None:
    step = lab.find("binding-plain").run.steps[-1]
    pair = {"run": "binding-plain", "step": step, "program": "a=5;b=a;#b:"}
    long = ";".join(f"{letter}=1" for letter in "abcdefghijklmnopqrst") + ";#a:"
    asked: list[Asked] = [
        ("lens", {**pair, "program": "a=5;b=c;#b:"}),
        ("lens", {**pair, "program": long}),
        ("grid", {**pair, "counterfactual": "a=5;b=a;#b:"}),
        ("grid", {**pair, "counterfactual": "a=5;b=a;c=1;#b:"}),
        ("grid", {**pair, "counterfactual": "a=5;b=5;#b:"}),
        ("moves", {**pair, "counterfactual": "a=5;b=6;#b:"}),
    ]
    for (operation, question), answer in zip(asked, ask_browser(asked)):
        response = client.post(f"/api/live/{operation}", json=question)
        assert response.status_code == 400
        assert answer == {"error": response.json()["error"]}


def test_sums_are_refused_in_the_words_of_the_server(client: TestClient, ask_browser: Any) -> None:
    asked: list[Asked] = [
        ("sum", {"run": "sums", "steps": [10], "sequence": "a=1 b=2"}),
        ("sum", {"run": "sums", "steps": [10], "sequence": "a=1 a=2 | a+1"}),
        ("sum", {"run": "sums", "steps": [10], "sequence": "a=1 | a+11"}),
        ("sum", {"run": "binding-plain", "steps": [0], "sequence": "a=1 | a+1"}),
        ("predict", {"run": "sums", "steps": [10], "program": "a=5;#a:"}),
    ]
    for (operation, question), answer in zip(asked, ask_browser(asked)):
        response = client.post(f"/api/live/{operation}", json=question)
        assert response.status_code == 400
        assert answer == {"error": response.json()["error"]}


def test_what_the_browser_cannot_do_names_a_command(ask_browser: Any, lab: Lab) -> None:
    step = lab.find("binding-plain").run.steps[-1]
    question = {"run": "binding-plain", "step": step, "program": "a=5;b=a;#b:"}
    asked: list[Asked] = [
        ("ablate", {**question, "sites": ["L1.H0"], "kind": "mean"}),
        ("sample", {"run": "binding-plain"}),
        ("swap", question),
        ("lens", {**question, "run": "nobody"}),
        ("lens", {**question, "step": step + 1}),
        ("ablate", {**question, "sites": ["L9.H0"]}),
        ("ablate", {**question, "sites": ["L1.H0@99"]}),
    ]
    said = [answer["error"] for answer in ask_browser(asked)]
    assert all("bindscope " in sentence for sentence in said[:3])
    assert "no run 'nobody'" in said[3]
    assert "step" in said[4]
    assert "layers 0 to 5" in said[5]
    assert "positions 0 to 10" in said[6]


def _steps_of(question: dict[str, Any]) -> list[int]:
    """Every checkpoint that a question names."""
    single = (question.get(name) for name in ("step", "source_step", "receiver", "donor"))
    named = [*question.get("steps", ()), *single]
    return [step for step in named if step is not None]


def _join(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """A streamed body with its parts in place; every cell must have been sent."""
    body, *parts = pieces
    for part in parts:
        for name, values in part["variables"].items():
            body["variables"][name]["values"][part["at"] : part["at"] + len(values)] = values
    return body


def _assert_same_body(found: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    variables, wanted = found.pop("variables"), expected.pop("variables")
    assert found == expected, what
    assert variables.keys() == wanted.keys(), what
    for name, array in wanted.items():
        own = variables[name]
        assert (own["dims"], own["units"]) == (array["dims"], array["units"]), f"{what}: {name}"
        if any(isinstance(value, str) for value in array["values"]):
            assert own["values"] == array["values"], f"{what}: {name}"
            continue
        mine, theirs = (np.array(values, dtype=float) for values in (own["values"], array["values"]))
        tolerance = ROUNDED.get(name, TOLERANCE)
        scale = np.maximum(1, np.abs(theirs)) if name in ("logit_difference", "new_logit") else 1
        np.testing.assert_allclose(mine / scale, theirs / scale, rtol=0, atol=tolerance, err_msg=f"{what}: {name}")
