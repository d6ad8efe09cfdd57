"""What a result shows, in one sentence made of its numbers; empty for results that have no such sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr

from bindscope.studies.plots.outcomes import FRACTIONS, METRIC_NAMES
from bindscope.studies.plots.style import format_fraction


def tell_finding(dataset: xr.Dataset, figure: str) -> str:
    """The sentence that a dataset brings along, or the one of its figure."""
    if "finding" in dataset.attrs:
        return str(dataset.attrs["finding"])
    return TOLD[figure](dataset) if figure in TOLD else ""


def tell_prediction(dataset: xr.Dataset) -> str:
    """What is answered at the last step, and since when the right answer has more than half of the probability."""
    probability = dataset.probability.transpose("step", "output")
    last, answer = probability.isel(step=-1), str(dataset.attrs["answer"])
    said = str(dataset.output.values[int(last.values.argmax())])
    right = "which is right" if said == answer else f"where {answer} is right"
    told = f"At step {int(dataset.step.values[-1]):,} the model says {said} ({_percent(last.max())}), {right}"
    if probability.sizes["step"] == 1 or answer not in dataset.output.values:
        return f"{told}."
    below = np.flatnonzero(probability.sel(output=answer).values <= 0.5)
    since = 0 if not len(below) else int(below[-1]) + 1
    if since == probability.sizes["step"]:
        return f"{told}; {answer} never stays above a half."
    return f"{told}; {answer} stays above a half from step {int(dataset.step.values[since]):,}."


def tell_phases(dataset: xr.Dataset) -> str:
    """Each phase with its first step and accuracy."""
    rows = zip(dataset.phase.values, dataset.first_step.values, dataset.accuracy.values)
    return "; ".join(f"{name} from step {int(first):,}, {_percent(right)} right" for name, first, right in rows) + "."


def tell_trajectory(dataset: xr.Dataset) -> str:
    """The phases of a run's evaluations."""
    from bindscope.studies.framework.trajectory import phases_of

    phases = phases_of(dataset)
    return "; ".join(f"{one.name} from step {one.first_step:,}, {_percent(one.accuracy)} right" for one in phases) + "."


def tell_lens(dataset: xr.Dataset) -> str:
    """From which layer on the answer stands above the constant of line 1 where the model answers."""
    last = dataset.isel(position=-1)
    if last.attrs["answer_digit"] == last.attrs["line_1_digit"]:
        return f"The answer is the constant of line 1; it ends at {_percent(last.answer[-1])} where the model answers."
    below = np.flatnonzero((last.answer_logit <= last.line_1_logit).values)
    since = 0 if not len(below) else int(below[-1]) + 1
    if since == dataset.sizes["layer"]:
        return "Where the model answers, the answer never stays above the constant of line 1."
    after = "from the embedding on" if since == 0 else f"after {since} layers"
    return f"Where the model answers, the answer stands above the constant of line 1 for good {after}."


def tell_patch(dataset: xr.Dataset) -> str:
    """The cell that does most, at the last step, on the mean over pairs."""
    metric = str(dataset.attrs.get("metric", "success"))
    mean = dataset[metric].isel(step=-1).mean("pair")
    if not mean.dims:
        return f"Patched there: {_measured(metric, float(mean))}."
    if not np.isfinite(mean.values).any():
        return ""
    best = mean.where(abs(mean) == abs(mean).max(), drop=True).stack(cell=mean.dims).dropna("cell")[0]
    at = ", ".join(f"{dim} {best[dim].item()}" for dim in mean.dims)
    return f"Most is done at {at}: {_measured(metric, float(best))}."


def tell_swap(dataset: xr.Dataset) -> str:
    """What is answered after the swap."""
    probability = dataset.probability.isel(condition=-1)
    said = str(dataset.output.values[int(probability.values.argmax())])
    kinds = {dataset.attrs["source_answer"]: "the counterfactual's answer", dataset.attrs["base_answer"]: "its own"}
    return f"After the swap the model says {said} ({_percent(probability.max())}), {kinds.get(said, 'neither answer')}."


def _measured(metric: str, value: float) -> str:
    shown = _percent(value) if metric in FRACTIONS else f"{value:.3g}"
    return f"{shown}, {METRIC_NAMES.get(metric, metric)}"


def _percent(fraction: float | xr.DataArray) -> str:
    return format_fraction(float(fraction))


TOLD: Mapping[str, Callable[[xr.Dataset], str]] = {
    "prediction": tell_prediction,
    "phases": tell_phases,
    "trajectory": tell_trajectory,
    "lens": tell_lens,
    "patch": tell_patch,
    "swap": tell_swap,
}
