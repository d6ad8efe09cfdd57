"""What answers were made of goes back to the system: a server that runs for days holds what it caches, and little more.

The C library keeps freed memory for later, in several places at once (arenas) where several threads ask for some. Only
Linux with glibc can be told otherwise; elsewhere nothing changes.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time

ARENA_MAX = -8  # a name of glibc's mallopt
N_ARENAS = 2
EVERY = 5.0  # seconds between two trims: one takes some milliseconds
_LIBRARY = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
_lock = threading.Lock()
_trimmed = float("-inf")


def share_arenas() -> bool:
    """Have all threads take memory from few arenas; say whether they will. It holds for the process."""
    mallopt = getattr(_LIBRARY, "mallopt", None)
    return mallopt is not None and bool(mallopt(ARENA_MAX, N_ARENAS))


def return_freed() -> bool:
    """Give freed memory back to the system, unless that was done a moment ago; say whether it was now."""
    global _trimmed
    trim = getattr(_LIBRARY, "malloc_trim", None)
    if trim is None or not _lock.acquire(blocking=False):
        return False
    try:
        if time.monotonic() - _trimmed < EVERY:
            return False
        trim(0)
        _trimmed = time.monotonic()
        return True
    finally:
        _lock.release()
