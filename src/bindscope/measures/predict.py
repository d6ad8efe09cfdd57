"""What models answer to one example of any task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.evaluation import read_answers
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Task


def predict_example(
    task: Task, models: Iterable[tuple[int, Transformer]], example: Any, render: Callable[[Any, np.ndarray], str]
) -> xr.Dataset:
    """``probability`` over (step, output), or ``value`` over (step) where the answer is a number.

    >>> predict_example(task, [(0, model)], task.read("AA"), render)
    """
    batch = task.to_batch(example)
    found = {step: read_answers(model, batch)[0].astype(float) for step, model in models}  # step → [output]
    rows = np.array(list(found.values()))
    attrs: dict[str, Any] = {"text": render(task, batch.tokens[0])}
    if task.target_kind == "real":
        target = float(batch.targets[0, 0])
        attrs |= {"answer": f"{target:+.3f}", "target": target}
        return xr.Dataset({"value": ("step", rows[:, 0])}, {"step": list(found)}, attrs)
    weights = np.exp(rows - rows.max(1, keepdims=True))
    fractions = weights / weights.sum(1, keepdims=True)
    attrs["answer"] = task.vocabulary.symbols[int(batch.targets[0, 0])]
    data = {"probability": (("step", "output"), fractions, {"units": "fraction"})}
    return xr.Dataset(data, {"step": list(found), "output": task.vocabulary.shown(rows.shape[1])}, attrs)
