"""Checkpoints to read as they are, so that a browser can run small models itself where no server answers."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel

from bindscope.web.lab import Lab, LabRun, Missing
from bindscope.web.page import BYTES, Page, Parameters, Resource
from bindscope.web.programs import KINDS as OF_PROGRAMS
from bindscope.web.sums import KINDS as OF_SUMS

MOST_PARAMETERS = 2_000_000  # of a model that is offered: 8 MB a checkpoint in full precision


def read_weights(lab: Lab, run: LabRun, step: int) -> bytes:
    """The safetensors file of a checkpoint."""
    if not is_small(run):
        raise Missing(
            f"{run.name}: its {run.run.config.model.n_parameters:,} parameters are too many to send; "
            f"weights are offered up to {MOST_PARAMETERS:,}."
        )
    return run.run.weights_file(step)


def is_small(run: LabRun) -> bool:
    """Whether a run's weights are offered."""
    return run.run.config.model.n_parameters <= MOST_PARAMETERS


def each_step(lab: Lab, run: LabRun) -> Iterable[Parameters]:
    return ({"step": str(step)} for step in run.steps if is_small(run))


PAGE = Page(
    "weights",
    resources=(
        Resource(
            "runs/{run}/weights/{step}.safetensors", read_weights, "The weights of a checkpoint", BaseModel, BYTES,
            (*OF_PROGRAMS, *OF_SUMS), each_step,
        ),
    ),
)  # fmt: skip
