"""Which families there are, and where to find them.

Those that come with Bindscope are in the table ``FAMILIES``. Others are found as the entry points ``bindscope.families``
of installed packages, by ``--family PATH.py:NAME``, in the environment variable ``BINDSCOPE_FAMILIES`` (locations separated by
commas), or by ``register_family``. Opening a run never loads code that the run itself names.

>>> find_family("binding").preset
'binding-laptop'
>>> load_family("examples/recall.py:RecallFamily").name
'recall'
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.family import EventTable, Example, Family, LearnedParts
from bindscope.own_files import explain, load_named

if TYPE_CHECKING:
    from bindscope.tasks.task import Task

__all__ = [
    "FAMILIES",
    "EventTable",
    "Example",
    "Family",
    "LearnedParts",
    "UnknownFamily",
    "all_families",
    "families_with",
    "family_of",
    "find_family",
    "find_object",
    "find_task_type",
    "installed_families",
    "load_family",
    "register_family",
    "require_kind",
]

FAMILIES: Mapping[str, str] = {  # those that come with Bindscope, imported when they are asked for
    "binding": "bindscope.studies.binding.family:BindingFamily",
    "code": "bindscope.studies.binding.code.family:CodeFamily",
    "assign_add": "bindscope.studies.assign_add.family:AssignAddFamily",
    "templates": "bindscope.studies.symbols.family:TemplatesFamily",
    "text": "bindscope.studies.symbols.language.family:TextFamily",
}
ENTRY_POINTS = "bindscope.families"  # the group under which a package names its families
VARIABLE = "BINDSCOPE_FAMILIES"


class UnknownFamily(BindscopeError):
    """A family that nobody has defined here."""

    def __init__(self, sentence: str, name: str) -> None:
        super().__init__(sentence)
        self.name = name


@dataclass
class _Registry:
    """What was loaded so far, for the whole process."""

    known: dict[str, Family] = field(default_factory=dict)
    environment: set[str] = field(default_factory=set)  # locations of BINDSCOPE_FAMILIES that were looked at
    lock: Any = field(default_factory=threading.RLock)


_registry = _Registry()


def find_family(name: str) -> Family:
    """The family of that name, ``assign_add`` or ``assign-add``.

    >>> find_family("binding").preset
    'binding-laptop'
    """
    name = name.replace("-", "_")
    with _registry.lock:
        if name not in _registry.known and name in FAMILIES:
            _registry.known[name] = _find_in(FAMILIES[name])()
        if name not in _registry.known:
            _load_environment()
        if name not in _registry.known and name in installed_families():
            _load_installed(name)
        if name not in _registry.known:
            known = {*FAMILIES, *_registry.known, *installed_families()}
            raise UnknownFamily(f"there is no family '{name}'.{suggest_nearest(name, known)}", name)
        return _registry.known[name]


def family_of(task: Any) -> Family:
    """The family of a task."""
    return find_family(task.family)


def find_task_type(name: str) -> type[Task]:
    """The dataclass whose ``family`` is this name."""
    return find_family(name).task


def all_families() -> list[Family]:
    """Every family: those that come with Bindscope, then others as they were named, then those of packages."""
    with _registry.lock:
        _load_environment()
        found = [find_family(name) for name in dict.fromkeys([*FAMILIES, *_registry.known])]
        for name in installed_families():
            with suppress(BindscopeError):  # a package that cannot be loaded says why when its family is asked for
                found.append(find_family(name))
        return list(dict.fromkeys(found))


def register_family(family: type[Family] | Family, *, location: str = "") -> Family:
    """Make a family of your own known, here and wherever a run of it is opened in this process.

    >>> register_family(RecallFamily).name
    'recall'
    """
    made = family() if isinstance(family, type) else family
    _check_family(made)
    made.location = location
    made.origin = location or f"{type(made).__module__}:{type(made).__qualname__}"
    with _registry.lock:
        taken = _registry.known.get(made.name)
        if made.name in FAMILIES or (taken is not None and taken.origin != made.origin):
            other = "comes with Bindscope" if made.name in FAMILIES else f"is {taken.origin if taken else ''}"
            raise BindscopeError(f"{made.origin}: a family '{made.name}' {other} already; give this one another name.")
        _registry.known[made.name] = made
    return made


def load_family(location: str) -> Family:
    """A family by its location, ``PATH.py:NAME`` or ``module:NAME``, or the name of one that is known.

    >>> load_family("examples/recall.py:RecallFamily").name
    'recall'
    """
    if not location.rpartition(":")[0]:
        if location.endswith(".py"):
            raise BindscopeError(
                f"--family {location}: say which class in it is the family, as in {location}:MyFamily."
            )
        return find_family(location)
    with _registry.lock:
        found = load_named(location, "--family", "family", _is_family)
        return register_family(found, location=location)


@cache
def installed_families() -> dict[str, metadata.EntryPoint]:
    """The families of installed packages by name, none of them imported."""
    return {point.name.replace("-", "_"): point for point in metadata.entry_points(group=ENTRY_POINTS)}


def families_with(kind: str) -> list[Family]:
    """The families whose runs can be asked what is meant by ``kind``: "programs", "sums", …"""
    return [family for family in all_families() if kind in family.kinds]


def require_kind(run_name: str, task: Any, kind: str, need: str = "this command needs") -> None:
    """Refuse a run that cannot be asked this, and say what kind of run can.

    >>> require_kind("sums", AssignAddTask(), "programs")
    BindscopeError: sums: its task is assign_add; this command needs a run on binding programs.
    """
    if kind not in family_of(task).kinds:
        subject = " or ".join(dict.fromkeys(family.subject for family in families_with(kind)))
        raise BindscopeError(f"{run_name}: its task is {task.family}; {need} a run on {subject or kind}.")


def find_object(location: str | type) -> Any:
    """What a text ``module:NAME`` names, imported; a class is itself."""
    return _find_in(location) if isinstance(location, str) else location


def _find_in(location: str) -> Any:
    module, _, name = location.partition(":")
    return getattr(import_module(module), name)


def _load_environment() -> None:
    for location in filter(None, (part.strip() for part in os.environ.get(VARIABLE, "").split(","))):
        if location not in _registry.environment:
            load_family(location)
            _registry.environment.add(location)


def _load_installed(name: str) -> None:
    point = installed_families()[name]
    package = point.dist.name if point.dist is not None else point.module
    try:
        found = point.load()
    except Exception as problem:
        raise BindscopeError(
            f"the family '{name}' of the package {package} cannot be loaded{explain(problem)}"
        ) from problem
    if not isinstance(found, type) or not _is_family(found) or found().name != name:
        raise BindscopeError(
            f"the package {package} offers {point.value} as the family '{name}', and it is not a family of that name."
        )
    made = found()
    _check_family(made)
    made.origin = f"the package {package}"
    _registry.known[name] = made


def _is_family(value: Any) -> bool:
    """Whether it is one, or the class of one."""
    return isinstance(value, Family) or (isinstance(value, type) and issubclass(value, Family) and value is not Family)


def _check_family(family: Family) -> None:
    kind = f"{type(family).__module__}:{type(family).__qualname__}"
    task = getattr(family, "task", None)
    if not isinstance(task, type) or not is_dataclass(task):
        raise BindscopeError(f"{kind}: 'task' must be the dataclass of its tasks.")
    name = getattr(task, "family", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BindscopeError(
            f"{task.__qualname__}: 'family' must name the family in small letters, digits and '_', got {name!r}."
        )
