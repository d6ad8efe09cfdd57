"""Networks that were read, at hand for the next question."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from cachetools import LRUCache

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

MEMORY = 48_000_000  # bytes of weights over all runs: every checkpoint of a small one, or several of larger ones
FEWEST = 2  # that are cached however large they are: a base and a source


class Models:
    """Networks by what they were read from, the one longest unasked let go first. Threads may share it.

    >>> models.find("runs/small 3f2a…", lambda: run.checkpoint(400))
    """

    def __init__(self, limit: int = MEMORY) -> None:
        self.limit = limit
        self._kept: LRUCache[str, Transformer] = LRUCache(math.inf, getsizeof=_bytes_of)  # bounded in ``find``
        self._lock = threading.Lock()  # its own: reading weights, and torch at first, keeps nobody from reading a run

    def find(self, key: str, load: Callable[[], Transformer]) -> Transformer:
        """The network under this key, read where it is not at hand."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = load()
                while self._kept.currsize > self.limit and len(self._kept) > FEWEST:
                    self._kept.popitem()
            return self._kept[key]

    def __len__(self) -> int:
        return len(self._kept)


def _bytes_of(model: Transformer) -> int:
    return model.W_E.element_size() * model.config.n_parameters
