"""The result ``identifiers``: what swaps two bindings and what leaves them, at every layer and every checkpoint."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import measure_every_step, round_bits
from bindscope.studies.framework.results import Context, Result, every_step


def compute_identifiers(context: Context) -> xr.Dataset:
    """``swapped`` and the rest of ``measure_identifiers`` over (step, …), on the same programs throughout."""
    from bindscope.measures.binding.identifiers import draw_identifier_programs, measure_identifiers

    drawn = draw_identifier_programs(context.run.config.task, context.rng, context.n, context.seed)  # type: ignore[arg-type]
    dataset = measure_every_step(
        context,
        lambda model: measure_identifiers(model, drawn).map(lambda values: values.copy(data=round_bits(values.values))),
    )
    return dataset.assign_attrs(n=context.n, interval="95 %, Wilson")


def carrying_layer(dataset: xr.Dataset) -> int:
    """The first layer, at the last step, from which exchanged values keep their bindings: each carries its name there."""
    last = dataset.isel(step=-1) if "step" in dataset.dims else dataset
    kept = last.kept.sel(intervention="exchanged", part="value").values
    return int((kept >= 0.5 * kept.max()).argmax())


def _read_exchanged(dataset: xr.Dataset) -> xr.Dataset:
    cell = dataset.sel(intervention="exchanged", part="value", layer=carrying_layer(dataset))
    return over_steps(cell.kept, cell.kept_low, cell.kept_high)


def _read_mean(dataset: xr.Dataset) -> xr.Dataset:
    cells = dataset.sel(intervention="mean", part=["name", "value"]).stack(cell=("part", "layer"))
    best = cells.isel(cell=int(cells.swapped.isel(step=-1).values.argmax()))
    return over_steps(best.swapped, best.swapped_low, best.swapped_high)


RESULTS = (
    Result("identifiers", "binding identifiers", compute_identifiers, n=60, steps=every_step, passes=100, grows=True),
)

CURVES = (
    Curve(
        "value-carries-name",
        "a value carries its name",
        "Two lines' values are moved to each other's positions, at the first layer where that leaves the bindings alone: the "
        "fraction that still answers correctly.",
        "identifiers",
        _read_exchanged,
        "fraction",
    ),
    Curve(
        "mean-swaps",
        "mean differences of lines swap bindings",
        "The mean difference between two lines' names or values is added to one and taken from the other: the fraction that "
        "answers with the other's value, at the best layer. Binding identifiers would make it high.",
        "identifiers",
        _read_mean,
        "fraction",
    ),
)

DRAWINGS = (
    Drawing(
        "identifiers",
        "Are names and values tied by binding identifiers? What swaps two bindings, through training",
        ("identifiers", "trajectory"),
        defer(f"{__package__}.draw", "draw_identifiers"),
    ),
)
