"""The result ``lookbacks``: address, pointer and payload at every layer and every checkpoint."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import measure_every_step, round_bits
from bindscope.studies.framework.results import Context, Result, every_step


def compute_lookbacks(context: Context) -> xr.Dataset:
    """What ``measure_lookbacks`` gives over (step, …), on the same pairs throughout."""
    from bindscope.measures.binding.lookbacks import draw_lookback_pairs, measure_lookbacks

    drawn = draw_lookback_pairs(context.run.config.task, context.rng, context.n)  # type: ignore[arg-type]
    dataset = measure_every_step(
        context,
        lambda model: measure_lookbacks(model, drawn).map(lambda values: values.copy(data=round_bits(values.values))),
    )
    return dataset.assign_attrs(n=context.n, interval="95 %, Wilson")


def _at_best(name: str, **chosen: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A fraction over (step), in the layer beyond the first where it is highest at the last step."""

    def read(dataset: xr.Dataset) -> xr.Dataset:
        parts = [dataset[f"{name}{end}"].sel(chosen) for end in ("", "_low", "_high")]
        layer = 1 + int(parts[0].isel(step=-1, layer=slice(1, None)).values.argmax())
        return over_steps(*(part.sel(layer=layer, drop=True) for part in parts))

    return read


RESULTS = (Result("lookbacks", "lookbacks", compute_lookbacks, n=80, steps=every_step, passes=60, grows=True),)

CURVES = (
    Curve(
        "lookback-address",
        "lookback: the value has its address",
        "The right-hand sides of two lines come from a program with their names exchanged and other digits: the fraction whose "
        "answer takes name and digit from there, so that the name stood beside the value.",
        "lookbacks",
        _at_best("binding", moved="both"),
        "fraction",
    ),
    Curve(
        "lookback-pointer",
        "lookback: the end holds a pointer",
        "The end of another program is patched in after the first layer: the fraction that answers with the base's value of "
        "the other name.",
        "lookbacks",
        _at_best("end", position="end", came="pointer"),
        "fraction",
    ),
    Curve(
        "lookback-payload",
        "lookback: the end holds the payload",
        "The same, where the other program's value stands nowhere in the base: the fraction that answers with it.",
        "lookbacks",
        _at_best("end", position="end", came="payload"),
        "fraction",
    ),
)

DRAWINGS = (
    Drawing(
        "lookbacks",
        "Where the address, the pointer and the payload of a lookup are, through training",
        ("lookbacks", "trajectory"),
        defer(f"{__package__}.draw", "draw_lookbacks"),
    ),
)
