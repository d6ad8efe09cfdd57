"""What a running training tells whoever watches it. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """One glance at a training run; sent at every evaluation and a few times a second in between.

    >>> train(..., observer=lambda progress: print(f"{progress.step}/{progress.total_steps} {progress.loss:.3f}"))
    """

    step: int  # updates made so far
    total_steps: int
    loss: float | None  # mean over the steps since the last evaluation; None before the first update
    lr: float  # base rate × schedule at the last update
    examples_per_second: float  # since the previous glance, evaluations not counted
    seconds_left: float | None  # at the present pace, evaluations counted; None before the first update
    elapsed: float  # seconds of training, over all parts of an interrupted run
    evaluation: Mapping[str, Any] | None = None  # the new evaluation, if this glance is one

    @property
    def fraction(self) -> float:
        return self.step / self.total_steps


Observer = Callable[[Progress], None]
