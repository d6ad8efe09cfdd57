"""How a reader makes a body again in Python."""

from __future__ import annotations

from bindscope.web.lab import LabRun


def in_python(run: LabRun, call: str, *imports: str) -> str:
    """The lines that make it: ``call`` says what is asked of the opened ``run``.

    >>> in_python(run, 'run.predict("a=5;#a:", steps="all")')
    'import bindscope\\n\\nrun = bindscope.open_run("binding-laptop")\\nrun.predict("a=5;#a:", steps="all")'
    """
    return "\n".join(["import bindscope", *imports, "", f'run = bindscope.open_run("{run.name}")', call])
