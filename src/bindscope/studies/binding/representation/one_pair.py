"""The subspaces that a study keeps, found again for one checkpoint and put to work (``measures/binding/subspace_pair.py``).

A subspace is found on the same pairs and at the same site as the saved results ``subspaces`` and ``projections``.

>>> found = find_kept_subspace(run, run.checkpoint("last"), "values")
>>> swap_pair(model, pair_programs(base, other), found.search, found.change("found"))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from bindscope.model.transformer import Transformer
from bindscope.studies.binding.representation.measure import N_PAIRS, sample_halves
from bindscope.subspaces import Samples, Search, Subspace, default_search, fit_subspace, random_subspace, sample_stream
from bindscope.subspaces.positions import Quality
from bindscope.subspaces.stream import Change

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

Control = Literal["found", "random", "rest"]  # … and "shuffled", which is another fit
SEED = 0  # of the saved results


@dataclass(frozen=True, eq=False)
class Kept:
    """A subspace and where it was found."""

    search: Search
    subspace: Subspace

    def change(self, control: Control, seed: int = 0) -> Change:
        """What is swapped: the part inside, the part inside a random subspace of equal rank, or all but the part inside."""
        if control == "rest":
            return self.subspace.swap_rest
        if control == "random":
            generator = torch.Generator().manual_seed(seed)
            return random_subspace(self.subspace.d_model, self.subspace.rank, generator).swap
        return self.subspace.swap


def find_kept_subspace(run: Run, model: Transformer, quality: Quality) -> Kept:
    """The subspace of a checkpoint, fitted to the pairs of the saved results; at the last step it is theirs."""
    search = default_search(model, quality)
    return Kept(search, fit_subspace(_sample(run, model, search), quality, search.size).subspace)


def fit_to_shuffled(run: Run, model: Transformer, quality: Quality, seeds: Iterable[int]) -> list[Subspace]:
    """What the same fit to the same activations finds where their labels are shuffled, a draw for each seed."""
    search = default_search(model, quality)
    samples = _sample(run, model, search)
    shuffled = (samples.shuffle_labels(torch.Generator().manual_seed(seed)) for seed in seeds)
    return [fit_subspace(each, quality, search.size).subspace for each in shuffled]


def _sample(run: Run, model: Transformer, search: Search) -> Samples:
    fit, _ = sample_halves(run, np.random.default_rng(SEED), N_PAIRS // 2)[search.of]
    return sample_stream(model, fit, of=search.of, layer=search.layer, position=search.position)
