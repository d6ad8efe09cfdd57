"""Does the local learning coefficient of a model that adds depend on its width? (arXiv 2606.21158 finds it flat.)

Every last checkpoint gets two estimates, for the estimate depends on how strongly chains are drawn back. *per parameter*: the
same γ at every width, so that chains of a wider model move further, as √(parameters). *per model*: γ grows with the number of
parameters, so that chains move as far at every width. A coefficient that is flat has exponent 0 over parameters, one of a
model without degenerate directions has 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.learning_coefficient.examples import draw_examples
from bindscope.measures.learning_coefficient.measure import measure_coefficient
from bindscope.measures.learning_coefficient.sampling import Sampling
from bindscope.measures.stats.powers import Power, fit_power
from bindscope.runs.directory import Run
from bindscope.studies.framework.experiments import Cell
from bindscope.studies.framework.measuring import measure_cells
from bindscope.studies.plots.experiment_charts import Chart, draw_charts
from bindscope.studies.plots.style import BLUE, GREY, ORANGE

PULLS = ("per parameter", "per model")
USUAL_PARAMETERS = 71_232  # at which both are the same: those of width 64
SAMPLING = Sampling(chains=4, draws=120, burn_in=60, step_size=5e-5)  # as docs/development.md has it for sums
N_EXAMPLES = 1024
SEED = 0


def measure_widths(runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None) -> xr.Dataset:
    """``coefficient`` with its interval over (variant, seed, pull), whether its chains ``left`` the neighbourhood of the
    checkpoint or ``diverged``, and ``n_parameters`` and ``final_loss`` of each run.
    """
    return measure_cells(runs, _measure_run, on_progress)


def _measure_run(run: Run) -> xr.Dataset:
    model = run.checkpoint("last")
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    examples = draw_examples(run.config.task, np.random.default_rng(SEED), N_EXAMPLES)
    parts = [
        measure_coefficient(model, examples, sampling_of(pull, n_parameters), seed=SEED)[
            ["coefficient", "coefficient_low", "coefficient_high", "left", "diverged"]
        ]
        for pull in PULLS
    ]
    dataset = xr.concat(parts, xr.IndexVariable("pull", list(PULLS)), combine_attrs="drop")
    return dataset.assign(n_parameters=n_parameters, final_loss=run.metrics[-1]["0tr"]["loss"])


def sampling_of(pull: str, n_parameters: int) -> Sampling:
    """How chains are drawn; a stronger pull has smaller steps, so that it forgets as fast."""
    times = n_parameters / USUAL_PARAMETERS if pull == "per model" else 1.0
    return SAMPLING.changed(elasticity=SAMPLING.elasticity * times, step_size=SAMPLING.step_size / max(times, 1.0))


def find_power(dataset: xr.Dataset, pull: str) -> tuple[Power, int]:
    """The exponent of the coefficient over parameters, and how many runs were left out: chains that ran away, or no
    positive coefficient."""
    cells = dataset.sel(pull=pull)
    trained = np.isfinite(cells.last_step.values.ravel())
    values = cells.coefficient.transpose(*cells.last_step.dims).values.ravel()
    n_parameters = cells.n_parameters.transpose(*cells.last_step.dims).values.ravel()
    gone = cells.left.transpose(*cells.last_step.dims).values.ravel() == 1
    usable = trained & (np.nan_to_num(values) > 0) & ~gone
    return fit_power(n_parameters[usable], values[usable]), int((trained & ~usable).sum())


def conclude_widths(dataset: xr.Dataset) -> str:
    """The exponent for both pulls, what it was fitted to, and where the losses ended, on which the coefficient depends."""
    losses = dataset.final_loss.mean("seed")
    ends = ", ".join(f"{name} {float(losses.sel(variant=name)):.2g}" for name in map(str, dataset.variant.values))
    return " ".join([*(_conclude(dataset, pull) for pull in PULLS), f"Losses on trained sums end at {ends}."])


def _conclude(dataset: xr.Dataset, pull: str) -> str:
    power, n_left_out = find_power(dataset, pull)
    means = dataset.sel(pull=pull).coefficient.mean("seed")
    values = ", ".join(f"{name} {float(means.sel(variant=name)):.1f}" for name in map(str, dataset.variant.values))
    head = f"With the pull fixed {pull}, the coefficient is {values} (means of seeds)"
    without = f"; {n_left_out} runs whose chains left or had no positive coefficient are left out" if n_left_out else ""
    if not np.isfinite(power.value):
        return f"{head}; too few runs are left to fit an exponent{without}."
    return (
        f"{head} and goes as parameters to the power {power.value:.2f} [{power.low:.2f} to {power.high:.2f}] over {power.n} "
        f"runs: {_judge(power)}{without}."
    )


def _judge(power: Power) -> str:
    flat, proportional = power.low <= 0 <= power.high, power.low <= 1 <= power.high
    if flat and proportional:
        return "too few runs to tell flat from proportional"
    return "flat" if flat else "proportional to them" if proportional else "neither flat nor proportional to them"


def draw_widths(dataset: xr.Dataset) -> Figure:
    """The coefficient over parameters for both pulls, with the fit."""
    return draw_charts(dataset, [Chart(f"γ fixed {pull}", "a point a seed", _chart(pull)) for pull in PULLS])


def _chart(pull: str) -> Callable[[Axes, xr.Dataset], None]:
    def draw(axes: Axes, dataset: xr.Dataset) -> None:
        cells = dataset.sel(pull=pull)
        x, y = cells.n_parameters.values.ravel(), cells.coefficient.transpose(*cells.n_parameters.dims).values.ravel()
        axes.plot(x, y, "o", color=BLUE, ms=5)
        power, _ = find_power(dataset, pull)
        if np.isfinite(power.value):
            span = np.array([np.nanmin(x), np.nanmax(x)])
            axes.plot(span, power.at(span), color=ORANGE, lw=1.3, label=f"exponent {power.value:.2f}")
            axes.legend()
        axes.set_xscale("log")
        axes.set_xlabel("parameters")
        axes.set_ylabel("λ̂")
        axes.axhline(0, color=GREY, lw=0.6)

    return draw
