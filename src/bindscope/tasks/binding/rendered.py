"""Batches of programs, in whichever tokens they are written: their rows, columns and digits.

A program is a row of its own tokens, ``a = 5 \\n # a :``. A task that writes it otherwise (``tasks/code``) gives its batches a
``Rendering``, and everything that reads structure from a batch asks here: rows to interpret, the column that each position
of a row stands at, and the output that stands for a digit.
"""

from __future__ import annotations

import numpy as np

from bindscope.tasks.binding.program import DIGITS, VOCABULARY
from bindscope.tasks.binding.programs import Programs, tokens_to_programs
from bindscope.tasks.task import Batch

OUTPUT_OF_DIGIT = np.array([VOCABULARY.ids[digit] for digit in DIGITS])  # [digit], in the family's own tokens


def rows_of(batch: Batch) -> np.ndarray:
    """The batch's programs as rows of their own tokens [batch, position]."""
    return batch.tokens if batch.rendering is None else batch.rendering.read_rows(batch.tokens)


def programs_of(batch: Batch) -> tuple[Programs, np.ndarray]:
    """The batch's programs and queried lines [program, query]."""
    return tokens_to_programs(rows_of(batch), batch.layout.n_blocks)


def columns_of(batch: Batch) -> np.ndarray:
    """The column [position] of each position of the batch's rows."""
    if batch.rendering is None:
        return np.arange(batch.tokens.shape[1])
    return batch.rendering.columns(rows_of(batch.take(slice(0, 1))).shape[1])


def outputs_of_digits(batch: Batch) -> np.ndarray:
    """The output [digit] that answers with each digit."""
    return OUTPUT_OF_DIGIT if batch.rendering is None else batch.rendering.output_of_digit


def to_digits(batch: Batch, outputs: np.ndarray) -> np.ndarray:
    """The digit that each of some outputs (any shape) stands for, −1 where it is none."""
    of_digit = outputs_of_digits(batch)
    order = np.argsort(of_digit)
    index = np.minimum(np.searchsorted(of_digit, outputs, sorter=order), len(of_digit) - 1)
    return np.where(of_digit[order[index]] == outputs, order[index], -1)
