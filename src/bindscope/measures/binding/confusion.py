"""Which digit was given for which, and which line's constant for which.

>>> table = confusion(predictions)
>>> table.fraction.sel(answer="4", prediction="7"), table.line_fraction.sel(root_line=3, source="line 1")
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.binding.behaviour import NO_LINE
from bindscope.measures.binding.predictions import Predictions
from bindscope.measures.stats.fractions import CONFIDENCE, count_variable, fraction_variables

N_DIGITS = 10
NO_DIGIT = "no digit"


def confusion(predictions: Predictions) -> xr.Dataset:
    """Counts and row fractions of predictions given the answer, and of source lines given the root line.

    ``count``, ``fraction`` (answer, prediction), the last prediction being "no digit"; ``line_count``, ``line_fraction``
    (root_line, source). A row sums to 1; the row of an answer that never occurred is NaN.
    """
    if not len(predictions):
        raise BindscopeError("confusion: no question was given.")
    said = np.where(predictions.predicted < 0, N_DIGITS, predictions.predicted)
    digits = _cross_tabulate(predictions.answers, said, (N_DIGITS, N_DIGITS + 1))  # [answer, prediction]
    n_lines = int(predictions.attributes["lines"].max())
    source = np.where(predictions.sources == 0, n_lines, predictions.sources - 1)
    lines = _cross_tabulate(predictions.attributes["root_line"] - 1, source, (n_lines, n_lines + 1))
    names = [str(digit) for digit in range(N_DIGITS)]
    dataset = xr.Dataset(
        {
            "count": count_variable(["answer", "prediction"], digits),
            **fraction_variables("fraction", ["answer", "prediction"], digits, digits.sum(1, keepdims=True)),
            "line_count": count_variable(["root_line", "source"], lines),
            **fraction_variables("line_fraction", ["root_line", "source"], lines, lines.sum(1, keepdims=True)),
        },
        {
            "answer": names,
            "prediction": [*names, NO_DIGIT],
            "root_line": np.arange(1, n_lines + 1),
            "source": [*(f"line {line}" for line in range(1, n_lines + 1)), NO_LINE],
        },
    )
    dataset.attrs = {"title": "confusion of answers", "n": len(predictions), "confidence": CONFIDENCE}
    return dataset


def _cross_tabulate(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)
