"""What a preset is: a complete configuration with a name, one sentence, and what it costs to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bindscope.model.config import ModelConfig
from bindscope.runs.config import RunConfig, fit_model
from bindscope.tasks.task import Task


@dataclass(frozen=True)
class Cost:
    """What training takes on a machine, as ``bindscope presets NAME --measure`` finds out."""

    seconds_per_step: float
    megabytes: int  # largest resident memory of the whole process
    steps: int  # how many steps it takes to the end: all, or where it stopped early
    machine: str = "2-core AMD EPYC, no GPU"

    @property
    def seconds(self) -> float:
        return self.seconds_per_step * self.steps


@dataclass(frozen=True)
class Preset:
    """One thing to train."""

    config: RunConfig
    summary: str
    base: str | None = None  # the preset that a settings file starts from

    @property
    def name(self) -> str:
        return self.config.name


def model_for(task: Task, **settings: Any) -> ModelConfig:
    """A model with the vocabulary, positions and outputs that ``task`` needs.

    >>> model_for(BindingTask(lines=6), n_layers=4).n_positions
    27
    """
    return fit_model(ModelConfig(d_vocab=1, n_positions=1, **settings), task)
