"""What a person is told when something they gave us cannot be used."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class BindscopeError(Exception):
    """One clear sentence: what was wrong, where, and what to do. The command line prints it and exits with 2.

    >>> try:
    ...     open_run("no-such-run")
    ... except BindscopeError as problem:
    ...     print(problem)
    """


class NotYet(BindscopeError):
    """What was asked of a run is not there yet; more training, or more checkpoints, may bring it."""


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """A hint to end an error with: ``" Did you mean 'lines'?"``, or the known words when none is near."""
    known = sorted(known, key=_by_number)
    return name_nearest(word, known) or f" Known: {', '.join(known)}."


def name_nearest(word: str, known: Iterable[str]) -> str:
    """The same for an error that lists the known words itself: ``" Did you mean 'lines'?"``, or nothing."""
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""


def _by_number(word: str) -> list[tuple[int, str]]:
    """Orders 'AA2' before 'AA10'."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", word)]
