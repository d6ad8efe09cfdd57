"""What patching compares: rows that are run, and rows whose activations are put into them.

    base     a=5  b=a  #b:  → 5      run this,
    source   a=8  b=a  #b:  → 8      put activations of this into it, and see whether the answer becomes 8

Running the ordinary program and taking from the counterfactual is called *noising*: success means that what was put in
is enough to change the answer. The other way round is *denoising*: success means it is enough to restore it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError

Direction = Literal["noising", "denoising"]


class Pairs(Protocol):
    """Pairs of token rows with their answers, as ``CounterfactualPairs`` has them."""

    @property
    def base_tokens(self) -> np.ndarray: ...
    @property
    def counterfactual_tokens(self) -> np.ndarray: ...
    @property
    def base_answers(self) -> np.ndarray: ...
    @property
    def counterfactual_answers(self) -> np.ndarray: ...
    @property
    def colon_position(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Contrast:
    """Pairs of rows as a model meets them; answers are output ids, read at column ``at``."""

    base: Tensor  # [pair, position]: the rows that are run
    source: Tensor  # [pair, position]: the rows that activations are taken from
    base_answers: Tensor  # [pair]
    source_answers: Tensor  # [pair]
    at: int

    def __post_init__(self) -> None:
        if self.base.shape != self.source.shape:
            raise BindscopeError(
                f"contrast: base rows have {self.base.shape[1]} tokens and source rows {self.source.shape[1]}; "
                "patching needs programs of equal length."
            )
        same = (self.base == self.source).all(1)
        if bool(same.any()):
            raise BindscopeError(
                f"contrast: pair {int(same.int().argmax())} has the same program twice; change something in one of them."
            )

    def __len__(self) -> int:
        return len(self.base)

    def take(self, rows: slice | Tensor) -> Contrast:
        """Only these pairs."""
        return Contrast(self.base[rows], self.source[rows], self.base_answers[rows], self.source_answers[rows], self.at)

    @property
    def first_difference(self) -> Tensor:
        """The first column [pair] at which base and source have different tokens."""
        return (self.base != self.source).int().argmax(1)


def contrast_pairs(pairs: Pairs, direction: Direction = "noising") -> Contrast:
    """The contrast of counterfactual pairs in one direction.

    >>> contrast = contrast_pairs(sample_root_pairs(task, rng, 100))
    """
    programs = (pairs.base_tokens, pairs.counterfactual_tokens)
    answers = (pairs.base_answers, pairs.counterfactual_answers)
    if direction == "denoising":
        programs, answers = programs[::-1], answers[::-1]
    base, source = (torch.from_numpy(np.ascontiguousarray(tokens)) for tokens in programs)
    old, new = (torch.from_numpy(np.ascontiguousarray(values)) for values in answers)
    return Contrast(base, source, old, new, pairs.colon_position)
