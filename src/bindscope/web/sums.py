"""What everything about sums needs: a reader's sum as the run's task takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.web.lab import LabRun

if TYPE_CHECKING:
    import numpy as np

    from bindscope.tasks.assign_add import AssignAddTask

MAX_SUM = 200  # characters: twelve words and a sum, with room for blanks
FAMILIES = ("assign_add",)  # of runs that are about sums
SumText = Annotated[str, Field(min_length=1, max_length=MAX_SUM)]


def read_sum(run: LabRun, text: str) -> np.ndarray:
    """A sum of a reader, ``c=1 b=17 | b+19``, as tokens [16] of the run's task."""
    return sum_task(run).read(text)


def sum_task(run: LabRun) -> AssignAddTask:
    """The run's task, where sums are what it is about."""
    from bindscope.tasks.assign_add import AssignAddTask

    task = run.run.config.task
    if not isinstance(task, AssignAddTask):
        raise BindscopeError(f"{run.name}: its task is {run.family}; sums are for runs on assign_add.")
    return task
