"""What a pretrained GPT-2 and one from scratch made of a task."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.results import Context, NotTestable, Result


def compute_gpt2(context: Context) -> xr.Dataset:
    """The dataset of the experiment gpt2, made here or shipped."""
    from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset

    path = find_experiment_dataset("gpt2", context.runs_directory)
    if path is None:
        raise NotTestable(
            "no GPT-2 was trained yet; do so with 'bindscope experiment gpt2 --pretrained DIR --full' and verify again"
        )
    return load_experiment_dataset(path)


RESULTS: tuple[Result, ...] = (
    Result("gpt2", "GPT-2 from scratch and pretrained, by the number of sequences", compute_gpt2, kept=False),
)
