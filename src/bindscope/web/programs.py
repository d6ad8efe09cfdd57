"""What every page about programs needs: which runs it is for, and their task."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bindscope.web.lab import LabRun

if TYPE_CHECKING:
    from bindscope.tasks.binding.task import BindingTask

KINDS = ("programs",)  # of runs that are about them


def binding_task(run: LabRun) -> BindingTask:
    """The run's task, where programs are what it is about."""
    return cast("BindingTask", run.require("programs"))
