"""How a reader makes a body again that no live question stands behind: by the renderer of questions."""

from __future__ import annotations

from typing import Any

from bindscope.questions.render import write_command, write_python
from bindscope.web.lab import LabRun


def in_python(run: LabRun, call: str, *imports: str) -> str:
    """The lines that make it: ``call`` says what is asked of the opened ``run``.

    >>> in_python(run, 'run.result("lens")')
    'import bindscope\\n\\nrun = bindscope.open_run("binding-laptop")\\nrun.result("lens")'
    """
    return write_python(call, *imports, name=run.name, family=run.family_location)


def in_shell(run: LabRun, command: str, *words: str, **options: Any) -> str:
    """A command about a run, with what it needs to find a family that is a person's own.

    >>> in_shell(run, "patch", grid="heads", steps="all")
    'bindscope patch binding-laptop --grid heads --steps all'
    """
    return write_command(command, run.name, *words, family=run.family_location, **options)
