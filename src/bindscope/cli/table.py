"""Plain aligned tables: the same text on a terminal, in a pipe and in a file."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Columns two spaces apart; those listed in ``numbers`` are aligned to the right.

    >>> print(format_table(["depth", "accuracy"], [["1", "0.98"], ["2", "0.7"]], numbers=[1]))
    depth  accuracy
    -----  --------
    1          0.98
    2           0.7
    """
    lines = [list(map(str, row)) for row in (headings, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(_join(line, widths, set(numbers)) for line in lines)


def _join(cells: Sequence[str], widths: Sequence[int], numbers: set[int]) -> str:
    padded = [
        cell.rjust(width) if column in numbers else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths))
    ]
    return "  ".join(padded).rstrip()


def fill_lines(text: str) -> str:
    """Sentences as they are; on a terminal its lines end between words instead of anywhere."""
    if not sys.stdout.isatty():
        return text
    width = max(40, shutil.get_terminal_size().columns - 1)
    return "\n".join(textwrap.fill(line, width, break_on_hyphens=False) or line for line in text.splitlines())


def format_count(number: int) -> str:
    """37812224 as ``37.8M``, 205312 as ``205k``."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{letter}" if scaled < 100 else f"{scaled:.0f}{letter}"
    return str(number)


def format_duration(seconds: float) -> str:
    """5400 as ``1 h 30 min``, 42.3 as ``42 s``: the two largest units."""
    whole = round(seconds)
    units = [(whole // 86_400, "d"), (whole // 3_600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    while len(units) > 1 and not units[0][0]:
        units.pop(0)
    return " ".join(f"{count} {unit}" for count, unit in units[:2] if count) or "0 s"
