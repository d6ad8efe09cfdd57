"""What is measured over the checkpoints of a run on sums, as of any run, and in which groups its questions come."""

from __future__ import annotations

from typing import Any

from bindscope.studies.development.coefficient import measure as measure_coefficient
from bindscope.studies.development.diagnostics import measure as measure_diagnostics


def question_groups(task: Any) -> list[str]:
    """Sums of two numbers, and of two variables."""
    return ["n_variables=0", "n_variables=2"]


RESULTS = (*measure_coefficient.coefficient_results(question_groups), *measure_diagnostics.RESULTS)
DRAWINGS = (*measure_coefficient.DRAWINGS, measure_diagnostics.DRAWING)
CURVES = (measure_coefficient.CURVE, *measure_diagnostics.CURVES)
