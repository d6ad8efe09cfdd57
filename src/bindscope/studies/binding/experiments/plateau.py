"""Why the plateau: how long a model from random weights takes to match equal names, over what should set the pace.

Let α be how much of the queried name has reached the colon, and β how much of an assigned name its right-hand side. At a
random start attention is spread over the t tokens in view, so both are about 1/√t. The expected gradient of the
query–key product along "same letter" is proportional to αβ/k for k letters, and what it does to the score is again αβ, so
under Adam the margin grows about as lr · √B · (αβ)² · d / k a step. The plateau should then last

    steps ∝ k · t² / (lr · √B · d)

with rate lr, batch B and width d. Each is varied by itself here; the slopes of log steps are held against the exponents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.stats.powers import Power, fit_power
from bindscope.studies.plots.experiment_charts import Chart, draw_charts
from bindscope.studies.plots.style import BLUE, GREY, ORANGE

EXPONENTS = {"letters": 1.0, "tokens": 2.0, "batch": -0.5, "rate": -1.0, "width": -1.0}  # of the prediction above


class Slope(NamedTuple):
    """How log steps change with the log of a factor, over the runs that learned."""

    power: Power
    n_cut_off: int  # runs that had not learned by their last step: their plateaus are longer, and left out


def find_slope(dataset: xr.Dataset, factor: str) -> Slope:
    """The slope over the runs in which nothing but ``factor`` differs from the base.

    >>> find_slope(dataset, "letters").power.value  # 1 where twice as many letters take twice as many steps
    """
    varied = "lines" if factor == "tokens" else factor
    rows = [name for name in map(str, dataset.variant.values) if name == "base" or name.startswith(f"{varied}-")]
    part = dataset.sel(variant=rows)
    trained = np.isfinite(part.last_step.transpose("variant", "seed").values)
    steps = part.learned.transpose("variant", "seed").values
    at = np.broadcast_to(part[factor].values[:, None], steps.shape)
    known = trained & np.isfinite(steps)
    return Slope(fit_power(at[known], steps[known]), int((trained & ~known).sum()))


def conclude_plateau(dataset: xr.Dataset) -> str:
    """What each factor does to the length of the plateau, beside the prediction."""
    parts = []
    for factor, expected in EXPONENTS.items():
        slope, n_cut_off = find_slope(dataset, factor)
        if not np.isfinite(slope.value):
            parts.append(f"{factor}: too few runs learned to tell ({slope.n} did, {n_cut_off} were cut off)")
            continue
        within = _judge(slope, expected)
        cut = f", {n_cut_off} cut off runs left out" if n_cut_off else ""
        parts.append(
            f"{factor}: exponent {slope.value:.2f} [{slope.low:.2f} to {slope.high:.2f}] over {slope.n} runs{cut}, "
            f"{within} (predicted {expected:g})"
        )
    base = dataset.learned.sel(variant="base").values
    known = base[np.isfinite(base)]
    lead = f"At the base setting every depth is at 90 % after {_steps(known)} steps. " if len(known) else ""
    return f"{lead}Steps on the plateau go as a power of each factor: {'; '.join(parts)}."


def _judge(slope: Power, expected: float) -> str:
    if not slope.low <= expected <= slope.high:
        return "not as predicted"
    return "as predicted" if not slope.low <= 0 <= slope.high else "too few runs to tell the prediction from no effect"


def draw_plateau(dataset: xr.Dataset) -> Figure:
    """Steps on the plateau over each factor, with the fitted and the predicted slope."""
    charts = [
        Chart(f"{factor}", f"predicted exponent {expected:g}", _chart(factor, expected))
        for factor, expected in EXPONENTS.items()
    ]
    return draw_charts(dataset, charts)


def _chart(factor: str, expected: float) -> Any:
    def draw(axes: Axes, dataset: xr.Dataset) -> None:
        varied = "lines" if factor == "tokens" else factor
        rows = [name for name in map(str, dataset.variant.values) if name == "base" or name.startswith(f"{varied}-")]
        part = dataset.sel(variant=rows)
        x = part[factor].values.astype(float)
        for seed in part.seed.values:
            steps, last = part.learned.sel(seed=seed).values, part.last_step.sel(seed=seed).values
            axes.plot(x, steps, "o", color=BLUE, ms=5, label="every depth at 90 %")
            cut = ~np.isfinite(steps) & np.isfinite(last)
            if cut.any():
                axes.plot(x[cut], last[cut], "^", color=GREY, ms=5, label="not by this step")
        slope, base = find_slope(dataset, factor).power, dataset.learned.sel(variant="base").mean().item()
        centre = float(dataset[factor].sel(variant="base"))
        span = np.array([x.min(), x.max()])
        axes.plot(span, base * (span / centre) ** expected, "--", color=ORANGE, lw=1.3, label="predicted")
        if np.isfinite(slope.value):
            axes.plot(span, slope.at(span), color=BLUE, lw=1.3, label=f"fit: {slope.value:.2f}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sorted(set(x)), [f"{value:g}" for value in sorted(set(x))])
        axes.minorticks_off()
        axes.set_ylabel("steps")
        handles = dict(zip(*reversed(axes.get_legend_handles_labels())))
        axes.legend(handles.values(), handles.keys())

    return draw


def _steps(steps: np.ndarray) -> str:
    return f"{steps.min():,.0f}" if len(steps) == 1 else f"{steps.min():,.0f} to {steps.max():,.0f}"
