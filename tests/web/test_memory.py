"""Freed memory goes back to the system, seldom enough to cost nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bindscope.web import memory

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc knows how")
CODE = """
import gc, sys, threading, time
from bindscope.web import memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

assert memory.share_arenas()
taken = [bytes(2000) for _ in range(60_000)]  # 120 MB in pieces too small to be mapped by themselves
pinned, full = taken[::500], resident()
del taken
gc.collect()
kept = resident()
memory.EVERY = 0.1
for _ in range(50):
    memory.return_freed()
assert threading.active_count() == 2  # one timer, however often it is said
for _ in range(1200):
    if full - resident() > 80 * 10**6:
        break
    time.sleep(0.1)
print((full - kept) // 10**6, (full - resident()) // 10**6)
"""


@LINUX
def test_what_is_freed_is_returned_though_little_pieces_are_kept() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    by_itself, told = map(int, done.stdout.split())
    assert told > 80 > by_itself


def test_elsewhere_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_LIBRARY", None)
    monkeypatch.setattr(memory, "_planned", False)  # whatever another test has asked for
    assert not memory.share_arenas()
    memory.return_freed()
    assert not memory._planned


def test_reading_a_model_loads_no_compiler() -> None:
    """torch's own (``torch._dynamo``) takes 70 MB and a second, and nothing here compiles."""
    code = (
        "import sys; from bindscope.model import ModelConfig; from bindscope.model.transformer import Transformer; "
        "Transformer(ModelConfig(d_vocab=9, n_positions=5, n_layers=1, n_heads=1, d_model=8)); "
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
