"""Live work on a model: one worker, so that answers do not slow each other down, with a memory of what it answered.

- An answer is kept under a key: the operation, the question and the hashes of the weights it reads.
- Questions of one *slot* (a panel of one reader's page) supersede each other: a newer one cancels the older, whether it
  still waits or is already at work, as soon as the work comes to its next part.
- A streamed answer is lines of JSON: a body first, then its parts as they are made.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import orjson

from bindscope.errors import BindscopeError
from bindscope.web.body import encode
from bindscope.web.lab import Lab
from bindscope.web.page import Operation, Question

MEMORY = 64_000_000  # bytes of answers that are kept
_END = None


class Superseded(BindscopeError):
    """A newer question took the place of this one."""


class Worker:
    """Answers live questions, one at a time."""

    def __init__(self, lab: Lab, memory: int = MEMORY) -> None:
        self.lab = lab
        self.kept = Answers(memory)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="live")
        self._slots: dict[str, threading.Event] = {}

    async def answer(self, operation: Operation, question: Question, slot: str = "") -> bytes:
        """The whole answer as JSON."""
        key = self._key(operation, question)
        if (kept := self.kept.find(key)) is not None:
            return kept
        cancelled = self._take(slot)

        def work() -> bytes:
            _check(cancelled)
            return encode(operation.answer(self.lab, self.lab.find(question.run), question))

        try:
            content = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._leave(slot, cancelled)
        _check(cancelled)
        self.kept.keep(key, content)
        return content

    async def stream(self, operation: Operation, question: Question, slot: str = "") -> AsyncIterator[bytes]:
        """The answer line by line; leaving the loop early cancels the rest."""
        key = self._key(operation, question)
        if (kept := self.kept.find(key)) is not None:
            yield kept
            return
        cancelled = self._take(slot)
        loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | BaseException | None]()

        def put(line: bytes | BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may have ended before the work did
                loop.call_soon_threadsafe(lines.put_nowait, line)

        def work() -> None:
            try:
                for line in self._lines(operation, question, cancelled):
                    put(line)
                put(_END)
            except BaseException as problem:  # handed to the reader, who raises it again
                put(problem)

        self._executor.submit(work)
        sent: list[bytes] = []
        try:
            while (line := await lines.get()) is not _END:
                if isinstance(line, BaseException):
                    raise line
                sent.append(line)
                yield line
            self.kept.keep(key, b"".join(sent))
        finally:
            cancelled.set()
            self._leave(slot, cancelled)

    def close(self) -> None:
        for cancelled in self._slots.values():
            cancelled.set()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _lines(self, operation: Operation, question: Question, cancelled: threading.Event) -> Iterator[bytes]:
        _check(cancelled)
        for part in operation.answer(self.lab, self.lab.find(question.run), question):
            yield encode(part) + b"\n"
            _check(cancelled)

    def _key(self, operation: Operation, question: Question) -> str:
        run = self.lab.find(question.run)
        hashes = [run.checkpoint_hash(run.find_step(step)) for step in operation.steps(question, run)]
        content = [operation.name, question.model_dump(), hashes]
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def _take(self, slot: str) -> threading.Event:
        cancelled = threading.Event()
        if slot:
            if slot in self._slots:
                self._slots[slot].set()
            self._slots[slot] = cancelled
        return cancelled

    def _leave(self, slot: str, cancelled: threading.Event) -> None:
        if self._slots.get(slot) is cancelled:
            del self._slots[slot]


class Answers:
    """Answers by key, the oldest forgotten first once they take more than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def find(self, key: str) -> bytes | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def keep(self, key: str, content: bytes) -> None:
        self.size += len(content) - len(self._kept.pop(key, b""))
        self._kept[key] = content
        while self.size > self.limit:
            self.size -= len(self._kept.popitem(last=False)[1])

    def find_or(self, key: str, make: Callable[[], bytes]) -> bytes:
        """The kept answer, or a new one that is kept from now on."""
        if (found := self.find(key)) is None:
            found = make()
            self.keep(key, found)
        return found


def _check(cancelled: threading.Event) -> None:
    if cancelled.is_set():
        raise Superseded("a newer question took the place of this one.")
