"""The docstring of a command: what it says, its examples, and both as a terminal of any width shows them."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

PARAMETERS = "\nParameters\n----------\n"
EXAMPLE_WIDTH = 78  # what fits a terminal of 80 columns


def split_docstring(function: Any) -> tuple[str, str]:
    """What a command's docstring says before its parameters, and the lines of its examples."""
    description, _, examples = cleandoc(function.__doc__).split(PARAMETERS)[0].partition("\nExamples:\n")
    return description.strip(), cleandoc(examples)


def for_terminals(docstring: str) -> str:
    """The same docstring with each paragraph on one line, for the terminal to break.

    Examples stand under other words than a docstring's own heading for them, which would leave them out of the help.
    """
    description, _, parameters = cleandoc(docstring).partition(PARAMETERS)
    prose, _, examples = description.partition("\nExamples:\n")
    parts = ["\n\n".join(_join(part) for part in prose.strip().split("\n\n"))]
    parts += ["For example:\n" + "\n".join(map(_break_example, examples.rstrip().splitlines()))] if examples else []
    parts += [PARAMETERS.strip() + "\n" + _join(parameters)] if parameters else []
    return "\n\n".join(parts)


def _break_example(line: str) -> str:
    """A long command in two lines, so that what a terminal shows can be copied: it would break it anywhere."""
    if len(line) <= EXAMPLE_WIDTH:
        return line
    ends = [
        match.start() for match in re.finditer(r" (?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", line)
    ]  # between words, not in quotes
    at = max((end for end in ends if end < EXAMPLE_WIDTH - 2), key=lambda end: (line[end + 1 :].startswith("--"), end))
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return f"{line[:at]} \\\n{_break_example(indent + line[at + 1 :])}"


def _join(text: str) -> str:
    """A line goes on with those that follow it, down to one that is indented otherwise, empty, or begins a list."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        before = lines[-1] if lines else ""
        continues = before.strip() and line.strip() and indent == len(before) - len(before.lstrip())
        if continues and not line.lstrip().startswith(("- ", "* ", "bindscope ")):
            lines[-1] = f"{before} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)
