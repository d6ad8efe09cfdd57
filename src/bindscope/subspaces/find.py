"""Find the subspace of values or of names: principal components, of which a sparse classifier chooses some.

Activations of the residual stream at one layer and position are labelled with the digit, or the letter, that the position stands for.
Their principal components are the candidates; an L1-penalised linear classifier of the labels decides which are selected:
10 for values and 26 for names unless told otherwise. The paper names these ingredients and these two numbers; how it
selected exactly is not public, so the rule here (``choose_features``) is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.transformer import Transformer
from bindscope.subspaces.positions import N_CLASSES, Quality, find_columns, label_columns
from bindscope.subspaces.sparse import Classifier, Components, choose_features, fit_classifier, fit_components
from bindscope.subspaces.stream import read_stream
from bindscope.subspaces.subspace import Subspace, check_rank
from bindscope.tasks.binding import CounterfactualPairs

RANKS: dict[Quality, int] = {"values": 10, "names": 26}  # the paper's
LIGHT = 1e-4  # the penalty of the classifier that scores the chosen components


@dataclass(frozen=True, eq=False)
class Samples:
    """Vectors of the residual stream with their labels."""

    vectors: Tensor  # [sample, d_model]
    labels: Tensor  # [sample]

    def __len__(self) -> int:
        return len(self.vectors)

    def shuffle_labels(self, generator: torch.Generator) -> Samples:
        """The same vectors, each with the label of another."""
        return Samples(self.vectors, self.labels[torch.randperm(len(self), generator=generator)])


@dataclass(frozen=True, eq=False)
class FoundSubspace:
    """A subspace, the components that span it, and the classifier that reads the labels off them."""

    subspace: Subspace
    components: Components
    chosen: tuple[int, ...]  # which components, by falling weight; 0 has the largest variance
    classifier: Classifier
    n_fit: int

    def score(self, samples: Samples) -> float:
        """The fraction of samples whose label the classifier reads off the subspace."""
        return self.classifier.accuracy(self._features(samples), samples.labels)

    def _features(self, samples: Samples) -> Tensor:
        return self.components.coordinates(samples.vectors)[:, list(self.chosen)]

    @property
    def variance_fraction(self) -> float:
        """How much of the activations' variance lies inside."""
        variance = self.components.variance
        return float(variance[list(self.chosen)].sum() / variance.sum())


def find_subspace(
    model: Transformer,
    pairs: CounterfactualPairs,
    *,
    of: Quality = "values",
    layer: int,
    position: str,
    rank: int | None = None,
) -> FoundSubspace:
    """The subspace of ``of`` in the base programs' stream, to be tested on other pairs.

    >>> found = find_subspace(model, pairs, of="values", layer=4, position="chain")
    >>> found.score(sample_stream(model, other_pairs, of="values", layer=4, position="chain"))
    """
    check_rank(RANKS[of] if rank is None else rank, model.config.d_model)
    return fit_subspace(sample_stream(model, pairs, of=of, layer=layer, position=position), of, rank)


def sample_stream(model: Transformer, pairs: CounterfactualPairs, *, of: Quality, layer: int, position: str) -> Samples:
    """The base programs' stream at one layer and position, labelled; each column of each program is a sample."""
    columns = find_columns(pairs, position)
    labels = label_columns(pairs.base, columns, of)
    return label_stream(read_stream(model, pairs.base_tokens, layer, columns), labels, position)


def label_stream(stream: Tensor, labels: np.ndarray, position: str) -> Samples:
    """The samples of a stream [program, column, d_model] whose labels [program, column] are not −1."""
    known = torch.from_numpy(labels >= 0)
    if not bool(known.any()):
        raise BindscopeError(f"position '{position}': none of the {len(labels)} programs has it; ask for deeper ones.")
    return Samples(stream[known].float(), torch.from_numpy(labels.astype(np.int64))[known])


def fit_subspace(samples: Samples, of: Quality, rank: int | None = None) -> FoundSubspace:
    """The subspace that tells the labels of these samples apart."""
    rank = RANKS[of] if rank is None else rank
    check_rank(rank, samples.vectors.shape[1])
    components = fit_components(samples.vectors)
    features = components.coordinates(samples.vectors)  # [sample, component]
    chosen = choose_features(features, samples.labels, N_CLASSES[of], rank)
    classifier = fit_classifier(features[:, chosen], samples.labels, N_CLASSES[of], LIGHT)
    subspace = Subspace(components.directions[chosen], of, "PCA + L1 classifier")
    return FoundSubspace(subspace, components, tuple(chosen.tolist()), classifier, len(samples))
