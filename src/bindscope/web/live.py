"""Live work on a model: one worker, so that answers do not slow each other down, with a memory of what it answered.

- An answer is cached under a key: the operation, the question and the hashes of the weights it reads.
- Questions of one *slot* (a panel of one reader's page) supersede each other: a newer one cancels the older, whether it
  still waits or is already at work, as soon as the work comes to its next part. So does leaving.
- A streamed answer is lines of JSON: a body first, then its parts as they are made.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cachetools import LRUCache

from bindscope.errors import BindscopeError
from bindscope.questions.question import Question, RunQuestion
from bindscope.web.asking import opened
from bindscope.web.background import Background
from bindscope.web.body import encode
from bindscope.web.cancel import cancellable, check_cancelled
from bindscope.web.lab import Lab
from bindscope.web.memory import return_freed
from bindscope.web.page import Operation

MEMORY = 32_000_000  # bytes of answers that are cached
N_WAITING = 100  # questions that may wait or be at work at once
_END = None


class Busy(BindscopeError):
    """Too many questions wait already."""


class Worker:
    """Answers live questions, one at a time."""

    def __init__(self, lab: Lab, memory: int = MEMORY) -> None:
        self.lab = lab
        self.kept = Answers(memory)
        self._slots: dict[str, threading.Event] = {}
        self._asked: set[threading.Event] = set()
        self.open()

    def open(self) -> None:
        """Begin to work, or begin again after ``close``."""
        self._executor = Background()

    async def answer(self, operation: Operation, question: Question, slot: str = "") -> bytes:
        """The whole answer as JSON; cancelling the coroutine cancels the work."""
        key = self._key(operation, question)
        if (kept := self.kept.find(key)) is not None:
            return kept

        def work() -> bytes:
            with cancellable(cancelled):
                check_cancelled()
                if (kept := self.kept.find(key)) is not None:  # made while this one waited
                    return kept
                content = encode(self._ask(operation, question))
                check_cancelled()
            self.kept.keep(key, content)
            return_freed()
            return content

        with self._turn(slot) as cancelled:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def stream(self, operation: Operation, question: Question, slot: str = "") -> AsyncIterator[bytes]:
        """The answer line by line; leaving the loop early cancels the rest."""
        key = self._key(operation, question)
        if (kept := self.kept.find(key)) is not None:
            yield kept
            return
        loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | BaseException | None]()

        def put(line: bytes | BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may have ended before the work did
                loop.call_soon_threadsafe(lines.put_nowait, line)

        def work() -> None:
            sent = []
            try:
                with cancellable(cancelled):
                    for line in self._lines(operation, question):
                        sent.append(line)
                        put(line)
                self.kept.keep(key, b"".join(sent))
                put(_END)
            except BaseException as problem:  # handed to the reader, who raises it again
                put(problem)
            return_freed()

        with self._turn(slot) as cancelled:
            future = self._executor.submit(work)
            try:
                while (line := await lines.get()) is not _END:
                    if isinstance(line, BaseException):
                        raise line
                    yield line
            finally:
                future.cancel()  # if it has not begun

    def warm(self, do: Callable[[], object]) -> None:
        """Do something before the first question comes: load what every question needs."""
        self._executor.submit(do)

    def close(self) -> None:
        for cancelled in tuple(self._asked):
            cancelled.set()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _lines(self, operation: Operation, question: Question) -> Iterator[bytes]:
        check_cancelled()
        for part in self._ask(operation, question):
            yield encode(part) + b"\n"
            check_cancelled()

    def _ask(self, operation: Operation, question: Question) -> Any:
        if isinstance(question, RunQuestion):
            return operation.answer(self.lab, self.lab.find(question.run), question)
        return operation.answer(self.lab, question)

    def _key(self, operation: Operation, question: Question) -> str:
        hashes: list[str] = []
        if isinstance(question, RunQuestion):
            run = self.lab.find(question.run)
            hashes = [run.checkpoint_hash(step) for step in question.saved_steps(opened(run))]
        content = "\n".join([operation.name, repr(question.values()), *hashes])
        return hashlib.sha256(content.encode()).hexdigest()

    @contextmanager
    def _turn(self, slot: str) -> Iterator[threading.Event]:
        """A slot among the questions; whoever asks again in the same slot takes it over."""
        taken = slot in self._slots
        if taken:
            self._slots[slot].set()
        if len(self._asked) >= (2 if taken else 1) * N_WAITING:  # what was superseded still waits to be told so
            raise Busy("too many questions wait for an answer; ask again in a moment.")
        cancelled = threading.Event()
        self._asked.add(cancelled)
        if slot:
            self._slots[slot] = cancelled
        try:
            yield cancelled
        finally:
            cancelled.set()
            self._asked.discard(cancelled)
            if self._slots.get(slot) is cancelled:
                del self._slots[slot]


class Answers:
    """Answers by key, the one longest unasked forgotten first once they take more than ``limit`` bytes.

    Threads may share it. An answer that alone takes more is not cached.
    """

    def __init__(self, limit: int) -> None:
        self._kept: LRUCache[str, bytes] = LRUCache(limit, getsizeof=len)
        self._lock = threading.Lock()

    @property
    def size(self) -> float:
        """How many bytes are cached."""
        return self._kept.currsize

    def find(self, key: str) -> bytes | None:
        with self._lock:
            return self._kept.get(key)

    def keep(self, key: str, content: bytes) -> None:
        with self._lock, suppress(ValueError):  # too large
            self._kept[key] = content
