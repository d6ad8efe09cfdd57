"""Networks that were read, at hand for the next question."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

MEMORY = 512_000_000  # bytes of weights over all runs: every checkpoint of several small ones
FEWEST = 2  # that are kept however large they are: a base and a source


class Models:
    """Networks by what they were read from, the one longest unasked let go first. Threads may share it.

    >>> models.find("runs/small 3f2a…", lambda: run.checkpoint(400))
    """

    def __init__(self, limit: int = MEMORY) -> None:
        self.limit, self.size = limit, 0
        self._kept: OrderedDict[str, Transformer] = OrderedDict()
        self._lock = threading.Lock()  # its own: reading weights, and torch at first, keeps nobody from reading a run

    def find(self, key: str, load: Callable[[], Transformer]) -> Transformer:
        """The network under this key, read where it is not at hand."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = load()
                self.size += _bytes_of(self._kept[key])
                while self.size > self.limit and len(self._kept) > FEWEST:
                    self.size -= _bytes_of(self._kept.popitem(last=False)[1])
            self._kept.move_to_end(key)
            return self._kept[key]

    def __len__(self) -> int:
        return len(self._kept)


def _bytes_of(model: Transformer) -> int:
    return 4 * model.config.n_parameters
