"""How a model is trained, as data. No torch here, so that listing presets stays instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bindscope.errors import BindscopeError


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW for everything, or Muon for the hidden matrices and AdamW for the rest."""

    name: Literal["adamw", "muon"] = "adamw"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.01
    muon_lr: float = 0.02
    muon_momentum: float = 0.95


@dataclass(frozen=True)
class ScheduleConfig:
    """A linear warm-up from zero, then constant or falling linearly to ``final`` of the base rate at the last step."""

    kind: Literal["constant", "linear"] = "constant"
    warmup_steps: int = 0
    final: float = 0.0


@dataclass(frozen=True)
class CheckpointPlan:
    """Which steps are kept: 0 and the last always, ``per_octave`` a doubling up to ``every``, then each ``every``."""

    every: int = 200
    per_octave: int = 2
    keep: tuple[int, ...] = ()  # further steps by name


@dataclass(frozen=True)
class TrainingConfig:
    """One training run, apart from its task and model."""

    steps: int = 10_000
    batch_size: int = 64  # examples a step, over all processes
    data: Literal["stream", "fixed"] = "stream"
    epochs: int | None = None  # with fixed data: how often it is seen; then ``steps`` is derived
    loss: Literal["answer", "all"] = "answer"
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    clip: float | None = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    checkpoints: CheckpointPlan = field(default_factory=CheckpointPlan)
    evaluate_every: int = 100
    evaluation_size: int = 2000
    save_every: int = 200  # steps between savings of the state a killed run resumes from
    stop_at: float | None = (
        None  # stop when every accuracy the task watches has reached this at two evaluations running
    )

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "evaluate_every", "evaluation_size", "save_every"):
            if getattr(self, name) < 1:
                raise BindscopeError(f"training.{name}: must be at least 1, got {getattr(self, name)}.")
        if (self.epochs is not None) != (self.data == "fixed"):
            raise BindscopeError("training.epochs: give it with data = 'fixed', and only then.")
