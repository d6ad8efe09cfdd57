"""The result ``mixture``: the weights of the accounts at every layer and every checkpoint, on programs asked directly."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import measure_every_step, round_bits
from bindscope.studies.framework.results import Context, Result, every_step


def compute_mixture(context: Context) -> xr.Dataset:
    """``weight`` and the rest of ``measure_mixture`` over (step, layer, position, …), on the same pairs throughout."""
    from bindscope.measures.binding.mixture.measure import measure_mixture
    from bindscope.tasks.binding.accounts import sample_account_pairs

    drawn = sample_account_pairs(context.run.config.task, context.rng, context.n)  # type: ignore[arg-type]
    dataset = measure_every_step(context, lambda model: measure_mixture(model, drawn, context.seed).map(_rounded))
    interval = "95 %, bootstrap over pairs, at least as wide as Wilson's"
    return dataset.assign_attrs(n=len(drawn), depth=1, interval=interval)


def _rounded(values: xr.DataArray) -> xr.DataArray:
    return values.copy(data=round_bits(values.values))


RESULTS = (Result("mixture", "accounts of a lookup", compute_mixture, n=300, steps=every_step, passes=20, grows=True),)


def _weight_of(account: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """The weight over (step) where the end of a program is still a pointer; the value's a layer later, where it is answered."""

    def read(dataset: xr.Dataset) -> xr.Dataset:
        from bindscope.measures.binding.mixture.reading import END, pointer_layer

        layer = min(pointer_layer(dataset) + (account == "reflexive"), dataset.sizes["layer"] - 1)
        cell = dataset.sel(position=END, layer=layer, account=account)
        return over_steps(cell.weight, cell.weight_low, cell.weight_high)

    return read


_EXPLAINS = {
    "early": "Weight of the early-line heuristic in a mixture fitted to answers after a patch of the question: the constants of "
    "lines 1 and 2, whatever is asked.",
    "lexical": "Weight of a lookup by name in the same mixture: the question is handed on as the name it asks for.",
    "positional": "Weight of a lookup by line in the same mixture: the question is handed on as the line its binding had.",
    "reflexive": "Weight of the value itself, one layer on: the question has been answered there.",
}
CURVES = tuple(
    Curve(f"mixture-{account}", f"mixture: {account}", explains, "mixture", _weight_of(account), "fraction")
    for account, explains in _EXPLAINS.items()
)

DRAWINGS = (
    Drawing(
        "mixture",
        "From the early-line heuristic to a lookup by name: the accounts' weights through training",
        ("mixture", "trajectory"),
        defer(f"{__package__}.draw", "draw_mixture"),
    ),
)
