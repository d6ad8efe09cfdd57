"""From a name to a view: which class shows a run is decided by the family of its task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bindscope.notebook.drawn import show_figures
from bindscope.notebook.programs import ProgramsView
from bindscope.notebook.sums import SumsView
from bindscope.notebook.view import RunView
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run

VIEWS: Mapping[str, type[RunView]] = {"binding": ProgramsView, "assign_add": SumsView}
WORDS: Mapping[str, str] = {"binding": "runs on programs (binding)", "assign_add": "runs on sums (assign_add)"}


def open_run(run: str | Path | Run) -> RunView:
    """A run by its path, its name under ./runs, or the name of a shipped one.

    >>> open_run("binding-laptop").predict("k=9;c=k;#c:", steps="all").plot()
    >>> open_run("assign-add").predict("c=1 b=17 | b+19", steps="all").plot()
    """
    show_figures()
    opened = run if isinstance(run, Run) else Run.open(find_run(str(run)))
    view = VIEWS.get(opened.config.task.family, RunView)(opened)
    view.asked_elsewhere = what_others_have(type(view))
    return view


def what_others_have(view: type[RunView]) -> dict[str, str]:
    """The questions that views of other families know and this one does not: name → for whom it is."""
    found = {}
    for family, other in VIEWS.items():
        for name in vars(other):
            if not name.startswith("_") and not hasattr(view, name):
                found[name] = WORDS[family] if name not in found else " or ".join(WORDS.values())
    return found
