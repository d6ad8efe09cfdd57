"""What answers were made of goes back to the system: a server that runs for days holds what it caches, and little more.

The C library keeps freed memory for later, in several places at once (arenas) where several threads ask for some. Only
Linux with glibc can be told otherwise; elsewhere nothing changes.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

ARENA_MAX = -8  # a name of glibc's mallopt
N_ARENAS = 2
EVERY = 3.0  # seconds between two trims: one takes some milliseconds
_LIBRARY = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
_lock = threading.Lock()
_planned = False


def share_arenas() -> bool:
    """Have all threads take memory from few arenas; say whether they will. It holds for the process."""
    mallopt = getattr(_LIBRARY, "mallopt", None)
    return mallopt is not None and bool(mallopt(ARENA_MAX, N_ARENAS))


def return_freed() -> None:
    """Give freed memory back to the system, soon: however often this is said, at most every few seconds."""
    global _planned
    if getattr(_LIBRARY, "malloc_trim", None) is None:
        return
    with _lock:
        if _planned:
            return
        _planned = True
    timer = threading.Timer(EVERY, _trim)
    timer.daemon = True
    timer.start()


def _trim() -> None:
    global _planned
    with _lock:
        _planned = False
    gc.collect()  # what answers were made of may hold itself
    _LIBRARY.malloc_trim(0)
