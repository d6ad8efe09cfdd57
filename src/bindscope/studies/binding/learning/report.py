"""What a report says of a binding run beyond its splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from bindscope.measures.phases import Phase
from bindscope.studies.plots.report import Highlights, show_steps
from bindscope.studies.plots.style import format_fraction


def describe_run(dataset: xr.Dataset, phases: Sequence[Phase]) -> Highlights:
    """The story of heuristic and chain, its plateau and weakest depth, and the curves by depth."""
    columns = {f"depth {int(d)}": dataset.accuracy_by_depth.sel(depth=d).values for d in dataset.depth.values}
    columns |= {"follows chain": dataset.follows_chain.values, "line 1 or 2": dataset.follows_early_lines.values}
    return Highlights(_tell_story(dataset, phases), tuple(_list_numbers(dataset, phases)), columns)


def _tell_story(dataset: xr.Dataset, phases: Sequence[Phase]) -> str:
    names = [phase.name for phase in phases]
    steps = f"{int(dataset.step[-1]):,} steps"
    if "systematic" in names and "heuristic" in names:
        return (
            f"Within {steps} the model went from a heuristic of answering with the first lines of a program to following "
            f"the chain of references to its constant."
        )
    if "systematic" in names:
        return f"Within {steps} the model learned to follow the chain of references to its constant."
    if "heuristic" in names:
        return (
            f"After {steps} the model still answers from the first lines of a program instead of following the chain."
        )
    return f"After {steps} the model shows no lasting heuristic yet."


def _list_numbers(dataset: xr.Dataset, phases: Sequence[Phase]) -> Iterator[tuple[str, str, str]]:
    for phase in phases:
        if phase.name == "heuristic":
            yield "heuristic plateau", format_fraction(phase.accuracy), show_steps(phase)
    lowest = float(np.nanmin(dataset.accuracy_by_depth.values[-1]))
    yield "weakest depth at the end", format_fraction(lowest), ""
