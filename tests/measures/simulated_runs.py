"""Binding runs whose phases are known because we choose them: predictions on real programs from a mix of heuristics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bindscope.measures.scores import score_binding
from bindscope.tasks.task import Batch, Layout

DIGITS = np.concatenate([np.arange(10), -np.ones(30)]).astype(np.int64)  # output → digit, as in the binding vocabulary


@dataclass(frozen=True)
class SimulatedRun:
    """When a simulated model stops guessing, and when it masters each depth (one step per depth, None = never)."""

    last_step: int = 2000
    every: int = 50
    leaves_random: int | None = 100
    masters: tuple[int | None, ...] = (1200, 1400, 1500)
    n_lines: int = 6
    n_examples: int = 1000
    seed: int = 0

    def records(self) -> list[dict[str, Any]]:
        """As a run's metrics would hold them."""
        rng = np.random.default_rng(self.seed)
        batch, constants = sample_programs(rng, self.n_examples, self.n_lines, len(self.masters))
        return [
            {
                "step": step,
                "loss": None if step == 0 else 1.0,
                "examples": 64 * step,
                "elapsed": 0.1 * step,
                **self._evaluate(rng, step, batch, constants),
            }
            for step in range(0, self.last_step + 1, self.every)
        ]

    def _evaluate(self, rng: np.random.Generator, step: int, batch: Batch, constants: np.ndarray) -> dict[str, Any]:
        answers, depth = batch.targets[:, 0], batch.labels["depth"][:, 0]
        line_1, line_2 = constants[:, 0], constants[:, 1]
        random = rng.integers(0, 10, len(answers))
        early = np.where((line_2 >= 0) & (rng.random(len(answers)) < 0.25), line_2, line_1)
        early = np.where(rng.random(len(answers)) < 0.9, early, answers)
        masters = np.array([np.inf if m is None else m for m in self.masters])[depth - 1]
        knows = rng.random(len(answers)) < _rise(step, masters, width=40) * 0.998
        heuristic = early if self.leaves_random is not None and step > self.leaves_random else random
        predicted = np.where(knows, answers, heuristic)
        outputs = np.full((len(answers), len(DIGITS)), -8.0, dtype=np.float32)
        outputs[np.arange(len(answers)), predicted] = 2.0
        test = score_binding(outputs, batch, constants, DIGITS)
        watched = {f"depth {d}": a for d, a in enumerate(test["accuracy_by_depth"], start=1)}
        return {"test": test, "watched": watched}


def sample_programs(
    rng: np.random.Generator, n: int, n_lines: int, max_depth: int, p_constant: float = 0.5
) -> tuple[Batch, np.ndarray]:
    """Programs with one query each, described by labels alone, and the constant of each line [program, line]."""
    constants, depth, root, value = (np.zeros((n, n_lines), dtype=np.int64) for _ in range(4))
    rows = np.arange(n)
    for line in range(n_lines):
        digit = rng.integers(0, 10, n)
        weights = depth[:, :line].astype(float) ** 3 * (depth[:, :line] < max_depth)  # [program, earlier line]
        total = weights.sum(1)
        is_constant = (rng.random(n) < p_constant) | (total == 0)
        source = (weights.cumsum(1) > (rng.random(n) * total)[:, None]).argmax(1) if line else np.zeros(n, int)
        constants[:, line] = np.where(is_constant, digit, -1)
        value[:, line] = np.where(is_constant, digit, value[rows, source])
        depth[:, line] = np.where(is_constant, 1, depth[rows, source] + 1)
        root[:, line] = np.where(is_constant, line, root[rows, source])
    wanted = rng.integers(1, max_depth + 1, n)
    queried = (rng.random((n, n_lines)) - 10 * (depth == wanted[:, None])).argmin(1)
    last = n_lines - 1 - (constants[:, ::-1] >= 0).argmax(1)
    latest = np.maximum.accumulate(np.where(constants >= 0, np.arange(n_lines), 0), axis=1)  # [program, line]
    labels = {
        "depth": depth[rows, queried],
        "root_line": root[rows, queried] + 1,
        "lines": np.full(n, n_lines),
        "rule_line_1": constants[:, 0],
        "rule_line_2": constants[:, 1],
        "rule_first_constant": constants[:, 0],
        "rule_most_recent": constants[rows, last],
        "rule_positional": constants[rows, latest[rows, queried]],
    }
    batch = Batch(
        tokens=np.zeros((n, 1), dtype=np.int64),
        layout=Layout(np.arange(1)),
        target_positions=np.array([0]),
        targets=value[rows, queried][:, None],
        labels={name: values[:, None] for name, values in labels.items()},
    )
    return batch, constants


def _rise(step: int, at: np.ndarray, width: float) -> np.ndarray:
    """A smooth step from 0 to 1 that passes 0.9 at ``at``."""
    exponent = np.clip((at - width * np.log(9) - step) / width, -50, 50)
    return 1 / (1 + np.exp(exponent))
