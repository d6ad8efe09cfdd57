"""Examples of any family as text: drawn from a task, or typed by a person. How they are written is the family's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError, suggest_nearest

if TYPE_CHECKING:
    import numpy as np

    from bindscope.families import Example
    from bindscope.tasks.task import Batch, Task

ROUNDS = 200  # how often a batch is drawn before a rare kind of example is given up


def sample_examples(
    task: Task, rng: np.random.Generator, n: int, split: str | None = None, depth: int | None = None
) -> list[Example]:
    """Draw ``n`` one-answer examples, from training or from a named evaluation split, of one depth if asked."""
    from bindscope.families import family_of

    family = family_of(task)
    if n < 1:
        raise BindscopeError(f"--n: must be at least 1, got {n}.")
    if depth is not None:
        family.check_depth(task, depth)
    found: list[Example] = []
    for _ in range(ROUNDS):
        n_drawn = max(n, 64) if depth is not None else n
        batch = family.draw_examples(task, rng, n_drawn) if split is None else _draw_split(task, rng, n_drawn, split)
        examples = (family.describe_example(task, batch, row) for row in range(len(batch)))
        found += [example for example in examples if depth is None or example.facts["depth"] == depth]
        if len(found) >= n:
            return found[:n]
    raise BindscopeError(f"--depth: programs of depth {depth} are too rare with these settings; ask for another depth.")


def describe_example(task: Task, batch: Batch, row: int) -> Example:
    """One row of a batch with its first answer."""
    from bindscope.families import family_of

    return family_of(task).describe_example(task, batch, row)


def _draw_split(task: Task, rng: np.random.Generator, n: int, split: str) -> Batch:
    splits = task.sample_evaluation(rng, n)
    if split not in splits:
        raise BindscopeError(f"--split: there is no split '{split}'.{suggest_nearest(split, splits)}")
    return splits[split]
