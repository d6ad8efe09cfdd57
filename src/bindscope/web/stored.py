"""What is read with GET: bodies made of a run's files, cached in memory while the run stays as it is.

The export writes exactly these bytes, so a static copy of the site answers as the server does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bindscope.web.body import absent_body, encode
from bindscope.web.lab import Lab, Missing, NotMeasured, stamp_files
from bindscope.web.live import Answers
from bindscope.web.memory import return_freed
from bindscope.web.page import Resource

MEMORY = 32_000_000  # bytes of bodies that are cached


class Stored:
    """The bytes of each resource, made once at a time and once only."""

    def __init__(self, lab: Lab, memory: int = MEMORY) -> None:
        self.lab = lab
        self.kept = Answers(memory)
        self._turns = Turns()

    def read(self, resource: Resource, parameters: Mapping[str, str]) -> bytes:
        """The body of a resource under these parameters."""
        arguments: dict[str, Any] = dict(parameters)
        if "run" in parameters:
            run = self.lab.find(parameters["run"])
            if not resource.applies_to(run):
                raise Missing(f"{run.name}: a run of the family '{run.family}' has no such page.")
            arguments["run"], version = run, run.version
            if "step" in parameters:
                arguments["step"] = run.find_step(parameters["step"])
        elif resource.reads is not None:
            version = stamp_files(resource.reads(self.lab, **parameters))
        else:
            version = self.lab.version
        path = resource.path.format(**parameters)
        with self._turns.take(path):
            key = f"{version}/{path}"
            if (found := self.kept.find(key)) is None:
                try:
                    found = self._make(resource, arguments)
                except NotMeasured as absence:  # not kept: it may be measured the next moment
                    reason = self.lab.without_paths(str(absence))
                    return encode(absent_body(parameters.get("run", ""), reason, absence.results))
                self.kept.keep(key, found)
                return_freed()
            return found

    def _make(self, resource: Resource, arguments: Mapping[str, Any]) -> bytes:
        content = resource.make(self.lab, **arguments)
        if isinstance(content, bytes):
            return content
        return content.encode() if isinstance(content, str) else encode(content)


class Turns:
    """One thread at a time for each name; names nobody holds are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, tuple[threading.Lock, int]] = {}  # the lock, and how many hold or await it

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        with self._lock:
            lock, n_waiting = self._held.get(name, (threading.Lock(), 0))
            self._held[name] = lock, n_waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, n_waiting = self._held.pop(name)
                if n_waiting > 1:
                    self._held[name] = lock, n_waiting - 1

    def __len__(self) -> int:
        return len(self._held)
