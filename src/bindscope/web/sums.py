"""What everything about sums needs: which runs it is for, and their task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.questions.opened import require_family
from bindscope.web.lab import LabRun

if TYPE_CHECKING:
    from bindscope.tasks.assign_add import AssignAddTask

FAMILIES = ("assign_add",)  # of runs that are about sums


def sum_task(run: LabRun) -> AssignAddTask:
    """The run's task, where sums are what it is about."""
    task: AssignAddTask = require_family(run.run, "assign_add", run.name)
    return task
