"""``--family PATH.py:NAME``: a family of a person's own, on every command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.families import Family

OPTION = "--family"
KEEPS_IT = "import"  # the command that has an option of this name: it asks which family files are of
_named: list[Family] = []  # by the command that runs now


def take_families(arguments: Sequence[str]) -> list[str]:
    """Load the families that a command names, and give its other arguments. Nothing is imported where none is named.

    >>> take_families(["train", "recall-small", "--family", "examples/recall.py:RecallFamily"])
    ['train', 'recall-small']
    """
    _named.clear()
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, location = word.partition("=")
        if option != OPTION:
            rest.append(word)
            continue
        location = location if equals else next(words, "")
        if not location:
            raise BindscopeError("--family: say where the family is defined, as in --family mine.py:MyFamily.")
        _named.append(_load(location))
    if _named and rest[:1] == [KEEPS_IT]:
        rest += [OPTION, _named[-1].option]
    return rest


def named_family() -> Family | None:
    """The one family that the command names; None where it names none, or several."""
    return _named[0] if len(_named) == 1 else None


def option_of(family: Family) -> list[str]:
    """What a command needs to find a family again; nothing where it is found by itself."""
    return [OPTION, family.location] if family.location else []


def _load(location: str) -> Family:
    from bindscope.families import VARIABLE, load_family

    family = load_family(location)
    if family.location:  # the processes that this one starts find it too
        known = [part for part in os.environ.get(VARIABLE, "").split(",") if part]
        os.environ[VARIABLE] = ",".join(dict.fromkeys([*known, family.location]))
    return family
