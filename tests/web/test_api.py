"""Whatever is asked within the description of the API, and much beyond it, gets an answer that the description allows."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bindscope.web.app import create_app
from bindscope.web.describe import describe_api
from bindscope.web.lab import Lab
from bindscope.web.pages import PAGES

schemathesis = pytest.importorskip("schemathesis")
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import CHECKS, load_all_checks  # noqa: E402

load_all_checks()
CHECKED = [
    CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    )
]
N_EXAMPLES = 15  # questions to each operation

PROGRAMS = (
    "a=5;b=a;c=3;#b:",
    "a=7;b=a;c=3;#b:",
    "a=5;b=a;c=8;#b:",
    "a=5\nb=7\nc=b\n#c:",
    "a=5;b=a;#b:",
    "a=5",
    "a=b;#a:",
    ";;;",
    "#:",
)
REAL: dict[str, tuple[Any, ...]] = {
    # values that mean something, given in place of generated ones most of the time
    "run": ("small",),
    "step": (12, 12, 0, 5),
    "source_step": (None, None, 8),
    "steps": ([12], [0, 12], [7]),
    "program": PROGRAMS,
    "counterfactual": PROGRAMS,
    "templates": (["AA", "AB"], ["AB", "Ax"], ["ABA", "A'+1'B"], ["AA", "BB"], ["A", "AB"], ["'"]),
    "experiment": ("copy", "width"),
    "task": ("aba-abb", "copy"),
    "sites": (["L0.H0"], ["L1.mlp_out"], ["L0.resid_pre@3"], ["L9.H9"], ["L0.resid_pre@99"]),
}


@pytest.fixture(scope="module")
def api(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    lab = Lab.open([small_run], kept_in=tmp_path_factory.mktemp("kept"), read_only=[small_run])
    app = create_app(lab, hosts=("testserver",), opens_directories=True)
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


def with_real_values(given: Any, random: Random) -> Any:
    if not isinstance(given, dict):
        return given
    real = {name: random.choice(REAL[name]) for name in given if name in REAL and random.random() < 0.85}
    return {**given, **real}


def list_operations() -> list[str]:
    paths = orjson.loads(describe_api())["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize("label", list_operations())
def test_no_question_breaks_the_server_or_its_description(label: str, api: Any) -> None:
    method, path = label.split()
    operation = api[path][method]
    valid, invalid = (
        operation.as_strategy(generation_mode=mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )

    @settings(
        max_examples=N_EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )  # fmt: skip
    @given(case=valid | invalid, random=st.randoms(use_true_random=False))
    def ask(case: Any, random: Random) -> None:
        case.body = with_real_values(case.body, random)
        known = with_real_values(case.path_parameters or {}, random)
        case.path_parameters = {name: str(value) for name, value in known.items()}
        response = case.call(timeout=600)  # a busy machine is no failure
        case.validate_response(response, checks=CHECKED)

    ask()


def test_every_operation_has_a_name_of_its_own_and_says_what_can_go_wrong() -> None:
    described = orjson.loads(describe_api())
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        problems = {status: answer for status, answer in operation["responses"].items() if status != "200"}
        assert {"400", "403", "404", "421", "422"} <= set(problems)
        for answer in problems.values():
            assert answer["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")


def test_streamed_answers_are_described_as_lines() -> None:
    described = orjson.loads(describe_api())["paths"]
    operations = [operation for page in PAGES for operation in page.operations]
    for operation in operations:
        content = described[f"/api/live/{operation.name}"]["post"]["responses"]["200"]["content"]
        assert list(content) == ["application/x-ndjson" if operation.streamed else "application/json"]
    assert any(operation.streamed for operation in operations)


def test_every_field_of_a_question_is_bounded() -> None:
    """A text has a greatest length, a list a greatest size, a number two ends or a few choices."""
    described = orjson.loads(describe_api())
    schemas = described["components"]["schemas"]

    def unbounded(name: str, field: dict[str, Any]) -> list[str]:
        if "$ref" in field:
            target = schemas[field["$ref"].rsplit("/", 1)[1]]
            return [
                found
                for key, inner in target.get("properties", {}).items()
                for found in unbounded(f"{name}.{key}", inner)
            ]
        if "enum" in field or "const" in field or field.get("type") in ("boolean", "null"):
            return []
        if "anyOf" in field:
            return [found for choice in field["anyOf"] for found in unbounded(name, choice)]
        if field.get("type") == "array":
            return ([] if "maxItems" in field else [name]) + unbounded(f"{name}[]", field["items"])
        if field["type"] == "string":
            return [] if "maxLength" in field else [name]
        return (
            []
            if {"minimum", "exclusiveMinimum"} & set(field) and {"maximum", "exclusiveMaximum"} & set(field)
            else [name]
        )

    found = []
    for path, methods in described["paths"].items():
        for operation in methods.values():
            if "requestBody" in operation:
                found += unbounded(path, operation["requestBody"]["content"]["application/json"]["schema"])
    assert found == []
