"""Result: the language experiment's dataset, of the reader's text if there is one, else the shipped one."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.experiments import find_experiment_dataset
from bindscope.studies.framework.results import Context, NotTestable, Result
from bindscope.studies.symbols.language.define import NAME


def compute_language(context: Context) -> xr.Dataset:
    """The dataset of 'bindscope language', made here or shipped."""
    dataset = context.read_experiment(NAME)
    if "test_perplexity" not in dataset:
        path = find_experiment_dataset(NAME, context.runs_directory)
        raise NotTestable(f"{path}: the dataset holds no perplexities; train again with 'bindscope experiment {NAME}'")
    return dataset


RESULTS: tuple[Result, ...] = (
    Result(NAME, "perplexity with and without identity scaling", compute_language, kept=False, experiments=(NAME,)),
)
