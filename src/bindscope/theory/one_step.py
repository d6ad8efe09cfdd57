"""One gradient step that lets a sum use its variables (Theorem 7.1 and C.1 of arXiv 2605.31497), exactly.

The model is that of ``one_step_model``. '=' starts out attending to the literal operand, W₀ = β p_rhs e_=ᵀ, and W takes
one step down the mean cross-entropy of f = λ·MLP over *all* sums ``v_j = n₁ | v_j + n₂``: every pair (n₁, n₂), every
variable and all eleven positions of the assignment. With α the attention on the literal and ε on every other token, the
theorem says that for small λ the negative gradient is, up to a relative error that vanishes with ε and 1/p,

    associative   (2αελ/K)·Σ_j Φv_j (Φv_j)ᵀ     look where the variable that is asked for was bound
    spurious      (2αελ/K)·Σ_j Φv_j e_=ᵀ        look at whatever was bound
    slot          2αελ(1 − 2α)·p_rhs e_=ᵀ       look less at the literal, once α > 1/2

Here it is enumerated. Attention does not depend on the sequence and h = αe_{n₂} + εe_{n₁}, so only the logits of 2n₂,
n₁+n₂ and 2n₁ differ from 0, and with r = [k = n₁+n₂] − softmax(λ MLP)_k the numbers get

    g₁ = 2λ(α r_{n₁+n₂} + ε r_{2n₁})      g₂ = 2λ(ε r_{n₁+n₂} + α r_{2n₂})      ḡ = εg₁ + αg₂

and −∇W = E[Σ_t α_t (g_t − ḡ) x_t x_Tᵀ], g_t being 0 where no number stands. As λ → 0 this gives the corrections too:
associative and spurious are (1 − 1/p)(1 − 4ε) of what is predicted ('=' attends to itself, and carries Φv_j), slot is
1 − 1/p of it.

>>> step = measure_step(Setting(modulus=31, n_variables=12, beta=3.0))
>>> step.per_scale["associative"], step.predicted_per_scale["associative"]
(0.00233…, 0.00271…)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add.sequence import (
    ANSWER_POSITION,
    N_POSITIONS,
    N_PREFIX,
    OPERAND_POSITIONS,
    OPERATOR_POSITION,
)
from bindscope.theory.one_step_model import FOCI, LITERAL_POSITION, DisentangledModel

Focus = Literal["literal", "operator"]
TERMS = ("associative", "spurious", "slot")
MOST_BETA = 30.0  # beyond, nothing but the focus is attended to in double precision
MOST_MODULUS = 500  # the gradient is enumerated whole, with four times as many entries as there are pairs
SMALL_SCALE = 1e-3  # a λ at which the softmax over answers is flat to three digits


@dataclass(frozen=True)
class Setting:
    """Where the step is taken: p, K, how sharply '=' attends (β), where to, and how large the logits are (λ)."""

    modulus: int = 59
    n_variables: int = 12
    beta: float = 3.0
    scale: float = SMALL_SCALE
    focus: Focus = "literal"  # "operator" is a control: attention starts on a token without a number

    def __post_init__(self) -> None:
        if not -MOST_BETA <= self.beta <= MOST_BETA:
            raise BindscopeError(f"beta: must lie between {-MOST_BETA:g} and {MOST_BETA:g}, got {self.beta}.")
        if not 0 < self.scale < np.inf:
            raise BindscopeError(f"scale: must be a positive number, got {self.scale}.")
        if self.focus not in FOCI:
            raise BindscopeError(f"focus: '{self.focus}' is unknown; use {' or '.join(FOCI)}.")
        if self.modulus > MOST_MODULUS:
            raise BindscopeError(
                f"modulus: must be at most {MOST_MODULUS} to enumerate the gradient, got {self.modulus}."
            )
        _ = self.model

    @cached_property
    def model(self) -> DisentangledModel:
        return DisentangledModel(self.modulus, self.n_variables)

    @property
    def start(self) -> np.ndarray:
        """W₀."""
        return self.model.start(self.beta, self.focus)

    @property
    def attention(self) -> np.ndarray:
        """What each position gets at W₀, [position]; the same in every sequence."""
        scores = np.zeros(N_POSITIONS)
        scores[FOCI[self.focus]] = self.beta
        weights = np.exp(scores - scores.max())
        return weights / weights.sum()

    @property
    def alpha(self) -> float:
        """The attention that starts on the focus."""
        return float(self.attention[FOCI[self.focus]])

    @property
    def epsilon(self) -> float:
        """… and on any other token."""
        return float(self.attention[ANSWER_POSITION])


@dataclass(frozen=True, eq=False)
class Population:
    """How likely each sequence is: pairs by weight, and who is asked for given who was assigned.

    >>> Population.of(setting, trained=task.pairs.is_trained)  # the pairs of training only
    """

    pairs: np.ndarray  # [n1, n2], sums to 1
    binding: np.ndarray  # [assigned, asked], sums to 1; the theorem's is the identity / K

    @classmethod
    def of(cls, setting: Setting, trained: np.ndarray | None = None, shuffled: bool = False) -> Population:
        """All pairs, or those ``trained``; ``shuffled`` asks for a variable regardless of the one assigned."""
        size, n_variables = setting.modulus, setting.n_variables
        pairs = np.ones((size, size)) if trained is None else np.asarray(trained, float)
        if pairs.shape != (size, size) or pairs.sum() <= 0:
            raise BindscopeError(f"pairs: need a table of {size} by {size} with a pair in it, got {pairs.shape}.")
        binding = np.ones((n_variables, n_variables)) if shuffled else np.eye(n_variables)
        return cls(pairs / pairs.sum(), binding / binding.sum())


@dataclass(frozen=True, eq=False)
class Step:
    """The negative population gradient at W₀, and the theorem's terms in it."""

    setting: Setting
    gradient: np.ndarray = field(repr=False)  # −∇W, [key, query]

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """How much of each term's direction is in the gradient, by projection; the directions are orthogonal."""
        directions = term_directions(self.setting.model)
        return {name: float((self.gradient * d).sum() / (d * d).sum()) for name, d in directions.items()}

    @property
    def off_diagonal(self) -> float:
        """The mean of Φv_i (Φv_j)ᵀ over i ≠ j."""
        memory = self.memory
        size = len(memory)
        return float((memory.sum() - np.trace(memory)) / (size * (size - 1))) if size > 1 else 0.0

    @property
    def memory(self) -> np.ndarray:
        """The block from Φv (keys) to Φv (queries), [variable, variable]."""
        bound = self.setting.model.bound_variables
        return self.gradient[bound, bound]

    @property
    def predicted(self) -> dict[str, float]:
        """The theorem's coefficients, of W₀ on the literal; those of another focus are compared with the same."""
        alpha, epsilon = self.setting.alpha, self.setting.epsilon
        size = 2 * alpha * epsilon * self.setting.scale
        shared = size / self.setting.n_variables
        return {"associative": shared, "spurious": shared, "slot": size * (1 - 2 * alpha)}

    @property
    def per_scale(self) -> dict[str, float]:
        """The coefficients over λ, which do not depend on it while it is small."""
        return {name: value / self.setting.scale for name, value in self.coefficients.items()}

    @property
    def predicted_per_scale(self) -> dict[str, float]:
        return {name: value / self.setting.scale for name, value in self.predicted.items()}

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """The gradient as a sum: the three terms, spurious and slot ``again`` (every query has p_T beside its e_=, and
        so the same column once more), and the ``rest``.
        """
        model = self.setting.model
        parts = {name: self.coefficients[name] * direction for name, direction in term_directions(model).items()}
        again = np.zeros_like(self.gradient)
        again[:, model.position(ANSWER_POSITION)] = (parts["spurious"] + parts["slot"])[:, model.equals]
        parts["again"] = again
        return parts | {"rest": self.gradient - sum(parts.values())}

    @property
    def norm_fractions(self) -> dict[str, float]:
        """How much of the squared norm each part has; they sum to 1."""
        whole = (self.gradient**2).sum()
        return {name: float((part**2).sum() / whole) for name, part in self.parts.items()}

    @property
    def largest_rest(self) -> float:
        """The largest entry of the rest, in units of the predicted associative coefficient."""
        return float(np.abs(self.parts["rest"]).max() / self.predicted["associative"])


def measure_step(setting: Setting, population: Population | None = None) -> Step:
    """Enumerate the population: the exact negative gradient at W₀.

    A query is e_= + p_T + Φv_j + Φe_{n₂}, so a column is a mean of keys: over all sequences for e_= and p_T, over
    those that ask for a variable for its Φv, over those with a literal for its Φe.
    """
    population = population or Population.of(setting)
    model, means = setting.model, _KeyMeans(setting, population)
    gradient = np.zeros((model.width, model.width))
    gradient[:, model.equals] = gradient[:, model.position(ANSWER_POSITION)] = means.over()
    for variable in range(setting.n_variables):
        gradient[:, model.bound_variables.start + variable] = means.over(variable=variable)
    for number in range(setting.modulus):
        gradient[:, model.bound_numbers.start + number] = means.over(number=number)
    return Step(setting, gradient)


def term_directions(model: DisentangledModel) -> dict[str, np.ndarray]:
    """The theorem's three terms as matrices [key, query] of zeros and ones."""
    directions = {name: np.zeros((model.width, model.width)) for name in TERMS}
    bound = np.arange(model.width)[model.bound_variables]
    directions["associative"][bound, bound] = 1
    directions["spurious"][bound, model.equals] = 1
    directions["slot"][model.position(LITERAL_POSITION), model.equals] = 1
    return directions


def pulls(setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """g₁, g₂ and ḡ for every pair, each [n1, n2]."""
    first, second = np.indices((setting.modulus, setting.modulus))
    on_value, on_literal = setting.epsilon, float(setting.attention[LITERAL_POSITION])
    raised = (
        np.stack([2 * second, first + second, 2 * first]) % setting.modulus
    )  # the answers with a logit, [3, n1, n2]
    amounts = np.array([on_literal**2, 2 * on_literal * on_value, on_value**2])
    same = raised[:, None] == raised[None]  # [3, 3, n1, n2]: some of the three may be one answer
    logits = setting.scale * np.einsum("j,ijab->iab", amounts, same)
    largest = logits.max(0)
    fractions = 1 / same.sum(1)  # an answer that is listed twice counts once
    exponentials = np.exp(logits - largest)
    total = (exponentials * fractions).sum(0) + (setting.modulus - fractions.sum(0)) * np.exp(-largest)
    missing = same[1] - exponentials / total  # r at 2n₂, n₁+n₂, 2n₁
    first_pull = 2 * setting.scale * (on_literal * missing[1] + on_value * missing[2])
    second_pull = 2 * setting.scale * (on_value * missing[1] + on_literal * missing[0])
    return first_pull, second_pull, on_value * first_pull + on_literal * second_pull


class _KeyMeans:
    """Means over the population of Σ_t α_t (g_t − ḡ) x_t."""

    def __init__(self, setting: Setting, population: Population) -> None:
        first, second, mean = pulls(setting)
        self.model, self.attention, self.binding = setting.model, setting.attention, population.binding
        self.value = population.pairs * setting.epsilon * (first - mean)  # what the assigned number's token gets
        self.literal = population.pairs * self.attention[LITERAL_POSITION] * (second - mean)
        self.other = -population.pairs * mean  # what any other token gets, before its attention

    def over(self, variable: int | None = None, number: int | None = None) -> np.ndarray:
        """[key]; only sequences that ask for this variable, or have this literal, count if one is given."""
        model = self.model
        value, literal, other = (_only(table, number) for table in (self.value, self.literal, self.other))  # [n1, n2]
        binding = _only(self.binding, variable)  # [assigned, asked]
        fraction, mean = binding.sum(), np.zeros(model.width)
        mean[model.position(LITERAL_POSITION)] += fraction * literal.sum()
        mean[model.numbers] += fraction * (literal.sum(0) + value.sum(1))
        mean[model.bound_variables] += value.sum() * binding.sum(1)
        self._add_positions(mean, fraction * value.sum(), fraction * other.sum())
        self._add_bystanders(mean, fraction * other.sum(0), other.sum() * binding)
        return mean

    def _add_positions(self, mean: np.ndarray, value: float, other: float) -> None:
        """Positions before the sum: the assignment's value stands at 1 … 11, each as often; the rest are bystanders."""
        model = self.model
        for index in range(N_PREFIX):
            is_value = (index > 0) / (N_PREFIX - 1)
            mean[model.position(index)] += is_value * value + (1 - is_value) * self.attention[index] * other
        mean[model.pad] += (N_PREFIX - 2) * self.attention[0] * other

    def _add_bystanders(self, mean: np.ndarray, other: np.ndarray, binding: np.ndarray) -> None:
        """Tokens without a number: both mentions of a variable, the operator, and '=' with what it carries.

        ``other`` is by literal, [n2]; ``binding`` [assigned, asked].
        """
        model, operand = self.model, OPERAND_POSITIONS[0]
        mean[model.variables] += self.attention[0] * binding.sum(1) + self.attention[operand] * binding.sum(0)
        for position, token in ((OPERATOR_POSITION, model.operator), (ANSWER_POSITION, model.equals)):
            mean[[token, model.position(position)]] += self.attention[position] * other.sum()
        mean[model.position(operand)] += self.attention[operand] * other.sum()
        mean[model.bound_variables] += self.attention[ANSWER_POSITION] * binding.sum(0)
        mean[model.bound_numbers] += self.attention[ANSWER_POSITION] * other


def _only(table: np.ndarray, column: int | None) -> np.ndarray:
    """The same table with all other columns set to 0; unchanged if none is named."""
    return table if column is None else table * (np.arange(table.shape[1]) == column)
