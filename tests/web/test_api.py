"""Whatever is asked within the description of the API, and much beyond it, gets an answer that the description allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bindscope.web.app import create_app
from bindscope.web.describe import describe_api
from bindscope.web.lab import Lab
from bindscope.web.pages import PAGES

schemathesis = pytest.importorskip("schemathesis")
checks = schemathesis.checks

PROGRAMS = ("a=5;b=a;c=3;#b:", "a=5\nb=7\nc=b\n#c:", "a=5;b=a;#b:", "a=5", "a=b;#a:", ";;;", "#:")
REAL: dict[str, tuple[Any, ...]] = {
    # values that mean something, given in place of generated ones half of the time
    "run": ("small",),
    "step": (12, 0, 5),
    "steps": ([12], [0, 12], [7]),
    "program": PROGRAMS,
    "counterfactual": PROGRAMS,
    "sites": (["L0.H0"], ["L1.mlp_out"], ["L0.resid_pre@3"], ["L9.H9"], ["L0.resid_pre@99"]),
}


@pytest.fixture(scope="module")
def api(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    lab = Lab.open([small_run], kept_in=tmp_path_factory.mktemp("kept"), read_only=[small_run])
    app = create_app(lab, hosts=("testserver",), opens_directories=True)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    choose = st.randoms(use_true_random=False)

    def with_real_values(given: Any, random: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: random.choice(REAL[name]) if name in REAL and random.random() < 0.7 else value for name, value in given.items()}

    @schema.hook("before_generate_body")  # type: ignore[misc]
    def mean_something(context: Any, strategy: Any) -> Any:
        return st.builds(with_real_values, strategy, choose)

    @schema.hook("before_generate_path_parameters")  # type: ignore[misc]
    def lead_somewhere(context: Any, strategy: Any) -> Any:
        def texts(given: Any, random: Any) -> Any:
            found = with_real_values(given, random)
            return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else found

        return st.builds(texts, strategy, choose)

    return schema


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_no_question_breaks_the_server_or_its_description(case: Any) -> None:
    response = case.call()
    case.validate_response(
        response,
        checks=(
            checks.not_a_server_error,
            checks.load_all_checks() or checks.CHECKS.get_one("status_code_conformance"),
            checks.CHECKS.get_one("content_type_conformance"),
            checks.CHECKS.get_one("response_schema_conformance"),
        ),
    )


def test_every_operation_has_a_name_of_its_own_and_says_what_can_go_wrong() -> None:
    import orjson

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
    import orjson

    described = orjson.loads(describe_api())["paths"]
    operations = [operation for page in PAGES for operation in page.operations]
    for operation in operations:
        content = described[f"/api/live/{operation.name}"]["post"]["responses"]["200"]["content"]
        assert list(content) == ["application/x-ndjson" if operation.streamed else "application/json"]
    assert any(operation.streamed for operation in operations)


def test_every_field_of_a_question_is_bounded() -> None:
    """A text has a greatest length, a list a greatest size, a number two ends or a few choices."""
    import orjson

    described = orjson.loads(describe_api())
    schemas = described["components"]["schemas"]

    def unbounded(name: str, field: dict[str, Any]) -> list[str]:
        if "$ref" in field:
            target = schemas[field["$ref"].rsplit("/", 1)[1]]
            return [found for key, inner in target.get("properties", {}).items() for found in unbounded(f"{name}.{key}", inner)]
        if "enum" in field or "const" in field or field.get("type") in ("boolean", "null"):
            return []
        if "anyOf" in field:
            return [found for choice in field["anyOf"] for found in unbounded(name, choice)]
        if field.get("type") == "array":
            return ([] if "maxItems" in field else [name]) + unbounded(f"{name}[]", field["items"])
        needed = {"string": ("maxLength",), "integer": ("minimum", "maximum"), "number": ("minimum", "maximum")}
        return [] if all(key in field for key in needed[field["type"]]) else [name]

    found = []
    for path, methods in described["paths"].items():
        for operation in methods.values():
            if "requestBody" in operation:
                found += unbounded(path, operation["requestBody"]["content"]["application/json"]["schema"])
    assert found == []
