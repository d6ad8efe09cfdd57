"""The disentangled model of Theorem C.1: one attention head over orthonormal embeddings, and an MLP that adds.

A sequence is a sum of the study (``_ c=1 b=17 | b+19``) after a first layer that has done its work. With orthonormal e
for tokens and p for positions, and Φ, which copies a token into a subspace of its own,

    every token             e_token + p_t
    a value                 … + Φ of the variable before it
    '=', which asks         … + Φ of both operands

'=' attends with α = softmax(x_tᵀ W x_T), and h = Σ_t α_t (the number at t, if there is one) is all that the MLP sees:

    MLP_k(h) = (1/p) Σ_ω e^{2πiωk/p} (Σ_n e^{−2πiωn/p} h_n)² = Σ_{a+b=k} h_a h_b

so numbers that get the weights u and w raise their sum's logit by 2uw, and their doubles' by u² and w²: the sum is on
top while neither weight is more than twice the other.

>>> model = DisentangledModel(modulus=59, n_variables=12)
>>> tokens = task.parse("c=1 b=17 | b+19")[None]
>>> model.outputs(model.scores(model.start(beta=3.0), model.embed(tokens)), tokens).argmax()
38
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add.sequence import (
    ANSWER_POSITION,
    N_POSITIONS,
    N_PREFIX,
    OPERAND_POSITIONS,
    OPERATOR_POSITION,
    SequenceFormat,
)

LITERAL_POSITION = OPERAND_POSITIONS[1]  # where the theorem's sequences have their number; the variable stands before
FOCI = {"literal": LITERAL_POSITION, "operator": OPERATOR_POSITION}  # where attention may start out


@dataclass(frozen=True)
class DisentangledModel:
    """Its coordinates, its attention and its MLP. Keys and queries live in [token | position | Φ token]."""

    modulus: int
    n_variables: int

    def __post_init__(self) -> None:
        if self.modulus < 2:
            raise BindscopeError(f"modulus: must be at least 2, got {self.modulus}.")
        if self.n_variables < 1:
            raise BindscopeError(f"variables: must be at least 1, got {self.n_variables}.")

    @cached_property
    def n_tokens(self) -> int:
        """Numbers, then '+', '=' and PAD, then variables, as in the task's vocabulary."""
        return self.modulus + 3 + self.n_variables

    @property
    def width(self) -> int:
        return 2 * self.n_tokens + N_POSITIONS

    @property
    def operator(self) -> int:
        return self.modulus

    @property
    def equals(self) -> int:
        return self.modulus + 1

    @property
    def pad(self) -> int:
        return self.modulus + 2

    @property
    def numbers(self) -> slice:
        return slice(0, self.modulus)

    @property
    def variables(self) -> slice:
        return slice(self.modulus + 3, self.n_tokens)

    @property
    def positions(self) -> slice:
        return slice(self.n_tokens, self.n_tokens + N_POSITIONS)

    @property
    def bound_numbers(self) -> slice:
        """Φe_n."""
        first = self.n_tokens + N_POSITIONS
        return slice(first, first + self.modulus)

    @property
    def bound_variables(self) -> slice:
        """Φv_j."""
        return slice(self.width - self.n_variables, self.width)

    @cached_property
    def groups(self) -> dict[str, np.ndarray]:
        """The coordinates of each kind of embedding, by name."""
        indices = np.arange(self.width)
        return {
            "number": indices[self.numbers],
            "variable": indices[self.variables],
            "+": indices[[self.operator]],
            "=": indices[[self.equals]],
            "PAD": indices[[self.pad]],
            "position": indices[self.positions],
            "Φ number": indices[self.bound_numbers],
            "Φ variable": indices[self.bound_variables],
        }

    def position(self, position: int) -> int:
        """The coordinate of p_t."""
        return self.n_tokens + position

    def start(self, beta: float, focus: str = "literal") -> np.ndarray:
        """W₀ = β p_focus e_=ᵀ, [key, query]."""
        weights = np.zeros((self.width, self.width))
        weights[self.position(FOCI[focus]), self.equals] = beta
        return weights

    def embed(self, tokens: np.ndarray) -> np.ndarray:
        """tokens [row, 16] to x [row, position, width]."""
        rows, copied = np.arange(len(tokens)), self.n_tokens + N_POSITIONS
        embedded = np.zeros((len(tokens), N_POSITIONS, self.width))
        for index in range(N_POSITIONS):
            embedded[rows, index, tokens[:, index]] = 1
            embedded[:, index, self.position(index)] = 1
        for index in range(1, N_PREFIX):
            values = np.flatnonzero(tokens[:, index] < self.modulus)
            embedded[values, index, copied + tokens[values, index - 1]] = 1
        for operand in OPERAND_POSITIONS:
            embedded[rows, ANSWER_POSITION, copied + tokens[:, operand]] += 1
        return embedded

    def scores(self, weights: np.ndarray, embedded: np.ndarray) -> np.ndarray:
        """x_tᵀ W x_T: x [row, position, width] to [row, position]."""
        asked = embedded[:, ANSWER_POSITION] @ weights.T  # [row, key]
        return np.einsum("rtk,rk->rt", embedded, asked)

    def outputs(self, scores: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The MLP's outputs [row, number] where '=' attends with these scores [row, position]."""
        attention = np.exp(scores - scores.max(1, keepdims=True))
        attention /= attention.sum(1, keepdims=True)
        numbers = np.zeros((len(tokens), self.modulus))  # h
        rows, indices = np.nonzero(tokens < self.modulus)
        np.add.at(numbers, (rows, tokens[rows, indices]), attention[rows, indices])
        return add_by_fourier(numbers)

    @property
    def sequences(self) -> SequenceFormat:
        return SequenceFormat(self.modulus, self.n_variables)


def add_by_fourier(numbers: np.ndarray) -> np.ndarray:
    """The analytic MLP: h [..., p] to its circular convolution with itself, one complex neuron for each frequency.

    >>> add_by_fourier(np.array([0.0, 1.0, 0.0, 0.0, 1.0])).round(6)  # 1 + 4 = 0, 1 + 1 = 2, 4 + 4 = 3 modulo 5
    array([2., 0., 1., 1., 0.])
    """
    modulus = numbers.shape[-1]
    indices = np.arange(modulus)
    components = np.exp(-2j * np.pi * np.outer(indices, indices) / modulus)  # [frequency, number]
    neurons = (numbers @ components.T) ** 2  # [..., frequency]
    return (neurons @ components.conj()).real / modulus
