"""``bindscope evaluate``: how good one checkpoint is, with intervals."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.table import format_table
from bindscope.runs.locate import find_run

if TYPE_CHECKING:
    from bindscope.tasks.task import Batch, Task


def evaluate(
    run: str,
    /,
    *,
    step: str = "last",
    n: AtLeastOne = 2000,
    seed: Seed = 1,
    every: Flag = False,
    place: Place = HERE,
    json: Flag = False,
) -> None:
    """Measure a checkpoint's accuracy, by depth and more.

    Every fraction comes with its 95 % Wilson interval. The examples are drawn again
    with --seed, never from training.

    Examples:
        bindscope evaluate binding-laptop
        bindscope evaluate binding-laptop --step 1000 --n 10000
        bindscope evaluate assign-add --every
        bindscope evaluate runs/fast --json

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    step
        Which checkpoint: a step, or 'last'.
    n
        How many examples each split has.
    seed
        The seed that draws them.
    every
        Ask every sum of each split once (all held-out pairs, every variable) instead of drawing --n; modular addition only.
    json
        Print the measurements as JSON instead of tables.
    """
    from bindscope.measures.evaluation import build_evaluator
    from bindscope.runs.directory import Run

    opened = Run.open(find_run(run), place)
    found = opened.find_step(step)
    splits = _list_splits(opened.config.task, seed) if every else None
    evaluation = build_evaluator(opened.config.task, 1 if every else n, seed, splits)(opened.checkpoint(found))
    if json:
        asked = {"every": True} if every else {"n": n}
        print(json_format.dumps({"run": opened.name, "step": found, **asked, "seed": seed, **evaluation}))
    else:
        print(f"{opened.name} at step {found:,}; fractions with 95 % Wilson intervals\n")
        print(format_evaluation(evaluation))


def _list_splits(task: Task, seed: int) -> dict[str, Batch]:
    """Every sum of each split once; the seed draws what stands around them."""
    import numpy as np

    from bindscope.errors import BindscopeError
    from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask

    if not isinstance(task, AssignAddTask):
        raise BindscopeError(f"--every: a {task.family} task has no splits that can be listed; use --n.")
    rng = np.random.default_rng(seed)
    return {name: task.list_split(rng, name) for name in SPLIT_NAMES}


def format_evaluation(evaluation: Mapping[str, Any]) -> str:
    """All splits of an evaluation as tables."""
    splits = {name: split for name, split in evaluation.items() if not name.startswith("watched")}
    rows = [
        [name, *_fraction_cells(split["accuracy"], split["n"]), f"{split['loss']:.4f}"]
        for name, split in splits.items()
    ]
    headings = ["split", "accuracy", "interval", "n", "loss"]
    if any("perplexity" in split for split in splits.values()):
        headings, rows = [*headings, "perplexity"], [[*row, f"{splits[row[0]]['perplexity']:.2f}"] for row in rows]
    tables = [format_table(headings, rows, numbers=[1, 3, 4, 5][: len(headings) - 2])]
    for name, split in splits.items():
        title = f"{name}: " if len(splits) > 1 else ""
        tables += [f"{title}{heading}\n{table}" for heading, table in _detail_tables(split)]
    return "\n\n".join(tables)


def _detail_tables(split: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """What a split says beyond its accuracy: programs by depth, root line and rule, sums by what training showed."""
    for group in ("depth", "root_line"):
        if f"accuracy_by_{group}" in split:
            pairs = zip(split[f"accuracy_by_{group}"], split[f"n_by_{group}"])
            rows = [[str(index), *_fraction_cells(fraction, n)] for index, (fraction, n) in enumerate(pairs, start=1)]
            words = group.replace("_", " ")
            yield f"accuracy by {words}", format_table([words, "accuracy", "interval", "n"], rows, numbers=[0, 1, 3])
    if "agreement" in split:
        yield "how often predictions follow a rule, and how often the rule is right", _rule_table(split)
    if "random_variable" in split:
        chosen = split["random_variable"]
        rows = [["the value of some variable", *_fraction_cells(chosen["followed"], split["n"])]]
        right = _format_fraction(chosen["right"])
        yield (
            f"predictions from the program; a random variable's value is right in {right}",
            format_table(_HEADINGS, rows, numbers=[1, 3]),
        )
    if "misleading" in split:
        scores = split["misleading"]
        sources = {"the chain": scores["follows_chain"], "line 1 or 2": scores["follows_early_lines"]}
        rows = [[source, *_fraction_cells(fraction, scores["n"])] for source, fraction in sources.items()]
        yield "where lines 1 and 2 mislead, predictions follow", format_table(_HEADINGS, rows, numbers=[1, 3])
    if "swap_seen" in split:
        halves = {"seen swapped": split["swap_seen"], "never seen": split["both_held"]}
        rows = [[name, *_fraction_cells(half["accuracy"], half["n"])] for name, half in halves.items()]
        yield "held-out pairs by what training showed", format_table(_HEADINGS, rows, numbers=[1, 3])


_HEADINGS = ["", "fraction", "interval", "n"]


def _rule_table(split: Mapping[str, Any]) -> str:
    rows = [
        [
            rule.replace("_", " "),
            *_fraction_cells(fraction, split["rule_n"][rule]),
            _format_fraction(split["rule_accuracy"][rule]),
        ]
        for rule, fraction in split["agreement"].items()
    ]
    return format_table(["rule", "followed", "interval", "n", "right"], rows, numbers=[1, 3, 4])


def _fraction_cells(fraction: float | None, n: int) -> list[str]:
    """A fraction, its interval and the count behind it, as three cells."""
    from bindscope.intervals import wilson_interval

    if fraction is None or not n:
        return ["–", "–", str(n)]
    low, high = wilson_interval(round(fraction * n), n)
    return [_format_fraction(fraction), f"{float(low):.4f}–{float(high):.4f}", str(n)]


def _format_fraction(fraction: float | None) -> str:
    return "–" if fraction is None else f"{fraction:.4f}"
