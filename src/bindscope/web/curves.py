"""Curves over n, widths and other settings as tables: one row for each variant, and the paper's points beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from bindscope.studies.experiments import Experiment

SOLVED = 0.1  # an error below this counts as solved, as in the paper's figure on width
Point = tuple[str, float, float, float]  # model, n, width, value


def is_symbolic(experiment: Experiment) -> bool:
    """Whether answers are symbols, so that the measure is the share of wrong ones."""
    from bindscope.studies.presets import find_preset

    task = find_preset(experiment.preset).config.task
    return getattr(task, "target_kind", "") == "token"


def summarise_variants(experiment: Experiment, dataset: xr.Dataset) -> xr.Dataset:
    """Over (variant): the mean over seeds of what is measured on unseen symbols, and the lowest and highest seed.

    Coordinates say each variant's model, n, heads and, where there is one, width or setting and value. Over (point) the
    paper's own; over (solved) the first n of each model and width whose error is below a tenth, NaN where none is.
    """
    symbolic = is_symbolic(experiment)
    values = 1 - dataset.last_accuracy if symbolic else dataset.last_loss
    values = values.sel(pool="test", drop=True).transpose("variant", "seed")
    labels = {name: dataset[name] for name in ("model", "n", "heads", "width", "setting", "value") if name in dataset}
    summary = xr.Dataset(
        {
            "mean": values.mean("seed"),
            "low": values.min("seed"),
            "high": values.max("seed"),
            "seeds": values.notnull().sum("seed"),
            "steps": dataset.last_step.mean("seed"),
        },
        labels,
    )
    for name in ("mean", "low", "high"):
        summary[name].attrs["units"] = "share" if symbolic else "1"
    summary["steps"].attrs["units"] = "step"
    meanings = {variant.name: variant.meaning for variant in experiment.variants}
    summary["meaning"] = ("variant", [meanings.get(str(name), "") for name in dataset.variant.values])
    points = published_points(experiment)
    for place, name in enumerate(("model", "n", "width", "value")):
        summary[f"paper_{name}"] = ("point", [point[place] for point in points])
    summary.attrs = {
        "experiment": experiment.name,
        "question": experiment.question,
        "limits": experiment.limits,
        "measure": "test error" if symbolic else "test loss",
    }
    return add_first_solved(summary) if "width" in labels and symbolic else summary


def add_first_solved(summary: xr.Dataset) -> xr.Dataset:
    """The first n below a tenth for each (model, width), beside the paper's; trained models with the fewest heads."""
    fewest = summary.isel(variant=summary.heads.values == summary.heads.values.min())
    rows = []
    for model in dict.fromkeys(fewest.model.values.tolist()):
        of_model = fewest.isel(variant=fewest.model.values == model)
        for width in sorted(set(of_model.width.values.tolist())):
            found = of_model.isel(variant=of_model.width.values == width)
            solved = [n for n, mean in zip(found.n.values, found["mean"].values) if mean < SOLVED]
            rows.append((model, width, min(solved, default=np.nan), float(found.n.max())))
    for place, name in enumerate(("model", "width", "n", "most")):
        summary[f"solved_{name}"] = ("solved", [row[place] for row in rows])
    return summary


def published_points(experiment: Experiment) -> list[Point]:
    """The paper's points for an experiment; NaN where they do not say n or width."""
    from bindscope.studies.presets import find_preset
    from bindscope.studies.symbols import published

    if experiment.name == "copy":
        first = [("plain", float(n), float(width), SOLVED) for width, n in published.COPY_FIRST_N.items()]
        widths = published.COPY_FIRST_N
        return first + [("both", float(published.COPY_FIRST_N_MODIFIED), float(width), SOLVED) for width in widths]
    if experiment.name == "width":
        return [("plain", 1024.0, float(width), loss) for width, loss in published.WIDTH_LOSS.items()]
    if experiment.name == "shape":
        return []
    task: Any = find_preset(experiment.preset).config.task
    curves = published.CURVES.get(task.name, {})
    return [
        (model, float(n), float("nan"), value)
        for model, points in curves.items()
        for n, value in sorted(points.items())
    ]
