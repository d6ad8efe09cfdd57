"""Two or three axes to look at a subspace along, and turning them so that points lie as they did elsewhere.

Principal components of the same points found twice differ by signs, and where two variances are alike by a rotation. For
coordinates X and Y [point, axis] the orthogonal R that brings X nearest to Y in the sum of squares is U Vᵀ with
U S Vᵀ the singular value decomposition of Xᵀ Y (Schönemann 1966).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.subspaces.sparse import fit_components
from bindscope.subspaces.subspace import Subspace, check_rank


@dataclass(frozen=True, eq=False)
class Axes:
    """Orthonormal directions of the residual stream and where they cross."""

    mean: Tensor  # [d_model]
    directions: Tensor  # [axis, d_model]

    def coordinates(self, points: Tensor) -> Tensor:
        """[..., axis] of points [..., d_model]."""
        return (points - self.mean) @ self.directions.to(points.dtype).T

    def turn(self, rotation: Tensor) -> Axes:
        """The axes along which coordinates are those of before times ``rotation`` [axis, axis]."""
        return Axes(self.mean, rotation.T @ self.directions)

    def variance_fractions(self, points: Tensor) -> Tensor:
        """[axis]: the part of the variance of points [point, d_model] that lies along each axis."""
        centred = points - points.mean(0)
        return (centred @ self.directions.to(points.dtype).T).square().sum(0) / centred.square().sum().clamp_min(1e-12)


def fit_axes(points: Tensor, inside: Subspace, n_axes: int) -> Axes:
    """The first principal components of the part of ``points`` [point, d_model] that lies inside a subspace.

    >>> axes = fit_axes(samples.vectors, found.subspace, 3)
    >>> axes.coordinates(samples.vectors).shape
    torch.Size([240, 3])
    """
    check_rank(n_axes, inside.rank)
    components = fit_components(inside.project(points))
    return Axes(components.mean, components.directions[:n_axes])


def align_axes(axes: Axes, points: Tensor, onto: Tensor) -> Axes:
    """The axes turned so that ``points`` [point, d_model] lie as near as they can to coordinates ``onto`` [point, axis]."""
    seen = axes.coordinates(points).double()
    left, _, right = torch.linalg.svd((seen - seen.mean(0)).T @ (onto - onto.mean(0)).double())
    return axes.turn((left @ right).to(axes.directions.dtype))
