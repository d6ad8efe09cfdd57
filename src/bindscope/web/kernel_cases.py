"""Kernels of templates as Python estimates them, for the browser's own estimates to be checked against.

python -m bindscope.web.kernel_cases frontend/src/kernel/cases.json
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bindscope.theory.kernel import KernelSettings
from bindscope.theory.kernel_activation import ACTIVATIONS, find_activation
from bindscope.theory.kernel_learnable import learnable
from bindscope.theory.kernel_points import to_gaussian

KERNELS: tuple[tuple[tuple[str, ...], list[float] | None, dict[str, Any]], ...] = (
    (("AA", "AB"), [1, -1], {}),
    (("AA", "AB"), None, {"beta": 1.0}),
    (("AABB", "ABAB"), [1, -1], {"activation": "relu"}),
    (("ABA", "ABB", "AAB"), [1, -1, 0.5], {"gamma": 0.5}),
    (("AA", "AB"), [1, -1], {"gamma": 0.0, "cls": False}),
    (("AB", "AA"), [1, 1], {"activation": "identity"}),
    (("Ax", "yA"), [1, -1], {}),
    (("AB", "Ax"), None, {}),
    (("AAB", "ABB"), [1, -1], {"activation": "tanh"}),
)
NUMBERS = (
    0.0,
    0.00295,
    0.0029512,
    4.712e-5,
    1.0,
    0.5,
    12.34,
    123.4,
    999.6,
    1234.0,
    -0.00012345,
    1e-4,
    9.999e-5,
    -3.2e-17,
)


def make_cases() -> dict[str, list[Any]]:
    """Kernels with errors, and the parts they are made of."""
    return {
        "kernels": [_describe(*each) for each in KERNELS],
        "quantiles": [{"at": at, "gaussian": float(to_gaussian(np.array([at]))[0])} for at in (1e-12, 0.01, 0.3, 0.5, 0.975, 0.9999999)],
        "activations": [_describe_activation(name) for name in ACTIVATIONS],
        "numbers": [{"value": value, "text": f"{value:.3g}"} for value in NUMBERS],
    }  # fmt: skip


def encode_cases() -> bytes:
    """The cases as they are written to a file, one a line."""
    parts = []
    for name, rows in make_cases().items():
        lines = ",\n".join("  " + orjson.dumps(row).decode() for row in rows)
        parts.append(f'"{name}":[\n{lines}\n]')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _describe(templates: tuple[str, ...], labels: list[float] | None, changes: dict[str, Any]) -> dict[str, Any]:
    usual: dict[str, Any] = {"beta": 3.0, "gamma": 1.0, "activation": "cos", "cls": True}
    report = learnable(templates, labels, KernelSettings(**(usual | changes), points=512))
    matrix, eigenvalues = report.matrix, report.eigenvalues
    return {
        "templates": templates, "labels": labels, "settings": usual | changes, "verdict": report.verdict, "why": report.why,
        "kernel": _digits(matrix.value), "errors": _digits(matrix.standard_error),
        "eigenvalues": _digits(eigenvalues.value), "eigenvalueErrors": _digits(eigenvalues.standard_error),
    }  # fmt: skip


def _describe_activation(name: str) -> dict[str, Any]:
    expect = find_activation(name).expect
    rows = ((1.0, 1.0, 0.5), (0.8, 1.2, -0.3), (2.0, 2.0, 2.0))
    values = [
        {"first": first, "second": second, "cross": cross,
         "expected": round(float(expect(*map(np.array, (first, second, cross)))), 9)}
        for first, second, cross in rows
    ]  # fmt: skip
    return {"name": name, "values": values}


def _digits(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") if abs(value) > 1e-12 else 0.0 for value in values.ravel()]


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_cases())
