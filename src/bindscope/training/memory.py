"""Keep freed memory in the process, so that the next step's activations need no fresh pages."""

from __future__ import annotations

import ctypes
import sys

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # names of glibc's mallopt
LARGEST_MMAP_THRESHOLD = 32 * 2**20  # glibc refuses more
NEVER_TRIM = 2**31 - 1


def keep_freed_memory() -> bool:
    """Ask the C library not to return memory to the system between steps; say whether it will.

    By default glibc maps each large tensor again and unmaps it when it dies: thousands of page faults a step. Only Linux
    with glibc knows this setting; elsewhere nothing changes. Both values are needed, and it holds for the process.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)) and bool(mallopt(TRIM_THRESHOLD, NEVER_TRIM))
