"""The docstring of a command: what it says, its examples, and both as a terminal of any width shows them."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

PARAMETERS = "\nParameters\n----------\n"


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
    parts += [f"For example:\n{examples.rstrip()}"] if examples else []
    parts += [PARAMETERS.strip() + "\n" + _join(parameters)] if parameters else []
    return "\n\n".join(parts)


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
