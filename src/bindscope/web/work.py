"""Long work that the page starts: measuring what is missing, and training. Each is a command in a process of its own.

- It exists only on a server that listens on this machine alone and answers live questions; the request must come from a page
  of this server and say so, as for opening a directory (``opening``).
- A request names a run that is open, results that its study has, a preset, and a plain name; no path and no file.
- One measurement and one training go on at a time. Stopping is as Ctrl-C: a training can be resumed, a result that is
  half measured is not saved. Both end with the server.

>>> work = LongWork(lab, begin=beside.begin)
>>> work.measure("binding-laptop", ["crosscoder"]).status
'at work'
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Annotated, Literal, Protocol

from fastapi import Request
from pydantic import Field
from starlette.exceptions import HTTPException

from bindscope.errors import BindscopeError
from bindscope.runs.lock import is_locked
from bindscope.studies.framework.presets import find_preset
from bindscope.web.beside import PATIENCE, stop
from bindscope.web.body import Strict
from bindscope.web.lab import Lab, LabRun, Missing
from bindscope.web.security import is_own_page

Kind = Literal["measure", "train"]
Status = Literal["at work", "stopping", "stopped", "done", "failed"]
KINDS: tuple[Kind, ...] = ("measure", "train")
N_LINES, LONGEST_LINE = 12, 400  # that are shown of what a command says
AT_THE_END = 3.0  # seconds that each is given when the server ends; what hears no signal ends with its pipe
DONE = {"measure": re.compile(r"(\d+) % "), "train": re.compile(r"step ([\d,]+)/([\d,]+) ")}
PRESET = r"^[a-z0-9][a-z0-9-]*$"
PLAIN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
RunName = Annotated[str, Field(min_length=1, max_length=100)]


class MeasureQuestion(Strict):
    """Results of a run that are to be measured."""

    run: RunName
    results: Annotated[list[Annotated[str, Field(min_length=1, max_length=60)]], Field(min_length=1, max_length=60)]


class TrainQuestion(Strict):
    """A preset to be trained, under a name that no run has."""

    preset: Annotated[str, Field(max_length=60, pattern=PRESET)]
    name: Annotated[str, Field(max_length=60, pattern=PLAIN)]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)] = 0


class ResumeQuestion(Strict):
    """A run whose training was interrupted."""

    run: RunName


class StopQuestion(Strict):
    """Which of the two is to stop."""

    kind: Kind


class Work(Strict):
    """One measurement or training, as far as it is."""

    kind: Kind
    number: int  # counts all that were begun here
    run: str
    results: list[str]  # that are measured
    status: Status
    fraction: float | None  # of the whole; null before anything is known of it
    seconds: float  # that it has taken
    lines: list[str]  # the last that it said


class WorkList(Strict):
    """What is at work, or was last."""

    work: list[Work]


class Begin(Protocol):
    """How a command is begun: ``beside.begin``."""

    def __call__(self, *words: str, stdout: int, stderr: int) -> subprocess.Popen[bytes]: ...


class Job:
    """A command in a process of its own, with what it says."""

    def __init__(
        self, kind: Kind, number: int, run: str, results: Iterable[str], start: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        self.kind, self.number, self.run, self.results = kind, number, run, tuple(results)
        self.status: Status = "at work"
        self.fraction: float | None = None
        self.lines: deque[str] = deque(maxlen=N_LINES)
        self._began, self._took = time.monotonic(), 0.0
        self.process = start()
        self._listener = threading.Thread(target=self._listen, name=f"{kind} {number}", daemon=True)
        self._listener.start()

    @property
    def goes_on(self) -> bool:
        return self.status in ("at work", "stopping")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began if self.goes_on else self._took

    def stop(self, patience: float = PATIENCE) -> None:
        """Ask it to end, and see to it; returns at once."""
        if self.status == "at work":
            self.status = "stopping"
            threading.Thread(target=stop, args=(self.process, patience), daemon=True).start()

    def join(self, seconds: float | None = None) -> None:
        self._listener.join(seconds)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text = line.decode("utf-8", "replace").rstrip()[:LONGEST_LINE]
            if text:
                self.fraction = read_fraction(self.kind, text, self.fraction)
                self.lines.append(text)
        code = self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self._took = self.seconds
        self.status = "done" if code == 0 else "stopped" if self.status == "stopping" else "failed"


class LongWork:
    """What is at work for the page: one measurement and one training at most."""

    def __init__(self, lab: Lab, begin: Begin) -> None:
        self.lab = lab
        self._begin = begin
        self._jobs: dict[Kind, Job] = {}
        self._n_begun = 0
        self._lock = threading.Lock()

    def measure(self, name: str, results: list[str]) -> Work:
        """Measure results of an open run, and what they need."""
        run = self.lab.find(name)
        run.library.order(results)  # refuses what it has no result for
        out = ["--out", str(run.saved_in)] if run.read_only else []
        words = ["measure", str(run.path.resolve()), *results, "--jobs", "1", *out, *run.run.placement.options]
        return self._start("measure", run.name, results, words)

    def train(self, preset: str, name: str, seed: int = 0) -> Work:
        """Begin a run under the directory of runs."""
        find_preset(preset)
        if not self.shows_new_runs:
            raise BindscopeError(
                "a new run would not be shown, for this server was started with the runs that it shows."
            )
        if (self.lab.kept_in / name).exists() or name in self.lab.runs:
            raise BindscopeError(f"there is a run '{name}' already; choose another name.")
        words = ["train", preset, "--name", name, "--seed", str(seed), "--out", str(self.lab.kept_in), "--threads", "1"]
        return self._start("train", name, (), [*words, "--device", self.lab.placement.device])

    def resume(self, name: str) -> Work:
        """Go on with a run that may be written to and is not being trained."""
        run = self.lab.find(name)
        refuse_to_resume(run)
        return self._start("train", run.name, (), ["resume", str(run.path.resolve())])

    def stop(self, kind: Kind) -> Work:
        """Stop what is at work, as Ctrl-C does."""
        job = self._jobs.get(kind)
        if job is None or not job.goes_on:
            raise Missing("nothing of this kind is at work.")
        job.stop()
        return self._show(job)

    def list(self) -> WorkList:
        """What is at work, or was last, of each kind."""
        return WorkList(work=[self._show(self._jobs[kind]) for kind in KINDS if kind in self._jobs])

    def close(self) -> None:
        """The server ends, and everything with it."""
        for job in self._jobs.values():
            job.stop(AT_THE_END)
        for job in self._jobs.values():
            job.join(AT_THE_END)

    @property
    def shows_new_runs(self) -> bool:
        """Whether a run that is begun here appears on the page."""
        return self.lab.kept_in.resolve() in {path.resolve() for path in self.lab.watched}

    def _start(self, kind: Kind, run: str, results: Iterable[str], words: list[str]) -> Work:
        with self._lock:
            before = self._jobs.get(kind)
            if before is not None and before.goes_on:
                doing = "is being measured" if kind == "measure" else "is being trained"
                raise BindscopeError(f"{before.run} {doing}; one at a time: wait for it or stop it.")
            self._n_begun += 1
            job = Job(
                kind, self._n_begun, run, results,
                lambda: self._begin(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT),
            )  # fmt: skip
            self._jobs[kind] = job
            return self._show(job)

    def _show(self, job: Job) -> Work:
        lines = [self.lab.without_paths(line) for line in tuple(job.lines)]
        return Work(
            kind=job.kind, number=job.number, run=job.run, results=list(job.results), status=job.status,
            fraction=job.fraction, seconds=round(job.seconds, 1), lines=lines,
        )  # fmt: skip


def refuse_to_resume(run: LabRun) -> None:
    """Raise unless training can go on with this run."""
    if run.read_only:
        raise BindscopeError(f"{run.name} is only read here, so training cannot go on with it.")
    if is_locked(run.path):
        raise BindscopeError(f"{run.name} is being trained by another process.")
    if run.run.status != "interrupted":
        raise BindscopeError(f"{run.name} is {run.run.status}; only a run that was interrupted goes on.")


def read_fraction(kind: Kind, line: str, before: float | None) -> float | None:
    """How far a command is by what it says; a line that says nothing of it changes nothing.

    >>> read_fraction("train", "step 1,500/3,000  loss 0.1", None)
    0.5
    """
    match = DONE[kind].match(line)
    if match is None:
        return before
    done, total = (match[1], "100") if kind == "measure" else (match[1], match[2])
    return int(done.replace(",", "")) / max(int(total.replace(",", "")), 1)


def refuse_work(lab: Lab, request: Request) -> None:
    """Raise unless this request may start long work, or stop it."""
    if not lab.starts_work:
        raise HTTPException(403, "this server starts no measurements and no trainings from the page")
    if not is_own_page(request.headers, request.headers["host"].lower(), sure=True):
        raise HTTPException(403, "only the page itself can start work")
