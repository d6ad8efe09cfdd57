"""Does the kernel say which templates are learned, and how soon? The same curves on tasks that it tells apart.

The tasks are pairs (and fours) of templates whose N has smallest eigenvalues from 0 up to 0.07. Without positions, a model
sees no order: whatever is told apart by order alone has a singular N there, and no number of sequences can teach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bindscope.studies.framework.experiments import Experiment, Variant, defer
from bindscope.studies.symbols.experiments.define import LIMITS, curve

USUAL = (64, 128, 256, 512, 1024)
SMALL = (8, 16, 32, 64, 128)
MODIFIED = (16, 32, 64, 128)
SEEDS = 2


@dataclass(frozen=True)
class LearnedTask:
    """Templates with their labels, and whether the model that is to learn them has positions."""

    name: str  # as in the names of variants
    templates: tuple[str, ...]
    labels: tuple[float, ...]
    positions: bool = True
    sizes: tuple[int, ...] = USUAL  # n that the plain transformer is trained on
    modified: tuple[int, ...] = MODIFIED  # … and the one with both identity scalings
    borrowed: str | None = None  # the experiment whose curves are of this task already

    @property
    def title(self) -> str:
        """For tables and figures: ``AA/AB``, and what the labels depend on where templates alone do not say it."""
        return "/".join(self.templates) + ("" if self.positions else ", no positions")


def _pair(*templates: str, **more: Any) -> LearnedTask:
    ending = "" if more.get("positions", True) else "-unordered"
    return LearnedTask("-".join(templates).lower() + ending, templates, (1.0, -1.0), **more)


_TAGGED = ("xAA", "xAB", "yAA", "yAB")
TASKS: tuple[LearnedTask, ...] = (
    LearnedTask("same-different", ("AA", "AB"), (1.0, -1.0), borrowed="same-different"),
    LearnedTask("aba-abb", ("ABA", "ABB"), (1.0, -1.0), borrowed="aba-abb"),
    _pair("xA", "yA", sizes=(4, 8, 16, 32, 64), modified=()),
    _pair("AABB", "ABAB"),
    _pair("AAB", "ABB"),
    _pair("ABC", "ABA"),
    _pair("AAAA", "ABCD"),
    _pair("ABCD", "ABCA"),
    _pair("ABCDE", "ABCDA"),
    _pair("AAAAAA", "ABCDEF", sizes=USUAL[:4]),
    _pair("ABCABC", "ABCCBA"),
    LearnedTask("tag", _TAGGED, (1.0, 1.0, -1.0, -1.0), sizes=SMALL, modified=()),
    LearnedTask("tagged-equality", _TAGGED, (1.0, -1.0, 1.0, -1.0)),
    LearnedTask("tag-or-equality", _TAGGED, (1.0, -1.0, -1.0, 1.0)),
    _pair("AA", "AB", positions=False, sizes=USUAL, modified=()),
    _pair("AAB", "ABA", positions=False, sizes=USUAL[:4], modified=(128,)),
    _pair("AABB", "ABAB", positions=False, sizes=USUAL[:4], modified=(128,)),
)


def find_task(name: str) -> LearnedTask:
    """The task of that name."""
    return {task.name: task for task in TASKS}[name]


def _curve(task: LearnedTask, model: str, sizes: Sequence[int]) -> tuple[Variant, ...]:
    templates = {"task.templates": list(task.templates), "task.labels": list(task.labels)}
    changes: dict[str, Any] = {"task.name": "custom", **templates}
    if not task.positions:
        changes["model.positions"] = "none"
    return tuple(
        Variant(
            f"{task.name}-{variant.name}",
            f"{task.title}, {variant.meaning}",
            {**changes, **variant.changes},
            labels={**variant.labels, "task": task.name},
        )
        for variant in curve(model, sizes)
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="learnability",
        question="Does the kernel say which templates are learned, and from how many sequences?",
        preset="templates-same-different",
        variants=tuple(
            variant
            for task in TASKS
            if task.borrowed is None
            for model, sizes in (("plain", task.sizes), ("both", task.modified))
            for variant in _curve(task, model, sizes)
        ),
        seeds=SEEDS,
        limits=f"{LIMITS} Tasks were chosen by their kernels, before any was trained.",
        changes={"training.checkpoints.every": 10**6, "training.checkpoints.per_octave": 0, "training.save_every": 500},
        conclude=defer("bindscope.studies.symbols.kernel.learnability", "conclude_learnability"),
        draw=defer("bindscope.studies.symbols.kernel.draw", "draw_learnability"),
        measure=defer("bindscope.studies.symbols.kernel.learnability", "measure_kernels"),
        minutes=0.3,
    ),
)
