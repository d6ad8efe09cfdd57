"""``make faults``: hundreds of kills, full disks, wrong permissions and damaged files, with their counts.

>>> python -m faults --seed 0 --kills 300
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from faults.children import import_everything, start
from faults.kills import Tally, kill_often


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--kills", type=int, default=300)
    asked.add_argument("--only", action="append", help="this command alone, or damage, or machine; may be given again")
    given = asked.parse_args()
    began, tally = time.monotonic(), Tally()
    import_everything()
    print(f"seed {given.seed}; everything is imported after {time.monotonic() - began:.0f} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="bindscope-faults-") as name:
        find_faults(Path(name), given.seed, given.kills, given.only, tally)
    for what, count in tally.counts.items():
        print(f"{count:6d}  {what}")
    n_kills = sum(count for what, count in tally.counts.items() if "SIG" in what)
    print(f"{n_kills} kills, {len(tally.failures)} failures, seed {given.seed}, {time.monotonic() - began:.0f} s")
    return min(len(tally.failures), 1)


def find_faults(folder: Path, seed: int, n_kills: int, only: list[str] | None, tally: Tally) -> None:
    from faults.commands import TRAIN, all_commands, shrink_experiments
    from faults.damage import damage_everything
    from faults.machine import strain_machine

    shrink_experiments()
    first, half = folder / "first", folder / "half"
    first.mkdir()
    half.mkdir()
    child = start(TRAIN, first)
    if child.wait() != 0:
        raise SystemExit(child.said.read_text())
    interrupt(half)
    commands = all_commands(first / "run", half / "run")
    shares = sum(command.share for command in commands)
    for command in commands:
        if not only or command.name in only:
            n = -(-n_kills * command.share // shares)
            at = time.monotonic()
            kill_often(command, int(n), folder, random.Random(f"{seed} {command.name}"), tally)
            print(f"{command.name}: {int(n)} kills in {time.monotonic() - at:.0f} s", flush=True)
    for name, find in (("damage", damage_everything), ("machine", strain_machine)):
        if not only or name in only:
            at = time.monotonic()
            find(first / "run", folder, random.Random(f"{seed} {name}"), tally)
            print(f"{name}: {time.monotonic() - at:.0f} s", flush=True)


def interrupt(folder: Path) -> None:
    """A run that was killed after its first state was saved."""
    from faults.commands import TRAIN

    child = start(TRAIN, folder)
    while not (folder / "run" / "optimizer" / "latest.json").exists():
        time.sleep(0.001)
    child.send(9)
    child.wait()


if __name__ == "__main__":
    sys.exit(main())
