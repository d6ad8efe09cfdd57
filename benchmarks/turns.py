"""Contenders take turns, and what came of it is printed and, for ``make bench``, noted.

Every contender has one turn in each round, in alternating order, so that all meet the same machine. What is compared is the
ratio of two contenders in the *same* round: its median over the rounds, with the least and the largest beside it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

OURS = "ours"
RECORDS = "BENCHMARK_RECORDS"  # names the file to which what is noted is appended
Clock = Callable[[], float]


@dataclass(frozen=True)
class Ratio:
    """How many times as long a peer took: the median over rounds, the least, the largest."""

    median: float
    least: float
    largest: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.median:.3g}× [{self.least:.3g}–{self.largest:.3g}]"


def choose_clock(name: str) -> Clock:
    """``cpu``: processor time of this process, for a busy machine with one thread; ``wall``: the time that passes."""
    return time.process_time if name == "cpu" else time.perf_counter


Taken = TypeVar("Taken")


def take_turns(contenders: Mapping[str, Callable[[], Taken]], rounds: int) -> dict[str, list[Taken]]:
    """What each contender returned, round by round."""
    taken: dict[str, list[Taken]] = {name: [] for name in contenders}
    for round_ in range(rounds):
        for name in contenders if round_ % 2 == 0 else reversed(list(contenders)):
            taken[name].append(contenders[name]())
    return taken


def time_in_turns(contenders: Mapping[str, Callable[[], object]], rounds: int, clock: Clock) -> dict[str, list[float]]:
    """The seconds of each contender, round by round, after each has run once."""

    def timed(work: Callable[[], object]) -> float:
        start = clock()
        work()
        return clock() - start

    for work in contenders.values():
        work()
    return take_turns({name: lambda work=work: timed(work) for name, work in contenders.items()}, rounds)


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: median(values) for name, values in seconds.items()}


def fastest(seconds: Mapping[str, list[float]]) -> str:
    """The peer with the least median; names that begin with *ours* are no peers."""
    return min((name for name in seconds if not name.startswith(OURS)), key=medians(seconds).__getitem__)


def compare(seconds: Mapping[str, list[float]], peer: str, ours: str = OURS) -> Ratio:
    ratios = [theirs / own for theirs, own in zip(seconds[peer], seconds[ours])]
    return Ratio(median(ratios), min(ratios), max(ratios), len(ratios))


def note(
    benchmark: str,
    what: str,
    *,
    ratio: Ratio | None = None,
    peer: str = "",
    seconds: float | None = None,
    bound: float | None = None,
    goal: float | None = None,
    of_peak: float | None = None,
    remark: str = "",
) -> None:
    """Append one row for the benchmarks page, where somebody asked for it."""
    if path := os.environ.get(RECORDS):
        row = dict(benchmark=benchmark, what=what, peer=peer, seconds=seconds, bound=bound, goal=goal)
        row |= dict(of_peak=of_peak, remark=remark, ratio=asdict(ratio) if ratio else None)
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
