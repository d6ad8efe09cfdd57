"""A full disk, a read-only directory, too few open files and a clock that jumps: one sentence, and the run goes on later."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bindscope.runs.check import check_folder
from faults.children import start
from faults.commands import TRAIN, weights_of
from faults.kills import Tally

N_SIZES = 6  # of full disks


def strain_machine(trained: Path, folder: Path, rng: random.Random, tally: Tally) -> None:
    """Train under each of these, then with all well again: the run must be the one that was never disturbed."""
    whole = weights_of(trained.parent)
    if os.geteuid() == 0 and subprocess.run(["mount", "--version"], capture_output=True).returncode == 0:
        for number in range(N_SIZES):
            n_bytes = rng.randrange(16, 400) * 1024
            with _disk(folder / f"disk-{number}", n_bytes) as place:
                _refuse_then_end(place, "full disk", whole, tally, lambda place=place: _remount(place, "size=64m"))
        with _disk(folder / "closed", 64 * 2**20) as place:
            _remount(place, "ro")
            _refuse_then_end(place, "read-only directory", whole, tally, lambda: _remount(place, "rw"))
    else:
        print("machine: full disk and read-only directory are left out: mounting a file system needs root", flush=True)
    for n_open in (4, 5, 6, 8):
        place = folder / f"open-{n_open}"
        place.mkdir()
        limit = (n_open, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        _refuse_then_end(
            place, "few open files", whole, tally, before=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        )  # fmt: skip
    for name in ("forward", "back"):
        place = folder / f"clock-{name}"
        place.mkdir()
        jump = rng.uniform(3600, 10**8) * (1 if name == "forward" else -1)
        _refuse_then_end(place, f"clock jumps {name}", whole, tally, before=lambda jump=jump: _jump(jump))


def _refuse_then_end(
    place: Path,
    what: str,
    whole: object,
    tally: Tally,
    repair: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> None:
    child = start(TRAIN, place, before)
    code, said = child.wait(), child.said.read_text()
    tally.counts[f"{what}: {'it ends all the same' if code == 0 else 'refused'}"] += 1
    tally.expect(code in (0, 2) and "Traceback" not in said, f"{what}: exit code {code}:\n{said}")
    if code == 2:
        last = said.splitlines()[-1]
        tally.expect(last.startswith("bindscope: "), f"{what}: no sentence:\n{said}")
    repair()
    for found in check_folder(place):
        tally.expect(not found.damaged, f"{what}: {found.damaged}")
    child = start(TRAIN if not (place / "run").exists() else ["resume", "run"], place)
    tally.expect(child.wait() == 0, f"{what}: not gone on with:\n{child.said.read_text()}")
    tally.expect(weights_of(place) == whole, f"{what}: another run than an undisturbed one")


def _jump(seconds: float) -> None:
    """From the first evaluation on, the clock that people read is elsewhere; the one that only counts goes on."""
    true, calls = time.time, 0

    def jumped() -> float:
        nonlocal calls
        calls += 1
        return true() + (seconds if calls > 3 else 0.0)

    time.time = jumped


@contextmanager
def _disk(place: Path, n_bytes: int) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _remount(place: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)
