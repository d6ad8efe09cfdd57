"""How much faster the vectorised samplers are than the plain Python loops one would write first.

    python benchmarks/sampling_families.py

Both sides make rows of the same distribution, as arrays, in turns of at least 10 ms within one process. Times are CPU
times of this process (so that other work on the machine counts for neither side) per batch, medians over the turns. The
goal is a ratio of 30 or more.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.templates import TemplateTask
from bindscope.tasks.templates.template import Wildcard
from turns import OURS, compare, medians, note, take_turns

N_TURNS = 30
TURN_SECONDS = 0.01
Sampler = Callable[[], object]


def main() -> None:
    print(f"{'sampler':<34}{'rows':>7}{'vectorised ms':>15}{'loop ms':>10}{'ratio':>8}")
    sums = AssignAddTask()
    for n_rows in (512, 2048):
        report("assign_add sample_batch", n_rows, sums_vectorised(sums, n_rows), sums_loop(sums, n_rows))
    for name in ("aba-abb", "majority-8", "print-symbolic"):
        task = TemplateTask(name=name, alphabet=4096, test_alphabet=1024)  # type: ignore[arg-type]
        task.training_set()
        title = f"templates {name}"
        report(f"{title} sample_batch", 1024, batches_vectorised(task, 1024), strings_loop(task, 1024, "train"))
        report(f"{title} test", 1024, strings_vectorised(task, 1024), strings_loop(task, 1024, "test"))


def report(title: str, n_rows: int, vectorised: Sampler, loop: Sampler) -> None:
    """Time both in turns and print their medians with the ratio."""
    contenders = {OURS: lambda: time_one_turn(vectorised), "plain loop": lambda: time_one_turn(loop)}
    turns = take_turns(contenders, N_TURNS)
    (fast, slow), ratio = medians(turns).values(), compare(turns, "plain loop")
    print(f"{title:<34}{n_rows:>7}{fast:>15.3f}{slow:>10.2f}  {ratio}")
    note("sampling_families", f"{title}, {n_rows} rows", ratio=ratio, peer="plain loop", seconds=fast / 1e3, goal=30)


def time_one_turn(sampler: Sampler) -> float:
    """Milliseconds of CPU per call, over as many calls as fill a turn."""
    sampler()
    n_calls, start = 0, time.process_time()
    while (spent := time.process_time() - start) < TURN_SECONDS:
        sampler()
        n_calls += 1
    return 1e3 * spent / n_calls


def sums_vectorised(task: AssignAddTask, n_rows: int) -> Sampler:
    rng = np.random.default_rng(0)
    return lambda: task.sample_batch(rng, n_rows)


def sums_loop(task: AssignAddTask, n_rows: int) -> Sampler:
    rng = random.Random(0)
    pairs = [(int(n1), int(n2)) for n1, n2 in task.pairs.trained]
    swap_seen = task.pairs.is_trained.T.tolist()
    firsts, seconds = list(task.allowed_first), list(task.allowed_second)
    kinds = ["none", "first", "second", "both"]
    weights = [task.n_variables, len(firsts), len(seconds), len(firsts) * task.two_variable_frequency]

    def sample_row() -> tuple[list[int], int, list[int]]:
        kind = rng.choices(kinds, weights)[0]
        first = rng.choice(firsts) if kind in ("first", "both") else None
        second = rng.choice([v for v in seconds if v != first]) if kind in ("second", "both") else None
        n1, n2 = rng.choice(pairs)
        values = {variable: value for variable, value in ((first, n1), (second, n2)) if variable is not None}
        n_assignments = rng.randint(max(1, len(values)), 6)
        others = [variable for variable in range(task.n_variables) if variable not in values]
        for variable in rng.sample(others, n_assignments - len(values)):
            values[variable] = rng.randrange(task.modulus)
        blocks = [[task.modulus + 3 + variable, value] for variable, value in values.items()]
        rng.shuffle(blocks)
        gaps = [0] * (n_assignments + 1)
        for _ in range(12 - 2 * n_assignments):
            gaps[rng.randrange(n_assignments + 1)] += 1
        row = [task.modulus + 2] * gaps[0]
        for block, n_pads in zip(blocks, gaps[1:]):
            row += block + [task.modulus + 2] * n_pads
        operands = [task.modulus + 3 + v if v is not None else n for v, n in ((first, n1), (second, n2))]
        row += [task.modulus, *operands, task.modulus + 1]
        labels = [n1, n2, len(values), n_assignments, int(swap_seen[n1][n2])]
        return row, (n1 + n2) % task.modulus, labels

    def sample() -> tuple[np.ndarray, ...]:
        rows, targets, labels = zip(*(sample_row() for _ in range(n_rows)))
        return np.array(rows), np.array(targets)[:, None], np.array(labels)

    return sample


def batches_vectorised(task: TemplateTask, n_rows: int) -> Sampler:
    rng = np.random.default_rng(0)
    return lambda: task.sample_batch(rng, n_rows)


def strings_vectorised(task: TemplateTask, n_rows: int) -> Sampler:
    rng = np.random.default_rng(0)
    return lambda: task.draw_sequences(rng, n_rows, "test")


def strings_loop(task: TemplateTask, n_rows: int, alphabet: str) -> Sampler:
    rng = random.Random(0)
    symbols, ids = task.alphabets[alphabet], task.vocabulary.ids

    def sample_row() -> tuple[list[int], float, int]:
        index = rng.randrange(len(task.parsed_templates))
        template = task.parsed_templates[index]
        chosen = dict(zip(template.wildcards, rng.sample(symbols, len(template.wildcards))))
        row = [chosen[token.name] if isinstance(token, Wildcard) else ids[token] for token in template.tokens]
        label = task.template_set.labels[index]
        target = chosen[label] if isinstance(label, str) else label
        return [*row, len(ids) - 1], target, index

    def sample() -> tuple[np.ndarray, ...]:
        rows, targets, indices = zip(*(sample_row() for _ in range(n_rows)))
        return np.array(rows), np.array(targets)[:, None], np.array(indices)[:, None]

    return sample


if __name__ == "__main__":
    main()
