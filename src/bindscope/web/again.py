"""How a reader makes a body again in Python."""

from __future__ import annotations

import json
import shlex

from bindscope.web.lab import LabRun


def in_python(run: LabRun, call: str, *imports: str) -> str:
    """The lines that make it: ``call`` says what is asked of the opened ``run``.

    >>> in_python(run, 'run.predict("a=5;#a:", steps="all")')
    'import bindscope\\n\\nrun = bindscope.open_run("binding-laptop")\\nrun.predict("a=5;#a:", steps="all")'
    """
    family = f", family={json.dumps(run.family_place)}" if run.family_place else ""
    return "\n".join(["import bindscope", *imports, "", f'run = bindscope.open_run("{run.name}"{family})', call])


def in_shell(run: LabRun, command: str) -> str:
    """A command about a run, with what it needs to find a family that is a person's own."""
    return f"{command} --family {shlex.quote(run.family_place)}" if run.family_place else command
