"""What the experiments over width say: the first n that suffices at each width, losses side by side, and what early
updates (``copy_directions``) do, over seeds.

An n was either trained or not, so a first n is known between bounds: where even the smallest n suffices it may lie
lower, where none does it lies above the largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from bindscope.intervals import student_interval
from bindscope.studies.framework.claims import Quantity

FEWEST_WIDTHS = 3  # to speak of growth
SOLVED = 0.1  # the error below which copying counts as learned


@dataclass(frozen=True)
class FirstN:
    """The smallest trained n whose mean error is below a tenth, at one width."""

    width: int
    n: float  # infinite where none is
    below: int  # the largest trained n before it; 0 where the smallest suffices
    by_seed: tuple[float, ...]  # the same for each seed alone
    largest: int  # the largest n that was trained

    @property
    def reached(self) -> bool:
        return self.n < np.inf

    @property
    def at_least(self) -> float:
        """A lower bound for comparisons: 0 where the smallest trained n suffices already."""
        return self.n if self.below and self.reached else float(self.below)

    def __str__(self) -> str:
        if not self.reached:
            return f"more than {self.largest:,}"
        return f"{self.n:,.0f}" if self.below else f"{self.n:,.0f} or fewer"


def find_first_n(dataset: xr.Dataset, model: str) -> list[FirstN]:
    """For each width the first n at which a model copies unseen symbols, narrow ones first.

    >>> [str(first) for first in find_first_n(dataset, "plain")]
    ['16', '64', '64', '128', 'more than 1,024']
    """
    chosen = choose_heads(dataset)
    chosen = chosen.isel(variant=np.flatnonzero(chosen.model.values == model))
    return [_first_n(chosen, int(width)) for width in np.unique(chosen.width.values)]


def choose_heads(dataset: xr.Dataset) -> xr.Dataset:
    """Variants of one number of heads: the one that was trained at most widths, with fewer heads if two were."""
    heads = np.unique(dataset.heads.values)
    n_widths = [len(np.unique(dataset.width.values[dataset.heads.values == count])) for count in heads]
    return dataset.isel(variant=np.flatnonzero(dataset.heads.values == heads[int(np.argmax(n_widths))]))


def largest_n(dataset: xr.Dataset) -> xr.Dataset:
    """The plain transformer's variants of one number of heads at the largest n that several widths share, by width."""
    dataset = choose_heads(dataset.isel(variant=np.flatnonzero(dataset.model.values == "plain")))
    sizes, counts = np.unique(dataset.n.values, return_counts=True)
    n = sizes[counts >= min(FEWEST_WIDTHS, counts.max())].max()
    return dataset.isel(variant=np.flatnonzero(dataset.n.values == n)).sortby("width")


def split_error(dataset: xr.Dataset, split: str = "test") -> np.ndarray:
    """One minus the accuracy of each run, [variant, seed], at the evaluation that is best on validation symbols.

    Answers are read by the embeddings, and training lowers those of symbols that are never an answer: a model that has
    learned to copy may unlearn it for unseen ones. Validation symbols, which are not those of the test, say when to look.
    """
    curves = dataset.split_accuracy.transpose("variant", "seed", "step", "split")
    best = curves.sel(split="validation").fillna(-1).argmax("step")
    return 1 - curves.sel(split=split).isel(step=best).values.astype(float)


def split_loss(dataset: xr.Dataset, split: str = "test") -> np.ndarray:
    """The loss at the end of each run, [variant, seed]; 1 is that of knowing nothing."""
    return dataset.last_loss.sel(split=split).transpose("variant", "seed").values.astype(float)


def ratio_bounds(narrow: FirstN, wide: FirstN) -> tuple[float, float]:
    """Between which numbers the ratio of two first n lies.

    >>> ratio_bounds(FirstN(32, 16, 8, (16,), 64), FirstN(512, np.inf, 256, (np.inf,), 256))
    (16.0, inf)
    """
    low = wide.at_least / narrow.n if narrow.reached else 0.0
    high = wide.n / narrow.at_least if narrow.at_least else np.inf
    return low, high


def _first_n(dataset: xr.Dataset, width: int) -> FirstN:
    """Of the variants of one model, [variant] by width."""
    there = dataset.isel(variant=np.flatnonzero(dataset.width.values == width)).sortby("n")
    sizes, errors = there.n.values.astype(int), split_error(there)
    trained = np.isfinite(errors)
    known = trained.any(1)
    sizes, errors, trained = sizes[known], errors[known], trained[known]
    means = np.nanmean(errors, 1) if len(errors) else np.array([])
    n = _smallest(sizes, means)
    by_seed = tuple(_smallest(sizes[has], errors[has, seed]) for seed, has in enumerate(trained.T) if has.any())
    below = max((int(size) for size in sizes if size < n), default=0)
    return FirstN(width, n, below, by_seed, int(sizes.max(initial=0)))


def _smallest(sizes: np.ndarray, errors: np.ndarray) -> float:
    return min((float(size) for size in sizes[errors < SOLVED]), default=np.inf)


def mean_over_seeds(dataset: xr.Dataset, name: str, model: str, width: int, step: int, label: str = "") -> Quantity:
    """The mean over seeds of what layers have on average, with Student's interval where there are several seeds.

    >>> str(mean_over_seeds(dataset, "ratio", "plain", width=512, step=4, label="ratio"))
    'ratio 0.135 [0.12–0.15]'
    """
    cell = dataset[name].sel(model=model, width=width)
    if "step" in cell.dims:
        cell = cell.sel(step=step)
    seeds = np.atleast_1d(cell.mean([dim for dim in cell.dims if dim != "seed"]).values.astype(float))
    low, high = student_interval(seeds) if len(seeds) > 1 else (None, None)
    return Quantity(label or name, float(seeds.mean()), low, high, len(seeds), "1")


def widths_of(dataset: xr.Dataset) -> list[int]:
    return [int(width) for width in dataset.width.values]


def last_step(dataset: xr.Dataset) -> int:
    """The last of the steps at which updates were read."""
    return int(dataset.step.values[-1])
