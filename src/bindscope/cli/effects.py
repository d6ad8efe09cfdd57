"""What interventions did, as tables and as JSON: means over pairs with their intervals."""

from __future__ import annotations

import math
from typing import Any

from bindscope.cli.table import format_table

STRONGEST = 10  # cells listed with their intervals
WIDEST = 16  # columns a grid may have to be printed whole


def summarise(dataset: Any, seed: int) -> Any:
    """Means over pairs with bootstrap intervals, the same for the same seed."""
    import numpy as np

    from bindscope.interventions.outcome import summarise_outcomes

    return summarise_outcomes(dataset, np.random.default_rng([seed, 1]))


def format_summary(summary: Any, metric: str) -> str:
    """Cells as tables: over several steps one row each; else the whole grid where it fits, and the strongest cells."""
    dims = [dim for dim in summary[metric].dims if dim != "step"]
    if summary.sizes.get("step", 1) > 1:
        return _steps_table(summary, metric) if not dims else _steps_grid(summary, metric)
    last = summary.isel(step=0) if "step" in summary.dims else summary
    tables = []
    if not dims:
        return _all_metrics(last)
    if len(dims) == 2 and last.sizes[dims[1]] <= WIDEST:
        tables.append(_whole_grid(last, metric))
    rows = [_row(last, metric, cell) for cell in (_strongest(last, metric) if len(dims) > 1 else _every(last, metric))]
    heading = "strongest cells\n" if len(dims) > 1 else ""
    tables.append(heading + format_table(["cell", metric, "95 % interval", "n"], rows, numbers=[1, 3]))
    return "\n\n".join(tables)


def _steps_table(summary: Any, metric: str) -> str:
    rows = [[f"{int(step):,}", *_row(summary.sel(step=step), metric, {})] for step in summary.step.values]
    return format_table(["step", metric, "95 % interval", "n"], rows, numbers=[0, 1, 3])


def _steps_grid(summary: Any, metric: str) -> str:
    """One row a step, one column a position (its best layer) or a head: the strongest ones where there are many."""
    import numpy as np

    from bindscope.studies.plots.outcomes import best_layer

    rows = best_layer(summary[metric])  # [step, cell]
    by = str(rows.dims[1])
    strongest = np.argsort(-np.abs(np.nan_to_num(rows.values)).max(0), kind="stable")[:WIDEST]
    rows = rows.isel({by: np.sort(strongest)})
    names = [str(name) if isinstance(name, str) or by == "head" else f"{by} {name}" for name in rows[by].values]
    cells = [[f"{int(step):,}", *map(_number, rows.sel(step=step).values.tolist())] for step in rows.step.values]
    note = "the best layer of each" if by == "position" else f"of each {by}"
    ends = "; intervals and counts by --json"
    return f"{metric}, {note}{ends}\n" + format_table(["step", *names], cells, range(99))


def _all_metrics(summary: Any) -> str:
    rows = [[name, *_row(summary, name, {})] for name in summary.data_vars if f"{name}_low" in summary]
    return format_table(["metric", "mean", "95 % interval", "n"], rows, numbers=[1, 3])


def _whole_grid(summary: Any, metric: str) -> str:
    rows_by, columns_by = summary[metric].dims
    columns = [str(value) for value in summary[columns_by].values]
    rows = [
        [f"{rows_by} {row}", *(_number(float(value)) for value in summary[metric].sel({rows_by: row}).values)]
        for row in summary[rows_by].values[::-1]
    ]
    return format_table([metric, *(f"H{c}" if columns_by == "head" else c for c in columns)], rows, range(1, 99))


def _every(summary: Any, metric: str) -> list[dict[str, Any]]:
    """The coordinates of all cells, in order."""
    import numpy as np

    values = summary[metric]
    indices = np.ndindex(values.shape)
    return [{dim: values[dim].values[at] for dim, at in zip(values.dims, index)} for index in indices]


def _strongest(summary: Any, metric: str, most: int = STRONGEST) -> list[dict[str, Any]]:
    """The coordinates of the cells with the largest means, by size; cells without any effect are passed over."""
    import numpy as np

    size = np.abs(np.nan_to_num(summary[metric].values)).ravel()
    order = np.argsort(-size, kind="stable")[: max(1, min(most, int((size > 0).sum())))]
    cells = _every(summary, metric)
    return [cells[index] for index in order]


def _row(summary: Any, metric: str, cell: dict[str, Any]) -> list[str]:
    mean, low, high = (float(summary[f"{metric}{suffix}"].sel(cell)) for suffix in ("", "_low", "_high"))
    n = int(summary.n.sel(cell))
    interval = f"{_number(low)}{' to ' if low < 0 else '–'}{_number(high)}" if n > 1 else "–"
    return [*([_name(cell)] if cell else []), _number(mean), interval, str(n)]


def _name(cell: dict[str, Any]) -> str:
    if "receiver" in cell:
        return str(cell["receiver"])
    if "head" in cell:
        return f"L{cell['layer']}.H{cell['head']}"
    position = cell.get("position")
    named = "" if position is None else f" {position}" if isinstance(position, str) else f" position {position}"
    return f"L{cell['layer']}{named}"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def summary_to_json(summary: Any, metric: str, attrs: dict[str, Any]) -> dict[str, Any]:
    """Every cell with its mean, interval and count; what is missing is null."""
    import numpy as np

    def plain(value: Any) -> Any:
        number = value.item() if hasattr(value, "item") else value
        return None if isinstance(number, float) and math.isnan(number) else number

    values = summary[metric]
    cells = []
    for index in np.ndindex(values.shape):
        cell = {str(dim): plain(values[dim].values[at]) for dim, at in zip(values.dims, index)}
        means = {"mean": "", "low": "_low", "high": "_high"}
        numbers = {key: plain(summary[f"{metric}{suffix}"].values[index]) for key, suffix in means.items()}
        cells.append({**cell, **numbers, "n": int(summary.n.values[index])})
    return {**{str(key): plain(value) for key, value in attrs.items()}, "cells": cells}
