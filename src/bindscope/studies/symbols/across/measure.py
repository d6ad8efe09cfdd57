"""Identity scaling outside the tasks of study 3: does it let programs and sums be learned from fewer examples?

Experiments train the same task with and without identity-scaling terms: ``identity-programs`` (binding; ``identity`` has other
starts) and ``identity-sums`` (assign-and-add). A task counts as learned from the first evaluation after which every depth of a program,
or every split of sums, stays at 90 %; until then a run has seen steps × batch size examples, programs or sums. Runs that end
before are censored (see ``censored``).

>>> dataset = across_dataset(load_across())
>>> print(conclude_across(dataset))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.stats.censored import Waits, compare_pairs, compare_waits, median_bounds, median_interval
from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset

PATHS = ("off", "qk", "vo", "both")
PATH_WORDS: Mapping[str, str] = {
    "off": "no identity-scaling term",
    "qk": "in the scores",
    "vo": "in the outputs",
    "both": "in scores and outputs",
}
SENTENCE_WORDS: Mapping[str, str] = {
    "off": "runs without identity-scaling terms",
    "qk": "with one in the scores",
    "vo": "with one in the outputs",
    "both": "with both",
}
COMPARED = ("lowest", "highest", "low", "high", "p")
STATISTICS = (
    "median_lowest", "median_highest", "median_low", "median_high",
    *(f"ratio_{name}" for name in COMPARED), *(f"paired_{name}" for name in COMPARED),
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Variants of one experiment that differ in their identity-scaling terms alone."""

    name: str
    meaning: str
    experiment: str
    variants: Mapping[str, str]  # by path

    @property
    def family(self) -> str:
        return self.name.partition(",")[0]


def _start(start: str, meaning: str, *, parts: bool = False) -> Comparison:
    single = {"qk": f"{start}+scores", "vo": f"{start}+outputs"} if parts else {}
    return Comparison(f"binding, {start}", meaning, "identity", {"off": start, "both": f"{start}+identity", **single})


COMPARISONS = (
    Comparison(
        "binding, recipe",
        "programs, from the preset's own start, which attends a few positions back, matches and copies",
        "identity-programs",
        {"off": "off", "both": "both"},
    ),
    _start("no-mimetic", "programs, from a start that does not match or copy", parts=True),
    _start("neutral", "programs, from an ordinary start"),
    Comparison("sums", "sums with variables, from an ordinary start", "identity-sums", {path: path for path in PATHS}),
)
SIGNIFICANT = 0.05
MAIN = ("binding, recipe", "sums")  # the presets as they are: what the answer is about


def load_across(runs_directory: Path | str = "runs") -> dict[str, xr.Dataset]:
    """The datasets of the experiments, made here or shipped."""
    found = {}
    for name in dict.fromkeys(each.experiment for each in COMPARISONS):
        path = find_experiment_dataset(name, runs_directory)
        if path is None:
            raise BindscopeError(
                f"across: experiment {name} has no dataset yet; make it by 'bindscope experiment {name}'."
            )
        found[name] = load_experiment_dataset(path)
    return found


def across_dataset(datasets: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Examples until learned over (comparison, path, seed), and over (comparison, path) medians and ratios to ``off``.

    ``examples`` is infinite where the run ended first, after ``examples_seen``, and NaN where there is no run. The ratio is
    that of ``off`` to the path, of all runs (``ratio_…``) and of those with the same seed (``paired_…``): above 1, identity
    scaling needs fewer examples.
    """
    n_seeds = 1 + max(int(dataset.seed.max()) for dataset in datasets.values())
    shape = (len(COMPARISONS), len(PATHS))
    examples, seen = (np.full((*shape, n_seeds), np.nan) for _ in range(2))
    statistics = {name: np.full(shape, np.nan) for name in STATISTICS}
    for row, comparison in enumerate(COMPARISONS):
        dataset = datasets[comparison.experiment]
        known = {path: name for path, name in comparison.variants.items() if name in dataset.variant.values}
        for path, variant in known.items():
            at = row, PATHS.index(path)
            examples[(*at, dataset.seed.values)], seen[(*at, dataset.seed.values)] = examples_until_learned(
                dataset, variant
            )
        for path in known:
            at = row, PATHS.index(path)
            summary = _summarise(_waits(examples[at], seen[at]))
            if path != "off":
                summary |= _compare(examples[at], seen[at], examples[row, 0], seen[row, 0])
            for name, value in summary.items():
                statistics[name][at] = value
    dims = ("comparison", "path")
    return xr.Dataset(
        {
            "examples": ((*dims, "seed"), examples, {"units": "examples"}),
            "examples_seen": ((*dims, "seed"), seen, {"units": "examples"}),
            **{name: (dims, values) for name, values in statistics.items()},
        },
        {"comparison": [each.name for each in COMPARISONS], "path": list(PATHS), "seed": np.arange(n_seeds)},
        {
            "title": "identity scaling on programs and on sums: examples until learned",
            "source": "bindscope across",
            "presets": json.dumps({name: str(dataset.attrs["preset"]) for name, dataset in datasets.items()}),
        },
    )


def examples_until_learned(dataset: xr.Dataset, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """For each seed of an experiment's variant how many examples it took (infinite: never) and how many it saw."""
    cells = dataset.sel(variant=variant)
    learned = cells.learned.max("split", skipna=False) if "split" in cells.learned.dims else cells.learned
    last = cells.last_step.values.astype(float)
    steps = np.where(np.isnan(learned.values), np.inf, learned.values)
    batch_size = _batch_size(dataset, variant)
    return np.where(np.isnan(last), np.nan, batch_size * steps), batch_size * last


def conclude_across(dataset: xr.Dataset) -> str:
    """The answer for the presets as they are, then for other starts, from the numbers alone."""
    others = [name for name in map(str, dataset.comparison.values) if name not in MAIN]
    sentences = [_describe(dataset.sel(comparison=name)) for name in (*MAIN, *others)]
    return " ".join([*sentences, _sum_up(dataset)])


def known_paths(row: xr.Dataset) -> list[str]:
    """The paths of a comparison that have runs."""
    return [str(path) for path in row.path.values if bool(row.examples_seen.sel(path=path).notnull().any())]


def count_learned(row: xr.Dataset, path: str) -> tuple[int, int]:
    """How many runs learned, of how many."""
    values = row.examples.sel(path=path).values
    return int(np.isfinite(values).sum()), int((~np.isnan(values)).sum())


def format_between(lowest: float, highest: float, digits: int = 0) -> str:
    """``12,800`` where it is known, ``> 12,800`` or ``< 0.8`` where one side is open, ``?`` where both are."""
    if lowest == highest:
        return f"{lowest:,.{digits}f}"
    if isfinite(highest):
        return f"{lowest:,.{digits}f}–{highest:,.{digits}f}" if lowest > 0 else f"< {highest:,.{digits}f}"
    return f"> {lowest:,.{digits}f}" if lowest > 0 else "?"


def _describe(row: xr.Dataset) -> str:
    name, paths = str(row.comparison.item()), known_paths(row)
    if "off" not in paths:
        return f"{name}: no run without identity-scaling terms to compare with."
    return f"{name}: learned by {', '.join(_describe_path(row, path) for path in paths)}."


def _describe_path(row: xr.Dataset, path: str) -> str:
    at = row.sel(path=path)
    learned, runs = count_learned(row, path)
    text = f"{learned} of {runs} {SENTENCE_WORDS[path]}"
    details = []
    if learned:
        details.append(f"median {format_between(float(at.median_lowest), float(at.median_highest))} examples")
    if path != "off" and (learned or count_learned(row, "off")[0]):
        details.append(_describe_ratio(at))
    return f"{text} ({'; '.join(details)})" if details else text


def _describe_ratio(at: xr.Dataset) -> str:
    (estimate, interval, p), (of_seed, seed_interval, seed_p) = (tell_ratio(at, word) for word in ("ratio", "paired"))
    return (
        f"without takes {estimate} times as many, 95 % interval {interval}, p = {p}; seed by seed {of_seed} times, "
        f"{seed_interval}, p = {seed_p}"
    )


def tell_ratio(at: xr.Dataset, word: str) -> tuple[str, str, str]:
    """``("1.80", "1.20–2.50", "0.004")``: estimate, interval and p, of all runs (``ratio``) or seed by seed (``paired``)."""
    lowest, highest, low, high, p = (float(at[f"{word}_{name}"]) for name in COMPARED)
    interval = "open" if low == 0 and high == inf else format_between(low, high, 2)
    return format_between(lowest, highest, 2), interval, f"{p:.2g}"


def _sum_up(dataset: xr.Dataset) -> str:
    words = [f"{name}, {_direction(dataset.sel(comparison=name, path='both'))}" for name in MAIN]
    return f"With both identity-scaling terms: {'; '.join(words)}."


def _direction(at: xr.Dataset) -> str:
    """By the exact rank test at 5 %; the interval tells how large a difference is."""
    if float(at.ratio_p) <= SIGNIFICANT and float(at.ratio_lowest) > 1:
        return "fewer examples"
    if float(at.ratio_p) <= SIGNIFICANT and float(at.ratio_highest) < 1:
        return "more examples"
    return "no difference shown"


def _summarise(group: Waits) -> dict[str, float]:
    lowest, highest = median_bounds(group)
    low, high = median_interval(group)
    return {"median_lowest": lowest, "median_highest": highest, "median_low": low, "median_high": high}


def _compare(
    examples: np.ndarray, seen: np.ndarray, off_examples: np.ndarray, off_seen: np.ndarray
) -> dict[str, float]:
    """All runs of a path with all of ``off``, and those of the same seeds with each other; nothing where one is missing."""
    shared = ~np.isnan(seen) & ~np.isnan(off_seen)
    if not shared.any():
        return {}
    all_runs = compare_waits(_waits(off_examples, off_seen), _waits(examples, seen))
    of_seeds = compare_pairs(_waits(off_examples[shared], off_seen[shared]), _waits(examples[shared], seen[shared]))
    compared = {"ratio": all_runs, "paired": of_seeds}
    return {f"{word}_{name}": getattr(ratio, name) for word, ratio in compared.items() for name in COMPARED}


def _waits(examples: np.ndarray, seen: np.ndarray) -> Waits:
    there = ~np.isnan(seen)
    return Waits(tuple(examples[there].tolist()), tuple(seen[there].tolist()))


def _batch_size(dataset: xr.Dataset, variant: str) -> int:
    from bindscope.runs.config import override
    from bindscope.studies.framework.presets import find_preset

    common = json.loads(dataset.attrs["common_changes"])
    changes = {**common, **json.loads(dataset.attrs["changes"])[variant]}
    return override(find_preset(str(dataset.attrs["preset"])).config, changes).training.batch_size
