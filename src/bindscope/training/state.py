"""What a training run needs to go on, and who keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn


@dataclass(frozen=True)
class Tally:
    """The few numbers besides tensors that a resumed run continues from."""

    step: int = 0  # updates made
    streak: int = 0  # evaluations running at which every watched accuracy had reached the target
    loss_sum: float = 0.0  # over the steps since the last evaluation
    loss_count: int = 0
    elapsed: float = 0.0  # seconds
    finished: bool = False
    stage_starts: tuple[int, ...] = ()  # of staged data: the step at which each stage after the first began

    @property
    def mean_loss(self) -> float | None:
        return self.loss_sum / self.loss_count if self.loss_count else None


def read_tally(values: Mapping[str, Any]) -> Tally:
    """A tally from the plain values it was kept as."""
    return Tally(**{**values, "stage_starts": tuple(values.get("stage_starts", ()))})


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All that training after ``tally.step`` depends on, besides the config: data and dropout are pure in the step."""

    tally: Tally
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]


class Keeper(Protocol):
    """Where training leaves what must last. ``runs`` keeps it on disk; tests keep it in memory.

    A step's weights and evaluation are handed over before the state of that step, so whoever resumes from a state has
    everything up to it.
    """

    def keep_weights(self, step: int, model: nn.Module) -> None: ...

    def keep_evaluation(self, record: Mapping[str, Any]) -> None: ...

    def keep_state(self, state: TrainingState) -> None: ...


@dataclass(eq=False)
class MemoryKeeper:
    """Keeps everything in lists, for tests and notebooks.

    >>> train(model, loader, config, ..., keeper=(kept := MemoryKeeper()))
    >>> kept.evaluations[-1]["test"]["accuracy"]
    """

    weights: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    states: dict[int, TrainingState] = field(default_factory=dict)

    def keep_weights(self, step: int, model: nn.Module) -> None:
        self.weights[step] = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}

    def keep_evaluation(self, record: Mapping[str, Any]) -> None:
        self.evaluations.append(dict(record))

    def keep_state(self, state: TrainingState) -> None:
        self.states[state.tally.step] = state
