"""Principal components, and a softmax classifier of few weights by an L1 penalty.

The classifier minimises, over W [feature, class] and b [class],

    mean cross-entropy of softmax(x W + b)  +  l1 · Σ |W|

by accelerated proximal gradient (FISTA, Beck and Teboulle 2009): a gradient step, then every weight is drawn towards 0
by step · l1 and those that reach it stay there. The larger ``l1``, the fewer features have any weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

MOST_ITERATIONS = 300
ON_THE_PATH = 60  # iterations with each penalty while features are being chosen
SETTLED = 1e-5  # no weight moved further than this fraction of the largest
WEAKEN = 0.7  # each penalty on the path is this fraction of the one before
LONGEST_PATH = 25


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of vectors: the mean, orthonormal directions by falling variance, and their variances."""

    mean: Tensor  # [d_model]
    directions: Tensor  # [component, d_model]
    variance: Tensor  # [component]

    def coordinates(self, vectors: Tensor) -> Tensor:
        """[..., component], in units of the first component's standard deviation."""
        return (vectors - self.mean) @ self.directions.T / self.variance[0].sqrt().clamp_min(1e-12)


def fit_components(vectors: Tensor) -> Components:
    """All principal components of ``vectors`` [sample, d_model]."""
    mean = vectors.mean(0)
    centred = (vectors - mean).double()
    variance, directions = torch.linalg.eigh(centred.T @ centred / len(vectors))  # rising
    return Components(
        mean, directions.T.flip(0).to(mean.dtype).contiguous(), variance.flip(0).clamp_min(0).to(mean.dtype)
    )


@dataclass(frozen=True, eq=False)
class Classifier:
    """A linear softmax classifier."""

    weight: Tensor  # [feature, class]
    bias: Tensor  # [class]

    def predict(self, x: Tensor) -> Tensor:
        """The likeliest class [...] of features [..., feature]."""
        return (x @ self.weight + self.bias).argmax(-1)

    def accuracy(self, x: Tensor, labels: Tensor) -> float:
        """The fraction of samples it puts in their own class."""
        return float((self.predict(x) == labels).float().mean())


def fit_classifier(
    x: Tensor,
    labels: Tensor,
    n_classes: int,
    l1: float,
    start: Classifier | None = None,
    most_iterations: int = MOST_ITERATIONS,
) -> Classifier:
    """The classifier of ``x`` [sample, feature] with this penalty; ``start`` is where the search begins.

    >>> fit_classifier(x, labels, n_classes=10, l1=0.01).accuracy(x_test, labels_test)
    """
    target = F.one_hot(labels, n_classes).to(x.dtype)  # [sample, class]
    x = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)  # the last feature's weights are the bias
    weight = x.new_zeros(x.shape[1], n_classes)
    if start is not None:
        weight = torch.cat([start.weight, start.bias[None]])
    gram = (x.T @ x / len(x)).double()  # in single precision its eigenvalues may not be found where many are 0
    step = 2.0 / float(torch.linalg.eigvalsh(gram)[-1])  # the gradient's steepness is at most half of this
    ahead, pace = weight, 1.0
    for _ in range(most_iterations):
        moved = ahead - step * (x.T @ ((x @ ahead).softmax(1) - target)) / len(x)
        moved[:-1] = F.softshrink(moved[:-1], step * l1)
        next_pace = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        change = moved - weight
        if float((change * (ahead - moved)).sum()) > 0:  # overshooting: forget the momentum
            next_pace, pace = 1.0, 1.0
        ahead, weight, pace = moved + (pace - 1) / next_pace * change, moved, next_pace
        if float(change.abs().max()) < SETTLED * float(weight.abs().max().clamp_min(1e-6)):
            break
    return Classifier(weight[:-1], weight[-1])


def choose_features(x: Tensor, labels: Tensor, n_classes: int, n_features: int) -> Tensor:
    """The ``n_features`` columns of ``x`` [sample, feature] that a sparse classifier needs most, largest weight first.

    The penalty starts where no feature has any weight and weakens until enough have some; features are ranked by the
    sum of their absolute weights, and what is still missing then is filled up in the order of the columns.
    """
    priors = F.one_hot(labels, n_classes).to(x.dtype).mean(0)
    slope = x.T @ (priors - F.one_hot(labels, n_classes).to(x.dtype)) / len(x)
    l1 = float(slope.abs().max())  # from here down, some feature has weight
    classifier, used = None, torch.zeros(x.shape[1])
    for _ in range(LONGEST_PATH):
        l1 *= WEAKEN
        classifier = fit_classifier(x, labels, n_classes, l1, classifier, ON_THE_PATH)
        used = classifier.weight.abs().sum(1)  # [feature]
        if int((used > 0).sum()) >= n_features:
            break
    return used.argsort(descending=True, stable=True)[:n_features]
