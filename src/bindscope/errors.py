"""What a person is told when something they gave us cannot be used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BindscopeError(Exception):
    """One clear sentence: what was wrong, where, and what to do. The command line prints it and exits with 2."""


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """A hint to end an error with: ``" Did you mean 'lines'?"``, or the known words when none is near."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f" Did you mean '{near[0]}'?"
    return f" Known: {', '.join(known)}."
