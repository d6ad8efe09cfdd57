"""How much faster the vectorised samplers are than plain Python loops.

    python benchmarks/sampling.py [--rounds 7]

Both samplers alternate in one process, so that both meet the same machine; the ratio of their median processor times
is printed. Both give tokens, answers and the same labels.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from binding_loop import encode_question, label_question, sample_question
from bindscope.tasks.binding import BindingTask
from turns import OURS, choose_clock, compare, medians, note, time_in_turns

GOAL = 30.0


@dataclass(frozen=True)
class Comparison:
    """Two ways to draw the same number of examples."""

    name: str
    vectorised: Callable[[], object]
    loop: Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each pair alternates")
    rounds = parser.parse_args().rounds
    print(f"{'sampler':44} {'vectorised':>12} {'loop':>12} {'ratio':>8}")
    for comparison in [binding_comparison(n_programs) for n_programs in (64, 512, 4096)]:
        contenders = {OURS: comparison.vectorised, "plain loop": comparison.loop}
        turns = time_in_turns(contenders, rounds, choose_clock("cpu"))
        vectorised, loop = medians(turns).values()
        ratio = compare(turns, "plain loop")
        note("sampling", f"sampling {comparison.name}", ratio=ratio, peer="plain loop", seconds=vectorised, goal=GOAL)
        print(f"{comparison.name:44} {vectorised * 1e3:9.2f} ms {loop * 1e3:9.2f} ms   {ratio}  (goal ≥ {GOAL:.0f}×)")


def binding_comparison(n_programs: int) -> Comparison:
    """Programs of 16 lines, depth ≤ 4, one query of balanced depth each: tokens, answers and labels."""
    task, rng, plain = BindingTask(), np.random.default_rng(0), random.Random(0)

    def loop() -> tuple[np.ndarray, ...]:
        questions = [
            sample_question(plain, task.lines, task.max_depth, task.p_constant, task.exponent)
            for _ in range(n_programs)
        ]
        tokens = np.array([encode_question(lines, query) for lines, query in questions])
        answers = np.array([query.value for _, query in questions])
        labels = [label_question(lines, query) for lines, query in questions]
        return tokens, answers, *(np.array([label[name] for label in labels]) for name in labels[0])

    return Comparison(
        f"binding, {n_programs} programs of {task.lines} lines", lambda: task.sample_batch(rng, n_programs), loop
    )


if __name__ == "__main__":
    main()
