"""A page of the lab, as the server sees it: what it reads and what it asks of a model.

A *resource* is read with GET, and its path is also the path of a file: ``bindscope export`` writes the same bytes to disk.
An *operation* is live work, asked with POST, which only a server can do. Most are about one run; those that are not belong to
the lab: their path names no run, their question is a ``LabQuestion``. A page registers itself in ``bindscope.web.pages`` with
one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

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


Step = Annotated[int, Field(ge=0, le=10**12)]  # of a checkpoint, in a question


class LabQuestion(Strict):
    """A live question about no run; operations add their own fields, all of them bounded."""


class Question(LabQuestion):
    """What every live question about a run names."""

    run: Annotated[str, Field(max_length=100)]


@dataclass(frozen=True)
class Operation:
    """Live work. ``answer(lab, run, question)`` gives a body; a streamed one yields a body first, then parts of it.

    ``steps(question, run)`` names the steps whose weights the answer depends on: with the question they are its key.
    To a ``LabQuestion`` the answer is ``answer(lab, question)``.
    """

    name: str
    question: type[LabQuestion]
    answer: Callable[..., Any]
    summary: str
    steps: Callable[[Any, LabRun], Iterable[int]] = lambda question, run: ()
    streamed: bool = False


@dataclass(frozen=True)
class Page:
    """One page: its name in the address, and what stands behind it."""

    name: str
    resources: tuple[Resource, ...] = ()
    operations: tuple[Operation, ...] = ()
