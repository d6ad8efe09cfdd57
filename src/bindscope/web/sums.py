"""What everything about sums needs: which runs it is for, and their task."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bindscope.web.lab import LabRun

if TYPE_CHECKING:
    from bindscope.tasks.assign_add import AssignAddTask

KINDS = ("sums",)  # of runs that are about them


def sum_task(run: LabRun) -> AssignAddTask:
    """The run's task, where sums are what it is about."""
    return cast("AssignAddTask", run.require("sums"))
