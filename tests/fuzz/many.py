"""Hostile input, a great many cases of it: each ends in success or in one sentence, without much memory and without a hang.

    python tests/fuzz/many.py --cases 10000 --seed 0       # of each target; also: make fuzz

The seed and the count are printed for each target: the same two give the same cases. Memory is limited to ``MEMORY`` for the
whole process, and a case that takes longer than ``SECONDS`` ends it with the place where it hangs. It exits with 1 if anything
but a sentence came out; the smallest such case is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from bindscope.errors import BindscopeError
from fuzz.targets import TARGETS, Target

MEMORY = 6_000_000_000  # bytes of addresses, of which torch takes a good part before anything is read
SECONDS = 120  # that one case may take on a busy machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help=f"all when left out: {', '.join(TARGETS)}")
    parser.add_argument("--cases", type=int, default=10_000, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    total, failed = 0, False
    for name in arguments.targets or TARGETS:
        began = time.perf_counter()
        try:
            n_cases, n_refused = fuzz(TARGETS[name], arguments.cases, arguments.seed)
        except Exception as problem:
            failed = True
            print(f"{name}: seed {arguments.seed}: {type(problem).__name__}: {str(problem)[:300]}")
            for note in getattr(problem, "__notes__", ()):
                print(f"    {note[:1000]}")
            continue
        total += n_cases
        spent = time.perf_counter() - began
        print(
            f"{name}: seed {arguments.seed}, {n_cases:,} cases, {n_refused:,} refused with a sentence, {spent:.0f} s",
            flush=True,
        )
    print(f"{total:,} cases in all")
    sys.exit(1 if failed else 0)


def fuzz(target: Target, n_cases: int, chosen: int) -> tuple[int, int]:
    """How many cases ran, and how many were refused; anything but a sentence is raised."""
    counts = [0, 0]
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        folder = Path(made)

        @seed(chosen)
        @settings(
            max_examples=n_cases, deadline=None, database=None, suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )  # fmt: skip
        @given(target.cases)
        def take(case: Any) -> None:
            counts[0] += 1
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
            try:
                target.take(case, folder)
            except BindscopeError as problem:
                counts[1] += 1
                sentence = str(problem)
                assert sentence.strip(), "an empty sentence"
                assert "Traceback" not in sentence
            finally:
                faulthandler.cancel_dump_traceback_later()

        take()
    return counts[0], counts[1]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
