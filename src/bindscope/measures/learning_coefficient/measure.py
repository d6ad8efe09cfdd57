"""The local learning coefficient of a model, as a labelled dataset.

>>> examples = draw_examples(task, np.random.default_rng(0), 1024)
>>> measure_coefficient(model, examples).coefficient
"""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import nn

from bindscope.measures.learning_coefficient.estimate import Estimate, estimate_coefficient
from bindscope.measures.learning_coefficient.examples import Examples
from bindscope.measures.learning_coefficient.landscape import ModelLandscape
from bindscope.measures.learning_coefficient.parts import WHOLE
from bindscope.measures.learning_coefficient.sampling import Chains, OnProgress, Sampling, sample_chains

SCALARS = {  # of an Estimate → what it is
    "coefficient": "local learning coefficient",
    "coefficient_low": "lower end of its 95 % interval over chains",
    "coefficient_high": "upper end",
    "drift": "second half of the counted draws minus the first, as a fraction of the coefficient",
    "settled": "1 where the drift is nothing",
    "diverged": "1 where a chain ran away, so that there is no coefficient",
    "negative": "fraction of counted draws below the loss at the checkpoint",
    "equipartition": "1 for samples of the posterior",
    "left": "1 where the loss rises so far along the chains that they are no longer near the checkpoint",
}


def measure_coefficient(
    model: nn.Module,
    examples: Examples,
    sampling: Sampling | None = None,
    part: str = WHOLE,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> xr.Dataset:
    """λ̂ with its diagnostics, over () and (chain), and ``trace``, nβ (L_b(w) − L_b(w*)), over (chain, draw)."""
    landscape = ModelLandscape(model, examples, part)
    chains = sample_chains(landscape, sampling or Sampling(), torch.Generator().manual_seed(seed), on_progress)
    return label_estimate(estimate_coefficient(chains), chains)


def label_estimate(estimate: Estimate, chains: Chains) -> xr.Dataset:
    """An estimate and the traces it was read from."""
    numbers = {
        "coefficient": estimate.coefficient,
        "coefficient_low": estimate.low,
        "coefficient_high": estimate.high,
        "drift": estimate.drift,
        "settled": float(estimate.settled),
        "diverged": float(estimate.diverged),
        "negative": estimate.negative,
        "equipartition": estimate.equipartition,
        "left": float(estimate.left),
    }
    dataset = xr.Dataset(
        {name: ((), np.float64(value), {"long_name": SCALARS[name]}) for name, value in numbers.items()}
    )
    dataset["by_chain"] = ("chain", np.array(estimate.by_chain))
    dataset["trace"] = (("chain", "draw"), chains.scale * chains.excess)
    return dataset.assign_coords(chain=np.arange(len(estimate.by_chain)), draw=np.arange(chains.sampling.draws))


def describe_sampling(sampling: Sampling, n_examples: int) -> dict[str, float | int]:
    """The settings of chains as attributes of a dataset."""
    return {
        "chains": sampling.chains,
        "draws": sampling.draws,
        "burn_in": sampling.burn_in,
        "step_size": sampling.step_size,
        "elasticity": sampling.elasticity,
        "scale": sampling.scale_for(n_examples),
        "n_examples": n_examples,
    }
