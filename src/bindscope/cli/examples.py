"""Examples of any family as text: token rows to what a person reads, and what a person types to a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest

if TYPE_CHECKING:
    import numpy as np

    from bindscope.tasks.task import Batch, Task

ROUNDS = 200  # how often a batch is drawn before a rare kind of example is given up


@dataclass(frozen=True)
class Example:
    """One example as a person reads it."""

    text: str
    answer: str
    facts: dict[str, Any]  # what else there is to say of it, ready for JSON


def sample_examples(
    task: Task, rng: np.random.Generator, n: int, pool: str | None = None, depth: int | None = None
) -> list[Example]:
    """Draw ``n`` one-answer examples, from training or from a named evaluation pool, of one depth if asked."""
    if n < 1:
        raise BindscopeError(f"--n: must be at least 1, got {n}.")
    if depth is not None:
        _check_depth(task, depth)
    found: list[Example] = []
    for _ in range(ROUNDS):
        batch = _draw(task, rng, max(n, 64) if depth is not None else n, pool)
        examples = (describe_example(task, batch, row) for row in range(len(batch)))
        found += [example for example in examples if depth is None or example.facts["depth"] == depth]
        if len(found) >= n:
            return found[:n]
    raise BindscopeError(f"--depth: programs of depth {depth} are too rare with these settings; ask for another depth.")


def describe_example(task: Task, batch: Batch, row: int) -> Example:
    """One row of a batch with its first answer."""
    tokens, target = batch.tokens[row], batch.targets[row, 0]
    answer = format_answer(task, target)
    if task.family == "binding":
        from bindscope.tasks.binding import Program

        program = Program.from_tokens(tokens)
        chain = [str(program.assignments[line - 1]) for line in program.chain]
        facts = {"depth": program.depth, "root_line": program.root_line, "chain": chain}
        return Example(program.text, answer, facts)
    if task.family == "text":
        return Example(task.decode(tokens), task.decode(batch.targets[row, -1:]), {})  # type: ignore[attr-defined]
    labels = {name: values[row, 0].item() for name, values in batch.labels.items()}
    if task.family == "assign_add":
        labels = {name: labels[name] for name in ("n1", "n2", "n_variables", "swap_seen") if name in labels}
    return Example(render_tokens(task, tokens), answer, labels)


def render_tokens(task: Any, tokens: np.ndarray) -> str:
    """Token ids as the family writes them."""
    if hasattr(task, "render"):
        return str(task.render(tokens))
    symbols = task.vocabulary.decode(tokens)
    return ("" if task.family == "binding" else " ").join(symbols)


def format_answer(task: Task, target: Any) -> str:
    """A target, or a model's output, in the task's own words."""
    return f"{float(target):+.3f}" if task.target_kind == "real" else task.vocabulary.symbols[int(target)]


def _draw(task: Any, rng: np.random.Generator, n: int, pool: str | None) -> Batch:
    if pool is not None:
        pools = task.sample_evaluation(rng, n)
        if pool not in pools:
            raise BindscopeError(f"--pool: there is no pool '{pool}'.{suggest_nearest(pool, pools)}")
        return pools[pool]
    if task.family == "binding":
        from dataclasses import replace

        return replace(task, queries=1).sample_batch(rng, n)
    return task.sample_batch(rng, n)


def _check_depth(task: Any, depth: int) -> None:
    if task.family != "binding":
        raise BindscopeError(f"--depth: only binding programs have a depth, not those of {task.family}.")
    if not 1 <= depth <= task.max_depth:
        raise BindscopeError(f"--depth: must lie between 1 and {task.max_depth} for this task, got {depth}.")
