"""Where the arithmetic happens: the device and number type by name, and how many threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bindscope.errors import BindscopeError, suggest_nearest

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = ("float32", "float64", "bfloat16", "float16")


def select_device(name: str, local_rank: int = 0) -> torch.device:
    """The device a person asked for, or the fastest one present for ``auto``.

    >>> select_device("auto")
    device(type='cpu')
    """
    if name not in DEVICES:
        raise BindscopeError(f"device: unknown device {name!r}.{suggest_nearest(name, DEVICES)}")
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if present[kind])
    if not present[name]:
        usable = ", ".join(kind for kind, here in present.items() if here)
        raise BindscopeError(f"device: this machine's torch has no {name}; usable here: {usable}.")
    if name != "cuda":
        return torch.device(name)
    if local_rank >= torch.cuda.device_count():
        raise BindscopeError(
            f"device: process {local_rank} has no GPU of its own, this machine has {torch.cuda.device_count()}; "
            "start at most that many processes."
        )
    return torch.device("cuda", local_rank)


def select_dtype(name: str, device: torch.device) -> torch.dtype:
    """The number type a person asked for, which the device must be able to multiply matrices in.

    >>> select_dtype("float64", torch.device("cpu"))
    torch.float64
    """
    if name not in DTYPES:
        raise BindscopeError(f"dtype: unknown number type {name!r}.{suggest_nearest(name, DTYPES)}")
    dtype: torch.dtype = getattr(torch, name)
    if not _multiplies(device, dtype):
        usable = ", ".join(each for each in DTYPES if _multiplies(device, getattr(torch, each)))
        raise BindscopeError(f"dtype: {device.type} has no {name}; usable there: {usable}.")
    return dtype


def _multiplies(device: torch.device, dtype: torch.dtype) -> bool:
    try:
        ones = torch.ones(2, 2, device=device, dtype=dtype)
        return bool((ones @ ones == 2).all())
    except (TypeError, RuntimeError):
        return False


@contextmanager
def use_threads(n_threads: int | None) -> Iterator[int]:
    """Compute with this many CPU threads inside the block (None: as torch is set); yields the number in use."""
    if n_threads is not None and n_threads < 1:
        raise BindscopeError(f"threads: must be at least 1, got {n_threads}.")
    before = torch.get_num_threads()
    try:
        if n_threads is not None:
            torch.set_num_threads(n_threads)
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
