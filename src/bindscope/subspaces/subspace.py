"""A subspace of the residual stream: a few directions out of d_model, and what it means to swap only them.

>>> subspace = Subspace(torch.eye(64)[:10], of="values", origin="by hand")
>>> changed = subspace.swap(base, source)  # base, except for its part along the ten directions, which is source's
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError

ORTHONORMAL = 1e-4  # how far products of basis vectors may be from 0 and 1


@dataclass(frozen=True, eq=False)
class Subspace:
    """Orthonormal directions of the residual stream. ``of`` says what was looked for there, ``origin`` how it was found."""

    basis: Tensor  # [rank, d_model]
    of: str = "anything"
    origin: str = "given"

    def __post_init__(self) -> None:
        if self.basis.ndim != 2:
            raise BindscopeError(f"subspace: a basis [rank, d_model] is needed, got shape {list(self.basis.shape)}.")
        check_rank(self.rank, self.d_model)
        gap = (self.basis @ self.basis.T - torch.eye(self.rank, dtype=self.basis.dtype)).abs().max()
        if not float(gap) < ORTHONORMAL:
            raise BindscopeError(
                "subspace: the basis is not orthonormal; build it with Subspace.spanned_by(vectors) instead."
            )

    @classmethod
    def spanned_by(cls, vectors: Tensor, of: str = "anything", origin: str = "given") -> Subspace:
        """The subspace that independent vectors [rank, d_model] span."""
        check_rank(len(vectors), vectors.shape[1])
        basis, triangle = torch.linalg.qr(vectors.detach().double().T)
        sizes = triangle.diagonal().abs()
        if float(sizes.min()) < 1e-9 * float(sizes.max()):
            raise BindscopeError(f"subspace: the {len(vectors)} vectors are not independent; leave some out.")
        return cls(basis.T.float().contiguous(), of, origin)

    @property
    def rank(self) -> int:
        return self.basis.shape[0]

    @property
    def d_model(self) -> int:
        return self.basis.shape[1]

    def coordinates(self, x: Tensor) -> Tensor:
        """[..., rank]: how far ``x`` reaches along each direction."""
        return x @ self.basis.to(x.device, x.dtype).T

    def project(self, x: Tensor) -> Tensor:
        """The part of ``x`` [..., d_model] inside the subspace."""
        return self.coordinates(x) @ self.basis.to(x.device, x.dtype)

    def swap(self, base: Tensor, source: Tensor) -> Tensor:
        """``base`` with its part inside the subspace replaced by ``source``'s."""
        return base + self.project(source - base)

    def swap_rest(self, base: Tensor, source: Tensor) -> Tensor:
        """``base`` with everything *but* its part inside the subspace replaced by ``source``'s."""
        return source + self.project(base - source)

    def describe(self) -> str:
        """One line: ``10 of 64 dimensions for values (PCA + L1)``."""
        return f"{self.rank} of {self.d_model} dimensions for {self.of} ({self.origin})"

    __str__ = describe

    def to_dataset(self) -> xr.Dataset:
        """As a labelled array over (component, d_model), to be saved in a run's results."""
        attrs = {"of": self.of, "origin": self.origin}
        return xr.Dataset({"basis": (("component", "d_model"), self.basis.numpy())}, attrs=attrs)

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset) -> Subspace:
        """The inverse of ``to_dataset``."""
        basis = torch.from_numpy(np.array(dataset["basis"].values, np.float32))
        return cls(basis, str(dataset.attrs.get("of", "anything")), str(dataset.attrs.get("origin", "given")))


def random_subspace(d_model: int, rank: int, generator: torch.Generator) -> Subspace:
    """A subspace with no preferred direction, the control beside every one that was found.

    >>> random_subspace(64, 10, torch.Generator().manual_seed(0)).rank
    10
    """
    check_rank(rank, d_model)
    return Subspace.spanned_by(torch.randn(rank, d_model, generator=generator), "nothing", "random")


def principal_angles(first: Subspace, second: Subspace) -> Tensor:
    """Angles in radians between two subspaces, smallest first: all 0 when one lies in the other.

    Their cosines are the singular values of B₁B₂ᵀ; small angles are taken from the sines, which keep their digits.
    """
    small, large = (first, second) if first.rank <= second.rank else (second, first)
    product = small.basis.double() @ large.basis.double().T
    cosines = torch.linalg.svdvals(product).clamp(max=1.0)  # from the largest on
    outside = small.basis.double() - product @ large.basis.double()  # what of each direction the other lacks
    sines = torch.linalg.svdvals(outside).clamp(max=1.0).flip(0)  # from the smallest on
    return torch.where(cosines > 0.7, sines.asin(), cosines.acos())


def check_rank(rank: int, d_model: int) -> None:
    """Refuse a rank that a stream of this width cannot hold."""
    if not 1 <= rank <= d_model:
        raise BindscopeError(
            f"rank {rank}: the residual stream is {d_model} wide, so give a rank between 1 and {d_model}."
        )
