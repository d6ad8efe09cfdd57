"""``bindscope across``: how many examples programs and sums take to be learned, with identity scaling and without."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.options import Flag
from bindscope.cli.outcome import check_out, write_out
from bindscope.cli.table import format_table
from bindscope.runs.locate import RUNS_DIRECTORY

if TYPE_CHECKING:
    import xarray as xr


def across(*, runs: Path = RUNS_DIRECTORY, out: Path | None = None, json: Flag = False) -> None:
    """Compare learning with and without identity scaling, on programs and on modular addition.

    Reads what 'bindscope experiment identity-programs', 'identity-sums' and 'identity'
    made here, else what is shipped: examples seen until every depth or split is at 90 %
    for good. Runs that ended before count as longer than their end, not as that long.

    Examples:
        bindscope across
        bindscope across --out across.svg
        bindscope across --out across.nc

    Parameters
    ----------
    runs
        The directory in which experiments are saved.
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the numbers as JSON instead of a table.
    """
    from bindscope.studies.symbols.across.measure import across_dataset, conclude_across, load_across

    check_out(out)
    dataset = across_dataset(load_across(runs))
    if json:
        print(json_format.dumps(_to_json(dataset)))
    else:
        print(f"{format_across(dataset)}\n\n{conclude_across(dataset)}")
    if out is not None:
        path = write_out(dataset, out, _figure_or_none(dataset, out))
        if not json:
            print(f"\nwritten  {path}")


def format_across(dataset: xr.Dataset) -> str:
    """One row for each start and path: who learned, after how many examples, and how many more it takes without."""
    from bindscope.studies.symbols.across.measure import (
        PATH_WORDS,
        count_learned,
        format_between,
        known_paths,
        tell_ratio,
    )

    def between(at: Any, low: str, high: str, digits: int = 0) -> str:
        return format_between(float(at[low]), float(at[high]), digits)

    def told(at: Any, word: str) -> str:
        estimate, interval, p = tell_ratio(at, word)
        return f"{estimate} ({interval}, p = {p})"

    rows = []
    for name in map(str, dataset.comparison.values):
        row = dataset.sel(comparison=name)
        for path in known_paths(row):
            at, (learned, runs) = row.sel(path=path), count_learned(row, path)
            texts = [name, PATH_WORDS[path], f"{learned} of {runs}", between(at, "median_lowest", "median_highest")]
            texts.append(between(at, "median_low", "median_high"))
            texts += ["", ""] if path == "off" else [told(at, "ratio"), told(at, "paired")]
            rows.append(texts)
    headings = [
        "task, start",
        "identity-scaling terms",
        "learned",
        "median examples",
        "95 %",
        "off / this (95 %)",
        "seed by seed (95 %)",
    ]
    return format_table(headings, rows, numbers=[3, 4])


def _to_json(dataset: xr.Dataset) -> dict[str, Any]:
    """Numbers that JSON has: what is infinite or was not trained is null."""
    from math import isfinite

    from bindscope.studies.symbols.across.measure import STATISTICS, conclude_across, known_paths

    def plain(value: Any) -> float | None:
        return float(value) if isfinite(value) else None

    rows = []
    for name in map(str, dataset.comparison.values):
        row = dataset.sel(comparison=name)
        for path in known_paths(row):
            at = row.sel(path=path).dropna("seed", subset=["examples_seen"])
            runs = [
                {"seed": int(seed), "examples": plain(examples), "examples_seen": plain(seen)}
                for seed, examples, seen in zip(at.seed.values, at.examples.values, at.examples_seen.values)
            ]
            numbers = {statistic: plain(at[statistic]) for statistic in STATISTICS}
            rows.append({"comparison": name, "path": path, **numbers, "runs": runs})
    return {"comparisons": rows, "conclusion": conclude_across(dataset)}


def _figure_or_none(dataset: xr.Dataset, out: Path) -> Any:
    from bindscope.studies.symbols.across.draw import draw_across

    return None if out.suffix.lower() == ".nc" else draw_across(dataset)
