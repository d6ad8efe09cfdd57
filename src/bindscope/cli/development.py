"""``bindscope development``: all that is measured of a run over training, and which of it turns first."""

from __future__ import annotations

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.options import HERE, Cluster, Flag, Jobs, Place
from bindscope.cli.outcome import NUMBERS, check_out, write_out
from bindscope.cli.table import format_table

if TYPE_CHECKING:
    import xarray as xr

UNKNOWN = "–"


def development(
    run: str,
    /,
    *,
    measure: Flag = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    place: Place = HERE,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Put everything measured of a run over training side by side, and tell what turns first.

    A curve turns where it is half way from its median on the plateau (the phase
    before the last) to its median over the last quarter of the steps after it,
    and stays. Curves of any unit and direction can so be compared. What was not
    measured yet is named; --measure measures it.

    Examples:
        bindscope development binding-neutral
        bindscope development binding-plain --out development.svg
        bindscope development runs/mine --measure

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    measure
        First measure what is missing. It is saved with the run, that of a shipped run under runs/verify-NAME.
    out
        Also write the curves as a figure (.svg, .pdf, .png), or their numbers (.nc).
    json
        Print turns and curves as JSON instead of a table.
    """
    from bindscope.cli.verify import open_run_library, watch_results
    from bindscope.studies.framework.development import develop
    from bindscope.studies.framework.verify import fill_results

    check_out(out)
    library, study = open_run_library(run, placement=place)
    if measure:
        with watch_results() as on_result:
            names = dict.fromkeys(curve.result for curve in study.curves)
            fill_results(names, library, on_result, jobs, cluster)
    dataset = develop(library)
    print(json_format.dumps(to_mapping(dataset)) if json else format_development(dataset))
    if out is not None:
        from bindscope.studies.plots.development import figure_development

        storable = dataset.assign_attrs({name: str(value) for name, value in dataset.attrs.items()})
        path = write_out(storable, out, None if out.suffix.lower() == NUMBERS else figure_development(dataset))
        if not json:
            print(f"\nwritten  {path}")


def format_development(dataset: xr.Dataset) -> str:
    """One row a curve, first what turns first; then what does not change, and what is not measured."""
    name, missing = dataset.attrs["run"], dataset.attrs["missing"]
    order = sorted(dataset.curve.values, key=lambda curve: _sort_key(float(dataset.turned_at.sel(curve=curve))))
    rows = [_row(dataset.sel(curve=curve)) for curve in order]
    headings = ["half way at step", "curve", "on the plateau", "at the end"]
    parts = [f"{name}: what turns when", "", format_table(headings, rows, numbers=[0, 2, 3])]
    if missing:
        parts += ["", f"not measured yet: {missing}; 'bindscope development {name} --measure' measures it"]
    return "\n".join(parts)


def to_mapping(dataset: xr.Dataset) -> dict[str, Any]:
    """The dataset as plain values, by curve."""
    numbers = ("turned_at", "turned_low", "turned_high", "start", "end")
    curves = {}
    for curve in dataset.curve.values:
        one = dataset.sel(curve=curve)
        known = one.value.notnull().values
        curves[str(curve)] = {
            "title": str(one.title.values),
            "result": str(one.result.values),
            **{name: _plain(float(one[name])) for name in numbers},
            "steps": one.step.values[known].tolist(),
            **{
                name: [_plain(value) for value in one[name].values[known].tolist()] for name in ("value", "low", "high")
            },
        }
    missing = [name for name in dataset.attrs["missing"].split(", ") if name]
    return {"run": dataset.attrs["run"], "curves": curves, "missing": missing}


def _row(one: xr.Dataset) -> list[str]:
    turned, low, high = (float(one[name]) for name in ("turned_at", "turned_low", "turned_high"))
    interval = f" [{low:,.0f}–{high:,.0f}]" if low < high else ""
    return [
        "does not change" if math.isnan(turned) else f"{turned:,.0f}{interval}",
        str(one.title.values),
        *(_show(float(one[name]), str(one.unit.values)) for name in ("start", "end")),
    ]


def _show(value: float, unit: str) -> str:
    if math.isnan(value):
        return UNKNOWN
    return f"{100 * value:.1f} %" if unit == "fraction" else f"{value:.3g}"


def _sort_key(turned: float) -> float:
    return math.inf if math.isnan(turned) else turned


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
