"""Commands killed at random moments, until each has been killed often enough; what they leave is whole and goes on."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bindscope.runs.check import check_folder
from faults.children import Child, start
from faults.commands import Command, serves

KILLS_IN_A_ROW = 6  # of one folder, before the command is let end
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
FINE = {0, 143, -signal.SIGTERM, -signal.SIGKILL}  # -15: before there was anything to end in order


@dataclass
class Tally:
    """What happened, and a sentence for everything that should not have."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.failures.append(sentence)
            print(f"FAILED {sentence}", flush=True)


def kill_often(command: Command, n_kills: int, folder: Path, rng: random.Random, tally: Tally) -> None:
    """Kill a command so many times; after every few it is let end and must have made what it makes unharmed."""
    whole, seconds = _unharmed(command, folder / f"{command.name}-whole")
    n_done = n_rounds = 0
    while n_done < n_kills:
        n_rounds += 1
        where = folder / f"{command.name}-{n_rounds}"
        where.mkdir()
        command.prepare(where)
        for _ in range(min(KILLS_IN_A_ROW, n_kills - n_done)):
            arguments = command.arguments(where)
            if not arguments:
                break
            n_done += _kill_once(command, arguments, where, rng.uniform(0, seconds), rng.choice(SIGNALS), tally)
        _let_end(command, where, whole, tally)
        shutil.rmtree(where)
    tally.counts["rounds"] += n_rounds


def _unharmed(command: Command, where: Path) -> tuple[Any, float]:
    """What the command makes when nobody kills it, and how long it takes."""
    where.mkdir()
    command.prepare(where)
    began = time.monotonic()
    if command.name == "serve":
        return command.product(where), 1.5 * serves(where, command.arguments(where))
    child = start(command.arguments(where), where)
    if child.wait() != 0:
        raise SystemExit(f"{command.name} fails by itself:\n{child.said.read_text()}")
    return command.product(where), time.monotonic() - began


def _kill_once(
    command: Command, arguments: list[str], where: Path, seconds: float, number: signal.Signals, tally: Tally
) -> bool:
    """Whether the signal came before the command's end."""
    child = start(arguments, where)
    _wait(child, seconds)
    struck = child.poll() is None
    child.send(number)
    code = child.wait()
    told = f"{command.name}: {number.name} after {seconds:.3f} s: "
    said = child.said.read_text()
    tally.expect(code in FINE, f"{told}exit code {code}:\n{said}")
    tally.expect("Traceback" not in said and "ignored" not in said, f"{told}it printed\n{said}")
    tally.expect(child.workers_end(), f"{told}workers went on")
    for found in check_folder(where):
        tally.counts["files read after kills"] += found.n_files
        tally.expect(not found.damaged, f"{told}{found.damaged}")
    if struck:
        tally.counts[f"{command.name} {number.name}"] += 1
    return struck


def _wait(child: Child, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.001)


def _let_end(command: Command, where: Path, whole: Any, tally: Tally) -> None:
    arguments = command.arguments(where)
    if command.name == "serve":
        serves(where, arguments)
    elif arguments:
        child = start(arguments, where)
        code = child.wait()
        tally.expect(code == 0, f"{command.name}: given again, exit code {code}:\n{child.said.read_text()}")
    same = command.product(where) == whole
    tally.expect(same, f"{command.name}: made something else than when it was not killed, in {where}")
    tally.counts["given again, as if never killed"] += same
