"""What every page about programs needs: which runs it is for, and their task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.questions.opened import require_family
from bindscope.web.lab import LabRun

if TYPE_CHECKING:
    from bindscope.tasks.binding.task import BindingTask

FAMILIES = ("binding",)  # of runs that are about programs


def binding_task(run: LabRun) -> BindingTask:
    """The run's task, where programs are what it is about."""
    task: BindingTask = require_family(run.run, "binding", run.name)
    return task
