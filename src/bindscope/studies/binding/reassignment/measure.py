"""The result ``reassignment``: which write wins, what holds the overwrite, and what state is kept, at every checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import xarray as xr

from bindscope.measures.binding.reassignment.finding import best_layer
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import measure_every_step, round_bits, untrained_model
from bindscope.studies.framework.results import Context, Result, every_step

if TYPE_CHECKING:
    from bindscope.runs.directory import Run


def compute_reassignment(context: Context) -> xr.Dataset:
    """What ``measure_reassignment`` gives over (step, …), on the same programs throughout."""
    from bindscope.measures.binding.reassignment.measure import draw_reassignment, measure_reassignment

    task = context.run.config.task
    drawn = draw_reassignment(task, untrained_model(context), context.n, context.seed)  # type: ignore[arg-type]
    dataset = measure_every_step(
        context,
        lambda model: measure_reassignment(model, drawn).map(
            lambda values: values.copy(data=round_bits(values.values))
        ),
    )
    return dataset.assign_attrs(n=context.n, interval="95 %: Wilson, of probes normal over programs")


def steps_with_reassignment(run: Run) -> Sequence[int]:
    """All saved checkpoints of a run whose programs assign variables again; none of another, which says so at once."""
    return every_step(run) if getattr(run.config.task, "reassign", 0) else ()


def _answered(situation: str) -> Callable[[xr.Dataset], xr.Dataset]:
    def read(dataset: xr.Dataset) -> xr.Dataset:
        at = {"situation": situation, "outcome": "right"}
        return over_steps(*(dataset[f"answered{end}"].sel(at, drop=True) for end in ("", "_low", "_high")))

    return read


def _global_state(dataset: xr.Dataset) -> xr.Dataset:
    """How far probes of other variables are above the controls at line ends, in the layer where they are at the last step."""
    at = dataset.sel(state="global", place="line end", drop=True)
    layer = best_layer(at.excess.isel(step=-1))
    return over_steps(*(at[f"excess{end}"].sel(layer=layer, drop=True) for end in ("", "_low", "_high")))


RESULTS = (
    Result(
        "reassignment",
        "reassignment",
        compute_reassignment,
        n=60,
        steps=steps_with_reassignment,
        passes=100,
        grows=True,
    ),
)

CURVES = (
    Curve(
        "last-write",
        "overwritten variable: answered with its last write",
        "The queried variable was assigned before: the fraction answered with its last write.",
        "reassignment",
        _answered("query"),
        "fraction",
    ),
    Curve(
        "last-write-inside",
        "overwritten inside the chain: answered with the last write",
        "A variable inside the chain was overwritten before it was referred to: the fraction answered with its last write.",
        "reassignment",
        _answered("earlier"),
        "fraction",
    ),
    Curve(
        "first-write-kept",
        "overwritten after the reference: answered with the first write",
        "A variable inside the chain is overwritten after it was referred to: the fraction answered with the value it held there.",
        "reassignment",
        _answered("later"),
        "fraction",
    ),
    Curve(
        "running-state",
        "running state: other variables read at line ends",
        "How many more values of other variables a linear probe reads at the ends of lines than the better of its controls, in the "
        "layer where that is most at the last step.",
        "reassignment",
        _global_state,
        "fraction",
    ),
)

DRAWINGS = (
    Drawing(
        "reassignment",
        "Which write wins, what holds the overwrite, and what state is kept, through training",
        ("reassignment", "trajectory"),
        defer(f"{__package__}.draw", "draw_reassignment"),
    ),
)
