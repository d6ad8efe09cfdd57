"""Curves over n, widths and other settings as tables: one row for each variant, and the paper's points beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.symbols.efficiency.curves import Curve, Point

FURTHER = ("width", "layers", "setting", "value", "task")  # labels besides model, n and heads that tell curves apart
PublishedPoint = tuple[str, float, float, float]  # model, n, width, value
NOWHERE = float("nan")


def summarise_variants(experiment: Experiment, dataset: xr.Dataset) -> xr.Dataset:
    """Over (variant): what the seeds ended with on unseen symbols, their mean and its 95 % interval.

    Coordinates say each variant's model, n, heads and what else its curve is told apart by. Over (point) the paper's own;
    over (solved), where widths are compared, the first n of each model and width whose error is below a tenth.
    """
    from bindscope.studies.symbols.efficiency.curves import measure_of

    labels = {name: dataset[name] for name in ("model", "n", "heads", *FURTHER) if name in dataset.coords}
    points, measure = _points_of(dataset), measure_of(dataset)
    columns: dict[str, list[Any]] = {
        "mean": [NOWHERE if point is None else point.value for point in points],
        "low": [NOWHERE if point is None or point.low is None else point.low for point in points],
        "high": [NOWHERE if point is None or point.high is None else point.high for point in points],
        "seeds": [0 if point is None else len(point.seeds) for point in points],
    }
    meanings = {variant.name: variant.meaning for variant in experiment.variants}
    columns["meaning"] = [meanings.get(str(name), "") for name in dataset.variant.values]
    summary = xr.Dataset({name: ("variant", values) for name, values in columns.items()}, labels)
    for name in ("mean", "low", "high"):
        summary[name].attrs["units"] = "fraction" if measure == "error" else "1"
    published = published_points(experiment)
    for index, name in enumerate(("model", "n", "width", "value")):
        summary[f"paper_{name}"] = ("point", [point[index] for point in published])
    summary.attrs = {
        "experiment": experiment.name,
        "question": experiment.question,
        "answer": experiment.conclude(dataset),
        "limits": experiment.limits,
        "measure": f"test {measure}",
    }
    return add_first_solved(summary, dataset) if experiment.name == "copy" else summary


def add_first_solved(summary: xr.Dataset, dataset: xr.Dataset) -> xr.Dataset:
    """The first n below a tenth for each model and width, NaN where none is, and the largest that was tried.

    Errors are then those of the evaluation that is best on validation symbols, as the claim about width reads them.
    """
    from bindscope.intervals import student_interval
    from bindscope.studies.symbols.width.widths import find_first_n, split_error

    seeds = [row[np.isfinite(row)] for row in split_error(dataset)]
    ends = [student_interval(row) if len(row) > 1 else (NOWHERE, NOWHERE) for row in seeds]
    summary["mean"] = summary["mean"].copy(data=[row.mean() if len(row) else NOWHERE for row in seeds])
    summary["low"] = summary["low"].copy(data=[max(low, 0.0) for low, _ in ends])
    summary["high"] = summary["high"].copy(data=[min(high, 1.0) for _, high in ends])
    models = list(dict.fromkeys(map(str, dataset.model.values)))
    rows = [(model, first) for model in models for first in find_first_n(dataset, model)]
    return summary.assign(
        solved_model=("solved", [model for model, _ in rows]),
        solved_width=("solved", [first.width for _, first in rows]),
        solved_n=("solved", [first.n if first.reached else NOWHERE for _, first in rows]),
        solved_most=("solved", [first.largest for _, first in rows]),
    )


def published_points(experiment: Experiment) -> list[PublishedPoint]:
    """The paper's points for an experiment; NaN where they do not say a width."""
    from bindscope.studies.framework.presets import find_preset
    from bindscope.studies.symbols import published
    from bindscope.studies.symbols.width.widths import SOLVED

    if experiment.name == "copy":
        plain = [("plain", float(n), float(width), SOLVED) for width, n in published.COPY_FIRST_N.items()]
        modified = float(published.COPY_FIRST_N_MODIFIED)
        return plain + [("both", modified, float(width), SOLVED) for width in published.COPY_FIRST_N]
    if experiment.name == "width":
        return [("plain", 1024.0, float(width), loss) for width, loss in published.WIDTH_LOSS.items()]
    curves: Any = {"scratch": published.GPT2_SCRATCH, "pretrained": published.GPT2_PRETRAINED}
    if experiment.name != "gpt2":
        own_task = all(set(variant.labels) == {"model", "n", "heads"} for variant in experiment.variants)
        task: Any = find_preset(experiment.preset).config.task
        curves = published.CURVES.get(task.name, {}) if own_task else {}
    return [
        (model, float(n), NOWHERE, value) for model, points in curves.items() for n, value in sorted(points.items())
    ]


def _points_of(dataset: xr.Dataset) -> list[Point | None]:
    """Each variant's point on its curve; None where no seed has ended."""
    from bindscope.studies.symbols.efficiency.curves import curve_of

    further = [name for name in FURTHER if name in dataset.coords]
    curves: dict[tuple[Any, ...], Curve] = {}
    points = []
    for index in range(dataset.sizes["variant"]):
        labels = {name: dataset[name].values[index].item() for name in ("model", "n", "heads", *further)}
        key = tuple(value for name, value in labels.items() if name != "n")
        if key not in curves:
            where = {name: labels[name] for name in further}
            curves[key] = curve_of(dataset, str(labels["model"]), int(labels["heads"]), **where)
        points.append(curves[key].at(int(labels["n"])))
    return points
