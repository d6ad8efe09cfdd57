"""What the operator of a sum does with two numbers: arithmetic modulo the modulus, or composition in a group.

A group has ``modulus`` elements, numbered from 0, the identity. Each element rearranges a few letters, and ``a @ b``
means b first, then a:

    symmetric   all rearrangements of 3, 4 or 5 letters (6, 24 or 120 elements), in dictionary order of what they
                make of 0 1 2 …: of three letters, 0 is 012, 1 is 021, 2 is 102, 3 is 120, 4 is 201, 5 is 210
    dihedral    the symmetries of a polygon with modulus/2 corners: number k < modulus/2 turns corner x to x + k,
                number modulus/2 + k mirrors it to k − x

In both, order matters: with ``symmetric`` and six elements 1@2 = 4 and 2@1 = 3.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import factorial
from typing import Literal

import numpy as np

from bindscope.errors import BindscopeError

Operator = Literal["+", "-", "*", "symmetric", "dihedral"]
GROUPS = ("symmetric", "dihedral")
GROUP_SYMBOL = "@"
SYMMETRIC_SIZES = {factorial(letters): letters for letters in (3, 4, 5)}  # elements → letters


def combine(operator: Operator, modulus: int, n1: np.ndarray, n2: np.ndarray) -> np.ndarray:
    """The answers to ``n1 operator n2``.

    >>> combine("symmetric", 6, np.array([1, 2]), np.array([2, 1]))
    array([4, 3])
    """
    if operator in GROUPS:
        return multiplication_table(operator, modulus)[n1, n2]
    operations = {"+": np.add, "-": np.subtract, "*": np.multiply}
    return operations[operator](n1, n2) % modulus


def commutes(operator: Operator) -> bool:
    """Whether two operands can be swapped without changing the answer, whatever they are."""
    return operator in ("+", "*")


def symbol_of(operator: Operator) -> str:
    """How the operator is written in a sum: the arithmetic ones as themselves, composition as ``@``."""
    return GROUP_SYMBOL if operator in GROUPS else operator


def refuse_modulus(operator: Operator, modulus: int) -> None:
    """A group exists for some numbers of elements only; say for which."""
    if operator == "symmetric" and modulus not in SYMMETRIC_SIZES:
        raise BindscopeError(
            f"task.modulus: task.operator 'symmetric' has 6, 24 or 120 elements (3, 4 or 5 letters), got {modulus}."
        )
    if operator == "dihedral" and (modulus < 6 or modulus % 2):
        raise BindscopeError(f"task.modulus: task.operator 'dihedral' needs an even number from 6 on, got {modulus}.")


@cache
def multiplication_table(operator: Operator, modulus: int) -> np.ndarray:
    """What a @ b is, for all elements of a group: [a, b] int64."""
    elements = list_elements(operator, modulus)  # [element, letter]
    numbers = {element.tobytes(): number for number, element in enumerate(elements)}
    # (a @ b)(x) = a(b(x)): row a of elements, read at what b makes of every letter
    products = ((numbers[product.tobytes()] for product in element[elements]) for element in elements)
    table = np.array([list(row) for row in products], dtype=np.int64)
    table.flags.writeable = False
    return table


def list_elements(operator: Operator, modulus: int) -> np.ndarray:
    """What each element of a group makes of every letter: [element, letter] int64."""
    refuse_modulus(operator, modulus)
    if operator == "symmetric":
        return np.array(list(permutations(range(SYMMETRIC_SIZES[modulus]))))
    corners = np.arange(modulus // 2)
    return np.concatenate([corners[:, None] + corners, corners[:, None] - corners]) % len(corners)
