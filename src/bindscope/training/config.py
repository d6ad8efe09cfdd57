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

    def __post_init__(self) -> None:
        for name in ("lr", "muon_lr"):
            _require(getattr(self, name) > 0, f"optimizer.{name}", "must be above 0", getattr(self, name))
        for name, value in (
            ("betas", min(self.betas)),
            ("betas", max(self.betas)),
            ("muon_momentum", self.muon_momentum),
        ):
            _require(0 <= value < 1, f"optimizer.{name}", "must lie in [0, 1)", value)
        _require(self.weight_decay >= 0, "optimizer.weight_decay", "must not be negative", self.weight_decay)


@dataclass(frozen=True)
class ScheduleConfig:
    """A linear warm-up from zero, then constant or falling linearly to ``final`` of the base rate at the last step.

    ``hold_steps``: how long the rate stays before it falls. ``hold_stages``: with staged data, it does not fall before
    the last stage has begun either. ``fall_steps``: the fall takes so many steps wherever it begins, and training
    ends with it, at the latest at the last step.
    """

    kind: Literal["constant", "linear"] = "constant"
    warmup_steps: int = 0
    final: float = 0.0
    hold_steps: int = 0
    hold_stages: bool = False
    fall_steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("warmup_steps", "hold_steps"):
            _require(getattr(self, name) >= 0, f"schedule.{name}", "must not be negative", getattr(self, name))
        if self.fall_steps is not None:
            _require(self.fall_steps >= 1, "schedule.fall_steps", "must be at least 1, or none", self.fall_steps)
            _require(self.kind == "linear", "schedule.fall_steps", "only a linear schedule falls", self.kind)
        _require(0 <= self.final <= 1, "schedule.final", "must lie in [0, 1]", self.final)


@dataclass(frozen=True)
class CheckpointPlan:
    """Which steps are saved: 0 and the last always, ``per_octave`` a doubling up to ``every``, then each ``every``."""

    every: int = 200
    per_octave: int = 2
    keep: tuple[int, ...] = ()  # further steps by name

    def __post_init__(self) -> None:
        _require(self.every >= 1, "checkpoints.every", "must be at least 1", self.every)
        _require(self.per_octave >= 0, "checkpoints.per_octave", "must not be negative", self.per_octave)
        for step in self.keep:
            _require(step >= 0, "checkpoints.keep", "a step must not be negative", step)


@dataclass(frozen=True)
class TrainingConfig:
    """One training run, apart from its task and model."""

    steps: int = 10_000  # how many to train, where ``epochs`` does not say it
    batch_size: int = 64  # examples a step, over all processes
    accumulate: int = 1  # gradient accumulation: each process takes its rows in so many parts, for less memory
    data: Literal["stream", "fixed"] = "stream"
    epochs: int | None = None  # with fixed data: how often it is seen, instead of ``steps``
    loss: Literal["answer", "all"] = "answer"
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    clip: float | None = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    checkpoints: CheckpointPlan = field(default_factory=CheckpointPlan)
    evaluate_every: int = 100
    evaluate_early: bool = False  # also at every checkpoint before the first of these: the random phase is short
    evaluation_size: int = 2000
    save_every: int = 200  # steps between savings of the state a killed run resumes from
    trained: Literal["all", "last"] = "all"  # last: nothing but the unembedding
    stop_at: float | None = None  # stop once every watched accuracy has reached this at two evaluations running
    stop_below: float | None = None  # … or the watched loss has fallen to this
    stop_fitted: float | None = None  # … or the training loss has, and nothing is left to learn from

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulate", "evaluate_every", "evaluation_size", "save_every"):
            _require(getattr(self, name) >= 1, name, "must be at least 1", getattr(self, name))
        most = f"must not be more than the {self.batch_size} examples of training.batch_size"
        _require(self.accumulate <= self.batch_size, "accumulate", most, self.accumulate)
        if self.epochs is not None:
            if self.data != "fixed":
                raise BindscopeError("training.epochs: only with data = 'fixed' is there something to see again.")
            _require(self.epochs >= 1, "epochs", "must be at least 1", self.epochs)
        if self.clip is not None:
            _require(self.clip > 0, "clip", "must be above 0, or none", self.clip)
        if self.stop_at is not None:
            _require(0 < self.stop_at <= 1, "stop_at", "must lie in (0, 1]", self.stop_at)
        for name in ("stop_below", "stop_fitted"):
            if getattr(self, name) is not None:
                _require(getattr(self, name) > 0, name, "must be above 0, or none", getattr(self, name))


def _require(holds: bool, key: str, rule: str, value: object) -> None:
    if not holds:
        raise BindscopeError(f"training.{key}: {rule}, got {value}.")
