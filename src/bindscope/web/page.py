"""A page of the lab, as the server sees it: what it reads and what it asks of a model.

A *resource* is read with GET, and its path is also the path of a file: ``bindscope export`` writes the same bytes to disk.
An *operation* is live work, asked with POST, which only a server can do: a question of ``bindscope.questions``, most of them
about one run. A page registers itself in ``bindscope.web.pages`` with one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bindscope.questions.question import Question
from bindscope.web.asking import request_model, to_question
from bindscope.web.body import Body, Strict
from bindscope.web.lab import Lab, LabRun

JSON, SVG, BYTES = "application/json", "image/svg+xml", "application/octet-stream"
Content = Mapping[str, Any] | BaseModel | str | bytes  # what a maker gives: a body, or text or bytes of its media type
Parameters = dict[str, str]
PARAMETER, LONGEST = r"[A-Za-z0-9][A-Za-z0-9_.+-]*", 100  # what may stand in an address, and so in the path of a file


@dataclass(frozen=True)
class Resource:
    """Something to read. ``{run}`` and ``{step}`` in the path reach ``make`` as a LabRun and an int, others as text.

    >>> Resource("runs/{run}/trajectory.json", make_trajectory, "Accuracy over training")
    """

    path: str
    make: Callable[..., Content]  # (lab, **parameters) → content
    summary: str
    model: type[BaseModel] = Body
    media: str = JSON
    kinds: tuple[str, ...] = ()  # which runs have it: those of one of these kinds; empty: all
    each: Callable[[Lab, LabRun], Iterable[Parameters]] | None = None  # further parameters, for the export
    every: Callable[[Lab], Iterable[Parameters]] | None = None  # … of what names no run
    reads: Callable[..., Iterable[Path]] | None = None  # (lab, **parameters) → files besides runs that it is made of
    at_once: bool = False  # every reader needs it: made before the first one comes

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters in the path."""
        return tuple(part.split("}")[0] for part in self.path.split("{")[1:])

    def instances(self, lab: Lab) -> Iterator[Parameters]:
        """Every choice of parameters that an export writes: those that a server would take."""
        return filter(are_plain, self._choices(lab))

    def applies_to(self, run: LabRun) -> bool:
        """Whether a run has it."""
        return not self.kinds or not run.kinds.isdisjoint(self.kinds)

    def _choices(self, lab: Lab) -> Iterator[Parameters]:
        if "run" not in self.names:
            yield from self.every(lab) if self.every else ({},)
            return
        for name, run in lab.runs.items():
            if not self.applies_to(run):
                continue
            for further in self.each(lab, run) if self.each else ({},):
                if "step" in self.names and "step" not in further:
                    yield from ({"run": name, "step": str(step), **further} for step in run.steps)
                else:
                    yield {"run": name, **further}


def are_plain(parameters: Parameters) -> bool:
    """Whether parameters can stand in an address: some are read from the files of a run, which may say anything."""
    return all(len(text) <= LONGEST and re.fullmatch(PARAMETER, text) for text in parameters.values())


@dataclass(frozen=True)
class Operation:
    """Live work: a question of ``bindscope.questions``, asked by some of its ``fields``.

    ``answer(lab, run, question)`` gives a body; a streamed one yields a body first, then parts of it. A question about no
    run is answered by ``answer(lab, question)``. ``ask`` makes the question where a request is not simply its fields.
    """

    name: str
    question: type[Question]
    answer: Callable[..., Any]
    summary: str
    fields: tuple[str, ...]
    streamed: bool = False
    ask: Callable[[Any], Question] | None = None

    @cached_property
    def request(self) -> type[Strict]:
        """What is sent to ask it, checked field by field."""
        return request_model(self.question, self.name.capitalize(), self.fields)

    def read(self, request: Strict) -> Question:
        """What a request asks."""
        return self.ask(request) if self.ask else to_question(self.question, request)


@dataclass(frozen=True)
class Page:
    """One page: its name in the address, and what stands behind it."""

    name: str
    resources: tuple[Resource, ...] = ()
    operations: tuple[Operation, ...] = ()
