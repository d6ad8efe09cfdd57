"""Operators as addition on a circle: in which order the numbers stand so that the answer's index is the sum of the operands' indices.

Fourier analysis speaks of sums modulo m. A difference is the sum with −n2; a product modulo a prime is the sum of
discrete logarithms, where zero has no index. Whatever is measured of sums is then measured of all three.

>>> numbers = CyclicNumbers.of(AssignAddTask(modulus=5, operator="-"))
>>> numbers.second   # −0, −1, −2, −3, −4
array([0, 4, 3, 2, 1])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.tasks.assign_add import AssignAddTask


@dataclass(frozen=True, eq=False)
class CyclicNumbers:
    """The number at each index of the circle, for either operand and for the answer: indices add modulo their number."""

    first: np.ndarray  # [index] int64
    second: np.ndarray
    answer: np.ndarray
    ordered_by: str  # in words

    @classmethod
    def of(cls, task: AssignAddTask) -> CyclicNumbers:
        """The circle of a task's operator; refuses one that is none."""
        numbers = np.arange(task.modulus)
        if task.operator == "+":
            return cls(numbers, numbers, numbers, "value")
        if task.operator == "-":
            return cls(numbers, -numbers % task.modulus, numbers, "value")
        if task.operator == "*":
            root = primitive_root(task.modulus)
            powers = np.array([pow(root, index, task.modulus) for index in range(task.modulus - 1)])
            return cls(powers, powers, powers, f"powers of {root}, without 0")
        raise BindscopeError(
            f"elements of a {task.operator} group are no circle, so they have no frequencies; use a run of +, - or *."
        )

    @property
    def modulus(self) -> int:
        """How many indices there are."""
        return len(self.first)

    @property
    def frequencies(self) -> np.ndarray:
        """All k whose Fourier components have a cosine and a sine: 1 … ⌊(m − 1) / 2⌋."""
        return np.arange(1, (self.modulus - 1) // 2 + 1)

    @property
    def sums(self) -> np.ndarray:
        """[position of n1, position of n2]: the position of the answer."""
        indices = np.arange(self.modulus)
        return (indices[:, None] + indices) % self.modulus

    def arrange(self, over_numbers: np.ndarray) -> np.ndarray:
        """What is given over [n1, n2, …] by value, over positions."""
        return over_numbers[self.first[:, None], self.second]

    def permute(self, rng: np.random.Generator) -> CyclicNumbers:
        """The same numbers in a random order for both operands: a circle that means nothing, for controls."""
        order = rng.permutation(self.modulus)
        return CyclicNumbers(self.first[order], self.second[order], self.answer[order], "chance")


def primitive_root(modulus: int) -> int:
    """The smallest number whose powers are all of 1 … modulus − 1; only a prime has one here."""
    is_prime = modulus > 1 and all(modulus % divisor for divisor in range(2, int(modulus**0.5) + 1))
    if not is_prime:
        raise BindscopeError(
            f"products modulo {modulus} are no circle: only a prime modulus has discrete logarithms; use a prime one."
        )
    for root in range(1, modulus):
        if len({pow(root, index, modulus) for index in range(modulus - 1)}) == modulus - 1:
            return root
    raise AssertionError("every prime has a primitive root")
