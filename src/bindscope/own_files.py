"""What a person names in a file of their own, ``PATH.py:NAME`` or ``module:NAME``: a family, a metric, a result, a hypothesis.

Only a command line, the environment or Python may name such a file; a run, a saved result or a request never does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest

if TYPE_CHECKING:
    from types import ModuleType

_files: dict[Path, ModuleType] = {}  # each is executed once in a process
_lock = threading.RLock()


class OwnCodeFailed(BindscopeError):
    """Code of a person's own failed, or returned what cannot be used: no finding, but something to put right."""


def load_named(location: str, option: str, what: str, fits: Callable[[Any], bool]) -> Any:
    """What a location names, which must fit; ``option`` and ``what`` are for the sentence where it is not there.

    >>> load_named("examples/metrics.py:source_probability", "--metric", "function", callable)
    <function source_probability at …>
    """
    source, _, name = location.rpartition(":")
    module = (
        _load_file(Path(source), location, option) if source.endswith(".py") else _load_module(source, location, option)
    )
    found = getattr(module, name, None)
    if not fits(found):
        known = [each for each, value in vars(module).items() if fits(value)]
        hint = suggest_nearest(name, known) if known else " It defines none."
        raise BindscopeError(f"{location}: '{name}' is not a {what} in {source}.{hint}")
    return found


def explain(problem: Exception, path: str | Path | None = None) -> str:
    """Why somebody's code failed, with the line of ``path`` at which it did: ``, line 2: ZeroDivisionError: ….``"""
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(path)]
    number = problem.lineno if isinstance(problem, SyntaxError) else frames[-1].lineno if frames else None
    where = f", line {number}" if number else ""
    sentence = str(problem).rstrip(".") or "no reason given"
    return f"{where}: {type(problem).__name__}: {sentence}."


def _load_module(source: str, location: str, option: str) -> ModuleType:
    try:
        return import_module(source)
    except Exception as problem:
        raise BindscopeError(
            f"{option} {location}: the module {source} cannot be loaded{explain(problem)}"
        ) from problem


def _load_file(path: Path, location: str, option: str) -> ModuleType:
    """A file as a module; modules beside it can be imported by it."""
    resolved = path.expanduser().resolve()
    with _lock:
        if resolved not in _files:
            if not resolved.is_file():
                raise BindscopeError(f"{option} {location}: there is no file {path}.")
            _files[resolved] = _execute(path, resolved)
        return _files[resolved]


def _execute(path: Path, resolved: Path) -> ModuleType:
    name = f"{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their types up there
    try:
        with _importing_from(resolved.parent):
            spec.loader.exec_module(module)
    except Exception as problem:
        del sys.modules[name]
        raise BindscopeError(f"{path} cannot be loaded{explain(problem, resolved)}") from problem
    return module


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
