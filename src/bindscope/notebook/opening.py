"""From a name to a view: which class shows a run is decided by the family of its task."""

from __future__ import annotations

from pathlib import Path

from bindscope.families import Family, all_families, family_of, find_object, load_family, register_family
from bindscope.notebook.drawn import show_figures
from bindscope.notebook.view import RunView
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.runs.placement import CPU, Device, Dtype, Placement


def open_run(
    run: str | Path | Run,
    family: str | type[Family] | Family | None = None,
    *,
    device: Device | None = None,
    dtype: Dtype | None = None,
) -> RunView:
    """A run by its path, its name under ./runs, or the name of a shipped one.

    ``family`` is needed for a run whose family is your own: its class, or the text that ``--family`` takes. ``device``
    (auto, cpu, cuda, mps) and ``dtype`` (float32, float64, bfloat16, float16) say where its models are put, and in which
    numbers everything asked of them is computed: the CPU and float32, when left out.

    >>> open_run("binding-laptop").predict("k=9;c=k;#c:", steps="all").plot()
    >>> open_run("assign-add").predict("c=1 b=17 | b+19", steps="all").plot()
    >>> open_run("recall-small", family="examples/recall.py:RecallFamily").trajectory().plot()
    """
    if family is not None:
        _ = load_family(family) if isinstance(family, str) else register_family(family)
    show_figures()
    before = run.placement if isinstance(run, Run) else CPU
    placement = Placement(device or before.device, dtype or before.dtype)
    if not isinstance(run, Run):
        opened = Run.open(find_run(str(run)), placement)
    else:
        opened = run if placement == run.placement else Run.open(run.path, placement)
    view: RunView = find_object(family_of(opened.config.task).view)(opened)
    view.asked_elsewhere = what_others_have(type(view))
    return view


def what_others_have(view: type[RunView]) -> dict[str, str]:
    """The questions that views of other families know and this one does not: name → for whom it is."""
    found: dict[str, list[str]] = {}
    for family in all_families():
        other = find_object(family.view)
        for name in () if other is RunView else vars(other):
            if not name.startswith("_") and not hasattr(view, name):
                found.setdefault(name, []).append(f"runs on {' and '.join(family.kinds)} ({family.name})")
    return {name: " or ".join(words) for name, words in found.items()}
