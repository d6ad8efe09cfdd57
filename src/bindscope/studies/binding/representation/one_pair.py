"""The subspaces that a study keeps, found again for one checkpoint and put to work (``measures/binding/subspace_pair.py``).

A subspace is found on the same pairs and at the same site as the saved results ``subspaces`` and ``projections``.

>>> found = find_kept_subspace(run, run.checkpoint("last"), "values")
>>> swap_pair(model, pair_programs(base, other), found.search, found.change("found"))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from bindscope.model.transformer import Transformer
from bindscope.studies.binding.representation.measure import N_PAIRS, sample_halves
from bindscope.subspaces import Search, Subspace, default_search, find_subspace, random_subspace
from bindscope.subspaces.positions import Quality
from bindscope.subspaces.stream import Change

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

Control = Literal["found", "random", "rest"]
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
    fit, _ = sample_halves(run, np.random.default_rng(SEED), N_PAIRS // 2)[quality]
    search = default_search(model, quality)
    found = find_subspace(model, fit, of=quality, layer=search.layer, position=search.position, rank=search.size)
    return Kept(search, found.subspace)
