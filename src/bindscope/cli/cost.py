"""What a preset costs on this machine: a short real training run, timed."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bindscope.runs.config import RunConfig
    from bindscope.studies.framework.preset import Cost

N_STEPS = 30


def measure_cost(config: RunConfig, n_steps: int = N_STEPS, device: str = "auto") -> Cost:
    """Train ``n_steps`` steps in a temporary folder; the first third warms up and is not counted.

    A step's seconds include its part of the regular evaluations; memory is the largest this process ever held.
    """
    from bindscope.measures.evaluation import build_evaluator
    from bindscope.runs.config import override
    from bindscope.runs.execute import train_run
    from bindscope.studies.framework.preset import Cost

    training = config.training
    evaluator = build_evaluator(config.task, training.evaluation_size, config.seeds["evaluation"])
    moments: list[tuple[float, float]] = []  # (before, after) of each evaluation

    def evaluate(model: Any) -> Mapping[str, Any]:
        before = time.perf_counter()
        evaluation = evaluator(model)
        moments.append((before, time.perf_counter()))
        return evaluation

    warm = n_steps // 3
    changes: dict[str, Any] = {"training.evaluate_every": warm, "training.checkpoints.per_octave": 0}
    changes |= dict.fromkeys(("training.stop_at", "training.stop_below", "training.stop_fitted"))
    changes |= {"training.checkpoints.every": n_steps, "training.save_every": n_steps} | _stop_after(config, n_steps)
    with tempfile.TemporaryDirectory() as folder:
        train_run(override(config, changes), Path(folder) / "run", device=device, evaluate=evaluate)
    updates = moments[-1][0] - moments[1][1] - sum(after - before for before, after in moments[2:-1])
    evaluation = min(after - before for before, after in moments)
    per_step = updates / (n_steps - warm) + evaluation / training.evaluate_every
    return Cost(
        seconds_per_step=per_step, megabytes=_peak_megabytes(), steps=config.total_steps, machine="this machine"
    )


def _stop_after(config: RunConfig, n_steps: int) -> dict[str, Any]:
    """A fixed dataset is made just large enough, or drawn from: what a step costs does not depend on how many there are."""
    if config.dataset is None:
        return {"training.data": "stream", "training.epochs": None, "training.steps": n_steps}
    return {"training.epochs": 1, "dataset.train": n_steps * config.training.batch_size, "dataset.test": 0}


def _peak_megabytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6)
