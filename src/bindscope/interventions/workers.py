"""Independent pieces of work shared among threads.

Two threads that each compute a piece of their own leave neither waiting for the other, as two threads inside every product do.
torch lets other threads go on while it computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def map_in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], n_workers: int = 1) -> Iterator[Result]:
    """The result of every piece, in the order of the pieces, each as soon as it and all before it are there.

    >>> list(map_in_order(str.upper, ["a", "b"], n_workers=2))
    ['A', 'B']

    Several workers compute with one thread each. Whoever leaves early waits for the pieces that are at work, not for the others.
    """
    if n_workers == 1:
        yield from map(work, pieces)
        return
    waiting = deque[Future[Result]]()
    with _one_thread_each(), ThreadPoolExecutor(n_workers) as pool:
        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                if len(waiting) == 2 * n_workers:  # enough that nobody runs out of work
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Threads that begin to compute meanwhile use no others."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
