"""What a pretrained GPT-2 and one from scratch made of a task."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.results import Context, Result

UNTRAINED = "no GPT-2 was trained yet; do so with 'bindscope experiment gpt2 --pretrained DIR --full' and verify again"


def compute_gpt2(context: Context) -> xr.Dataset:
    """The dataset of the experiment gpt2, made here or shipped."""
    return context.read_experiment("gpt2", UNTRAINED)


RESULTS: tuple[Result, ...] = (
    Result(
        "gpt2",
        "GPT-2 from scratch and pretrained, by the number of sequences",
        compute_gpt2,
        kept=False,
        experiments=("gpt2",),
    ),
)
