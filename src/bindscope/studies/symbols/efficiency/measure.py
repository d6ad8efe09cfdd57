"""The experiments of study 3 as results: curves over n and over width."""

from __future__ import annotations

from functools import partial

import xarray as xr

from bindscope.studies.framework import experiments
from bindscope.studies.framework.experiments import count_runs, find_experiment, load_experiment_dataset
from bindscope.studies.framework.results import Context, NotTestable, Result


def compute_curves(name: str, context: Context) -> xr.Dataset:
    """The dataset of an experiment: trained here, else shipped.

    One that was only begun here is passed over while more runs are shipped.
    """
    found = experiments.find_experiment_dataset(name, context.runs_directory)
    if found is None:
        raise NotTestable(f"no runs of it were trained; train them with 'bindscope experiment {name}' and verify again")
    own, shipped = load_experiment_dataset(found), experiments.SHIPPED_DATASETS / f"{name}.nc"
    if found == shipped or not shipped.is_file() or _is_whole(name, own):
        return own
    other = load_experiment_dataset(shipped)
    return max((own, other), key=count_runs)


def _is_whole(name: str, dataset: xr.Dataset) -> bool:
    """Whether every variant that needs no --full has a run."""
    usual = {variant.name for variant in find_experiment(name).variants if not variant.full}
    return usual <= {str(variant) for variant in dataset.variant.values}


TITLES = {
    "same-different": "telling equal symbols from different ones, by the number of training sequences",
    "aba-abb": "seeing which symbol comes again, by the number of training sequences",
    "print-real": "printing a variable's number, by the number of training programs",
    "print-symbolic": "printing a value never seen, by the number of training programs",
    "majority": "seeing a majority, by the number of training sequences",
    "copy": "repeating a symbol never seen, by width and the number of training symbols",
    "width": "telling equal symbols from different ones, by width",
    "shape": "telling equal symbols from different ones, by depth, heads, rate and batch",
}
RESULTS: tuple[Result, ...] = tuple(
    Result(name, title, partial(compute_curves, name), kept=False, experiments=(name,))
    for name, title in TITLES.items()
)
