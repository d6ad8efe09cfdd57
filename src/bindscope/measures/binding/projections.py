"""The points of the residual stream along three axes of the subspaces of values and names, step by step.

Three kinds of axes, all of them principal components of the part of the residual stream inside a subspace:

- ``frozen``    of the subspace that the last checkpoint has, at every step: how points move in one fixed space;
- ``refitted``  of the subspace that each step has, turned to lie as the next step's do (Procrustes), so that what moves is
                the points rather than signs; at the last step they are the frozen ones;
- ``random``    of one random subspace of equal rank, frozen: what any few dimensions would show.

For each kind and step: how often a linear classifier reads the label off the whole subspace, on pairs it was not fitted to,
and how often swapping the subspace changes the answer to the counterfactual's. At random both are means over several draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import xarray as xr

from bindscope.model.transformer import Transformer
from bindscope.subspaces import (
    RANKS,
    Samples,
    Search,
    Subspace,
    align_axes,
    default_search,
    find_columns,
    fit_axes,
    fit_subspace,
    label_columns,
    random_subspace,
    read_stream,
    sample_stream,
)
from bindscope.subspaces.measure import fraction_with_interval, score_subspace
from bindscope.subspaces.stream import keep_base, run_changed
from bindscope.tasks.binding import CounterfactualPairs

Groups = Sequence[Sequence[Subspace]]  # the subspaces of each kind
KINDS = ("frozen", "refitted", "random")
N_AXES = 3
N_POINTS = 200
N_DRAWS = 3  # random subspaces; points are shown along the first
DIMS = {
    "coordinate": ("kind", "point", "axis"),
    "variance_fraction": ("kind", "axis"),
    "direction": ("axis", "d_model"),  # of the refitted axes: at the last step those are the frozen ones
    "centre": ("d_model",),
}


class Look:
    """One quality of counterfactual pairs, looked at step by step from the last one back."""

    def __init__(
        self, quality: str, fit: CounterfactualPairs, test: CounterfactualPairs, last: Transformer, seed: int
    ) -> None:

        self.search: Search = default_search(last, quality)  # type: ignore[arg-type]
        self.fit, self.test, self.rng = fit, test, np.random.default_rng(seed)
        self.columns = find_columns(test, self.search.position)
        generator = torch.Generator().manual_seed(seed)
        self.draws = [random_subspace(last.config.d_model, self.search.size, generator) for _ in range(N_DRAWS)]
        points = self._samples(last, test).vectors[:N_POINTS]
        self.found = self._find(self._samples(last, fit))
        self.frozen = fit_axes(points, self.found, N_AXES)
        self.random = fit_axes(points, self.draws[0], N_AXES)
        self.ahead = self.frozen.coordinates(points)  # the refitted coordinates of the step after

    def at(self, model: Transformer) -> dict[str, np.ndarray]:
        """Everything measured at one step, over (kind, …)."""
        fit, test = self._samples(model, self.fit), self._samples(model, self.test)
        points, found = test.vectors[:N_POINTS], self._find(fit)
        refitted = align_axes(fit_axes(points, found, N_AXES), points, self.ahead)
        self.ahead = refitted.coordinates(points)
        kinds = (self.frozen, refitted, self.random)
        row: dict[str, np.ndarray] = {
            "coordinate": np.stack([axes.coordinates(points).numpy() for axes in kinds]),
            "variance_fraction": np.stack([axes.variance_fractions(points).numpy() for axes in kinds]),
            "direction": refitted.directions.numpy(),
            "centre": refitted.mean.numpy(),
        }
        groups = ([self.found], [found], self.draws)
        for name, values in (("score", self._scores(groups, fit, test)), ("success", self._swaps(groups, model))):
            row |= {f"{name}{end}": number for end, number in zip(("", "_low", "_high"), values)}
        return row

    def to_dataset(self, rows: list[dict[str, np.ndarray]], steps: list[int]) -> xr.Dataset:
        variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for name in rows[0]:
            dims, together = DIMS.get(name, ("kind",)), [row[name] for row in rows]
            if dims[0] == "kind":
                variables[name] = (("kind", "step", *dims[1:]), np.stack(together, 1))
            else:
                variables[name] = (("step", *dims), np.stack(together))
        variables["basis"] = ("component", "d_model"), _padded(self.found.basis.numpy())
        variables["random_direction"] = ("axis", "d_model"), self.random.directions.numpy()
        variables["random_centre"] = ("d_model",), self.random.mean.numpy()
        variables |= {name: (("point",), values) for name, values in self._labels().items()}
        dataset = xr.Dataset(variables, {"kind": list(KINDS), "step": steps, "axis": np.arange(1, N_AXES + 1)})
        dataset["search_rank"], dataset["search_layer"] = self.search.size, self.search.layer
        dataset["search_position"] = self.search.position
        return dataset

    def _samples(self, model: Transformer, pairs: CounterfactualPairs) -> Samples:
        return sample_stream(model, pairs, of=self.search.of, layer=self.search.layer, position=self.search.position)

    def _find(self, samples: Samples) -> Subspace:
        return fit_subspace(samples, self.search.of, self.search.size).subspace

    def _scores(self, groups: Groups, fit: Samples, test: Samples) -> np.ndarray:
        """Fractions of test samples whose label is read off, [value, low, high] over (kind,)."""
        return self._fractions(groups, lambda one: score_subspace(one, fit, test, self.search.of))

    def _swaps(self, groups: Groups, model: Transformer) -> np.ndarray:
        """Fractions of test pairs whose answer becomes the counterfactual's, [value, low, high] over (kind,)."""
        source = read_stream(model, self.test.counterfactual_tokens, self.search.layer, self.columns)
        kept = keep_base(model, self.test, self.search.layer)

        def swap(one: Subspace) -> np.ndarray:
            logits = run_changed(model, self.test, self.search.layer, self.columns, source, one.swap, kept)
            return np.asarray(logits.argmax(-1).numpy() == self.test.counterfactual_answers)

        return self._fractions(groups, swap)

    def _fractions(self, groups: Groups, measure: Callable[[Subspace], np.ndarray]) -> np.ndarray:
        means = [np.stack([measure(one) for one in group]).mean(0) for group in groups]  # each [item]
        return np.array([fraction_with_interval(values, self.rng) for values in means]).T

    def _labels(self) -> dict[str, np.ndarray]:
        """What each point stands for: value, name, depth of its program, its column, and its program."""
        known = self.columns >= 0
        pair, _ = np.nonzero(known)
        labels = {
            "value": label_columns(self.test.base, self.columns, "values")[known],
            "name": label_columns(self.test.base, self.columns, "names")[known],
            "depth": self.test.labels["depth"][pair, 0],
            "position": self.columns[known],
            "pair": pair,
        }
        return {name: values[:N_POINTS].astype(np.int16) for name, values in labels.items()}


def _padded(basis: np.ndarray) -> np.ndarray:
    """A basis [rank, d_model] with rows of NaN up to the larger of the two ranks, so that both fit one array."""
    rows = np.full((max(RANKS.values()), basis.shape[1]), np.nan, np.float32)
    rows[: len(basis)] = basis
    return rows
