"""How likely each account makes each answer: the components of the mixture, pair by pair.

Line a of the base holds the digit v(a); an account is a distribution over lines, and so over digits (arXiv 2510.06182, eq. 1,
with two terms of our own):

    positional   ∝ exp(−(a − p)²/2σ²) around the source's line p, normalised over the lines
    lexical      all on the line of the source's name
    reflexive    all on the line that holds the source's value
    early        on line 1 or line 2, in any proportion
    unchanged    all on the base's own line: the patch did nothing
    other        any digit alike, or no digit at all

A digit that several lines hold gets the sum of their probabilities. Answers are digits, −1 for an output that is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.tasks.binding.accounts import N_EARLY, AccountPairs

ACCOUNTS = ("positional", "lexical", "reflexive", "early", "unchanged", "other")
COMPONENTS = ("positional", "lexical", "reflexive", "line 1", "line 2", "unchanged", "any digit", "no digit")
ACCOUNT_OF = np.array([0, 1, 2, 3, 3, 4, 5, 5])  # [component]: several components may make up one account
NEAR = 3  # lines to either side of p that have a category of their own
NO_DIGIT = -1


@dataclass(frozen=True, eq=False)
class Components:
    """What every component gives every outcome, digits in order and last no digit: [pair, outcome, component]."""

    fixed: np.ndarray  # with zeros for the positional component, which depends on σ
    holds: np.ndarray  # [pair, line, outcome]: whether the line holds the digit
    distance: np.ndarray  # [pair, line]: from the source's line p
    category: np.ndarray  # [pair, outcome]: see ``categorise``

    def at(self, sigma: float) -> np.ndarray:
        """All components [pair, outcome, component] with the positional one this wide."""
        weight = np.exp(-(self.distance**2) / (2 * sigma**2))
        weight = weight / weight.sum(1, keepdims=True)
        table = self.fixed.copy()
        table[:, :, 0] = (weight[:, :, None] * self.holds).sum(1)
        return table

    def take(self, rows: np.ndarray) -> Components:
        """Only these pairs."""
        return Components(self.fixed[rows], self.holds[rows], self.distance[rows], self.category[rows])


def tabulate_components(drawn: AccountPairs) -> Components:
    """The components of all pairs."""
    rows, n_outcomes = np.arange(len(drawn)), drawn.n_digits + 1
    fixed = np.zeros((len(drawn), n_outcomes, len(COMPONENTS)))
    lines = (drawn.lexical, drawn.reflexive, *np.arange(N_EARLY)[:, None].repeat(len(drawn), 1), drawn.asked)
    for component, line in enumerate(lines, start=1):
        fixed[rows, drawn.values[rows, line], component] = 1
    fixed[:, :-1, COMPONENTS.index("any digit")] = 1 / drawn.n_digits
    fixed[:, -1, COMPONENTS.index("no digit")] = 1
    holds = drawn.values[:, :, None] == np.arange(n_outcomes)
    distance = (np.arange(drawn.values.shape[1]) - drawn.positional[:, None]).astype(float)
    return Components(fixed, holds.astype(float), distance, categorise(fixed, holds, distance))


def categorise(fixed: np.ndarray, holds: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """A number for what each outcome [pair, outcome] means, comparable from pair to pair.

    The lexical, reflexive, early and unchanged digits; of others, how far the nearest line that holds it is from p, up to
    ``NEAR`` to either side; then farther, on no line, and no digit.
    """
    away = np.where(holds, np.abs(distance)[:, :, None], np.inf)  # [pair, line, outcome]
    nearest = np.take_along_axis(distance, away.argmin(1), axis=1)  # [pair, outcome]
    first = len(COMPONENTS)
    category = np.where(np.abs(nearest) <= NEAR, first + NEAR + nearest, first + 2 * NEAR + 1).astype(int)
    category = np.where(holds.any(1), category, first + 2 * NEAR + 2)
    for component in range(1, COMPONENTS.index("any digit")):
        category = np.where(fixed[:, :, component] > 0, ACCOUNT_OF[component], category)
    category[:, -1] = first + 2 * NEAR + 3
    return category


def n_categories() -> int:
    """How many numbers ``categorise`` gives."""
    return len(COMPONENTS) + 2 * NEAR + 4


def to_outcomes(digits: np.ndarray, n_digits: int) -> np.ndarray:
    """Answers as outcomes: digits as they are, what is none last."""
    return np.where(digits == NO_DIGIT, n_digits, digits)
