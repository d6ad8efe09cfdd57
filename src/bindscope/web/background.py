"""One thread that works in the background, and that a process does not wait for when it ends.

Python waits at its end for every thread of a ``ThreadPoolExecutor``, and a thread that imports torch cannot be told to
stop. This one is a daemon: who ends the server has their prompt back at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

NAME = "live"  # of the thread, by which ``cli.main`` (its BACKGROUND) sees whether it is still at work

T = TypeVar("T")


class Background(Executor):
    """Does what is submitted, one after another.

    >>> Background().submit(sum, [1, 2]).result()
    3
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None  # begins with the first thing to do

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker is closed")
            self._jobs.put((future, lambda: function(*arguments, **named)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=NAME, daemon=True)
                self._thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._closed = True
            while cancel_futures and not self._jobs.empty():
                if (job := self._jobs.get()) is not None:
                    job[0].cancel()
            self._jobs.put(None)
        if wait and self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, do = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(do())
                except BaseException as problem:  # handed to who waits for it
                    future.set_exception(problem)
            del job, future, do  # an answer is not kept until the next question
