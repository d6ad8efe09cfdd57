"""What is read with GET: bodies made of a run's files, kept in memory while the run stays as it is.

The export writes exactly these bytes, so a static copy of the site answers as the server does.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from bindscope.web.body import encode
from bindscope.web.lab import Lab, Missing
from bindscope.web.live import Answers
from bindscope.web.page import Resource

MEMORY = 128_000_000  # bytes of bodies that are kept


class Stored:
    """The bytes of each resource, made once at a time and once only."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.kept = Answers(MEMORY)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def read(self, resource: Resource, parameters: Mapping[str, str]) -> bytes:
        """The body of a resource under these parameters."""
        arguments: dict[str, Any] = dict(parameters)
        version = "".join(run.version for run in self.lab.runs.values())
        if "run" in parameters:
            run = self.lab.find(parameters["run"])
            if resource.families and run.family not in resource.families:
                raise Missing(f"{run.name}: a run of the family '{run.family}' has no such page.")
            arguments["run"], version = run, run.version
            if "step" in parameters:
                arguments["step"] = run.find_step(parameters["step"])
        path = resource.path.format(**parameters)
        with self._locks[path]:
            return self.kept.find_or(f"{version}/{path}", lambda: self._make(resource, arguments))

    def _make(self, resource: Resource, arguments: Mapping[str, Any]) -> bytes:
        content = resource.make(self.lab, **arguments)
        if isinstance(content, bytes):
            return content
        return content.encode() if isinstance(content, str) else encode(content)
