"""What the browser's reading of templates and its kernel are checked against is what Python says today."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from bindscope.web import kernel_cases, template_cases

FRONTEND = Path(__file__).parents[2] / "frontend" / "src"


def test_the_committed_templates_are_what_python_says_of_them() -> None:
    made = template_cases.encode_cases()
    committed = (FRONTEND / "templates" / "cases.json").read_bytes()
    assert committed == made, "run 'python -m bindscope.web.template_cases frontend/src/templates/cases.json'"


def test_the_committed_kernels_are_what_python_estimates() -> None:
    made, committed = kernel_cases.make_cases(), orjson.loads((FRONTEND / "kernel" / "cases.json").read_bytes())
    for new, old in zip(made["kernels"], committed["kernels"], strict=True):
        assert (list(new["templates"]), new["verdict"]) == (old["templates"], old["verdict"])
        assert new["kernel"] == pytest.approx(old["kernel"], rel=1e-4, abs=1e-9)
    for new, old in zip(made["activations"], committed["activations"], strict=True):
        for found, known in zip(new["values"], old["values"], strict=True):
            assert found == pytest.approx(known, abs=1e-8)
    assert made["numbers"] == committed["numbers"]
