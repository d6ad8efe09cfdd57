"""The transformer kernel of study 3 (arXiv 2310.09753): what an infinitely wide, random transformer sees in sequences.

    K_attn(X, Y)  = E[softmax(βu)ᵀ (XYᵀ + γ²I) softmax(βv)]      X, Y one-hot sequences; see ``kernel_attention``
    K_trans(X, Y) = E[φ(a)φ(b)],  (a, b) ~ N(0, K_attn)          see ``kernel_activation``
    N_ij          = K_trans(template i, template j)              with fresh symbols: none in common but regular tokens

Kernel ridge regression with K_trans generalises to unseen symbols when templates are disjoint and N is not singular.
Integrals are taken over shifted lattices; every estimate is kept for each of R independent shifts, and errors of
whatever is computed from them (N, its eigenvalues) come from leaving one shift out at a time (the jackknife).

>>> estimate = template_kernel(["AA", "AB"], KernelSettings(beta=3.0))
>>> estimate.matrix.value
array([[0.508…, 0.512…], [0.512…, 0.522…]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import CLS, Template
from bindscope.tasks.templates.template import Wildcard, check_templates
from bindscope.theory.kernel_activation import Activation, Function, find_activation
from bindscope.theory.kernel_attention import AttentionMoments, Sampling, fresh_moments, sequence_moments

MOST_SHARPNESS = 40.0  # of β(1 + γ): beyond, e^βu leaves the range of double precision
MOST_POINTS = 2**17
MOST_TEMPLATES, MOST_LENGTH = 128, 20
String = Sequence[str]


@dataclass(frozen=True)
class KernelSettings:
    """The random model (β sharpness of attention, γ size of positions, φ) and how finely its kernel is integrated."""

    beta: float = 3.0
    gamma: float = 1.0
    activation: str | Function = "cos"
    b1: float = 1.0  # cos(b1·t + b2)
    b2: float = 0.5
    cls: bool = True  # sequences end with a CLS token
    points: int = 512  # lattice points over what two sequences share; taken up to a power of two
    inner_points: int = 16  # … and over the wildcards of each, for every one of those
    randomisations: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("beta", "gamma"):
            if not 0 <= getattr(self, name) < np.inf:
                raise BindscopeError(f"{name}: must be a number from 0 up, got {getattr(self, name)}.")
        if self.beta * (1 + self.gamma) > MOST_SHARPNESS:
            raise BindscopeError(
                f"beta: beta·(1 + gamma) must be at most {MOST_SHARPNESS:g}, got {self.beta * (1 + self.gamma):g}."
            )
        if not (np.isfinite(self.b1) and np.isfinite(self.b2)):
            raise BindscopeError(f"b1, b2: must be finite numbers, got {self.b1} and {self.b2}.")
        bounds = {"points": (16, MOST_POINTS), "inner_points": (1, 1024), "randomisations": (8, 128)}
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise BindscopeError(f"{name}: must lie in {low}..{high}, got {getattr(self, name)}.")
        if self.seed < 0:
            raise BindscopeError(f"seed: must be 0 or more, got {self.seed}.")
        _ = self.phi

    @cached_property
    def phi(self) -> Activation:
        return find_activation(self.activation, self.b1, self.b2)

    @property
    def sampling(self) -> Sampling:
        return Sampling(2 ** (self.points - 1).bit_length(), self.inner_points, self.randomisations)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value with its standard error, and a 95 % interval around both it and what it is without first-order bias."""

    value: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class TemplateKernel:
    """What K_attn of templates was in each randomisation, and N from it."""

    templates: tuple[str, ...]
    settings: KernelSettings
    moments: AttentionMoments = field(repr=False)

    @cached_property
    def matrix(self) -> Estimate:
        """N [template, other]."""
        return self.estimate(lambda same, fresh: self._transform(same, fresh))

    @cached_property
    def with_itself(self) -> Estimate:
        """K_trans of a sequence with itself, [template]."""
        return self.estimate(lambda same, fresh: self.settings.phi.expect(same, same, same))

    @cached_property
    def eigenvalues(self) -> Estimate:
        """Of N, smallest first."""
        return self.estimate(lambda same, fresh: np.linalg.eigvalsh(self._transform(same, fresh)))

    @cached_property
    def attention(self) -> Estimate:
        """K_attn [template, other] with fresh symbols."""
        return self.estimate(lambda same, fresh: fresh)

    def estimate(self, statistic: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Estimate:
        """Any function of K_attn (of sequences with themselves, and with fresh ones), with its jackknife error."""
        return jackknife(statistic, self.moments)

    def _transform(self, same: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        return self.settings.phi.expect(same[:, None], same[None, :], fresh)


def template_kernel(templates: Sequence[str | Template], settings: KernelSettings | None = None) -> TemplateKernel:
    """N for templates in their text form, all pairs at once."""
    settings = settings or KernelSettings()
    parsed = parse_templates(templates)
    codes, n_wildcards = encode_templates(parsed, settings.cls)
    rng = np.random.default_rng(settings.seed)
    moments = fresh_moments(codes, n_wildcards, settings.beta, settings.gamma, settings.sampling, rng)
    return TemplateKernel(tuple(map(str, parsed)), settings, moments)


def attention_kernel(pairs: Sequence[tuple[String, String]], settings: KernelSettings | None = None) -> Estimate:
    """K_attn of any pairs of sequences of equal length, [pair]; pairs that differ by renaming are computed once.

    >>> attention_kernel([("aab", "aba"), ("xxy", "xyx")]).value  # the same structure twice
    array([0.61…, 0.61…])
    """
    moments, first, second = _pair_moments(pairs, settings or KernelSettings())
    return jackknife(lambda same, crossed: crossed[first, second], moments)


def sequence_kernel(pairs: Sequence[tuple[String, String]], settings: KernelSettings | None = None) -> Estimate:
    """K_trans of any pairs of sequences of equal length, [pair].

    >>> sequence_kernel([("ab", "ab"), ("ab", "cd")]).value
    array([0.69…, 0.52…])
    """
    settings = settings or KernelSettings()
    swapped = [(second, first) for first, second in pairs]
    moments, first, second = _pair_moments([*pairs, *swapped], settings)
    n = len(pairs)

    def statistic(same: np.ndarray, crossed: np.ndarray) -> np.ndarray:
        cross = (crossed[first, second][:n] + crossed[first, second][n:]) / 2
        return settings.phi.expect(same[first[:n]], same[first[n:]], cross)

    return jackknife(statistic, moments)


def jackknife(statistic: Callable[[np.ndarray, np.ndarray], np.ndarray], moments: AttentionMoments) -> Estimate:
    """A statistic of the mean over randomisations, with what leaving out each of them says about error and bias."""
    same, fresh = moments.same, moments.fresh
    n = len(same)
    value = statistic(same.mean(0), fresh.mean(0))
    without = np.array(
        [statistic(s, f) for s, f in zip((same.sum(0) - same) / (n - 1), (fresh.sum(0) - fresh) / (n - 1))]
    )
    error = np.sqrt((n - 1) / n * ((without - without.mean(0)) ** 2).sum(0))
    centre = n * value - (n - 1) * without.mean(0)
    half = student_quantile(n - 1) * error
    return Estimate(value, error, np.minimum(value, centre) - half, np.maximum(value, centre) + half)


def student_quantile(n_degrees: int, confidence: float = 0.95) -> float:
    """The two-sided quantile of Student's t, by its expansion around the normal one; four digits from 7 degrees on."""
    z, n = NormalDist().inv_cdf(0.5 + confidence / 2), n_degrees
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n ** (power + 1) for power, term in enumerate(terms))


def parse_templates(templates: Sequence[str | Template]) -> tuple[Template, ...]:
    """Templates from their text, refused where they are too many, too long, of different lengths or equivalent."""
    if not 1 <= len(templates) <= MOST_TEMPLATES:
        raise BindscopeError(f"templates: give 1 to {MOST_TEMPLATES}, got {len(templates)}.")
    parsed = tuple(Template.parse(t) if isinstance(t, str) else t for t in templates)
    for template in parsed:
        if len(template) > MOST_LENGTH:
            raise BindscopeError(
                f"Template {template}: at most {MOST_LENGTH} tokens can be used, it has {len(template)}."
            )
    check_templates(parsed)
    return parsed


def encode_templates(templates: Sequence[Template], cls: bool) -> tuple[np.ndarray, int]:
    """[template, position]: wildcards by first appearance from 0, then numbers for regular tokens; and how many are wild."""
    n_wildcards = max(len(template.wildcards) for template in templates)
    regular = dict.fromkeys(token for template in templates for token in template.regular_tokens)
    number = {token: n_wildcards + index for index, token in enumerate((*regular, *((_END,) if cls else ())))}
    rows = []
    for template in templates:
        order = {name: index for index, name in enumerate(template.wildcards)}
        row = [order[token.name] if isinstance(token, Wildcard) else number[token] for token in template.tokens]
        rows.append([*row, *([number[_END]] if cls else [])])
    return np.array(rows, dtype=np.int64), n_wildcards


_END = f" {CLS}"  # the token at the end; no token of a template begins with a space


def _pair_moments(
    pairs: Sequence[tuple[String, String]], settings: KernelSettings
) -> tuple[AttentionMoments, np.ndarray, np.ndarray]:
    """Moments of the distinct sequences in canonical form, and the row and column of each pair."""
    canonical = [canonical_pair(first, second, settings.cls) for first, second in pairs]
    lefts = {left: row for row, left in enumerate(dict.fromkeys(left for left, _ in canonical))}
    rights = {right: row for row, right in enumerate(dict.fromkeys(right for _, right in canonical))}
    moments = sequence_moments(
        np.array(list(lefts)),
        np.array(list(rights)),
        settings.beta,
        settings.gamma,
        settings.sampling,
        np.random.default_rng(settings.seed),
    )
    rows = np.array([lefts[left] for left, _ in canonical])
    columns = np.array([rights[right] for _, right in canonical])
    return moments, rows, columns


def canonical_pair(first: String, second: String, cls: bool = True) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Symbols as numbers in order of first appearance, the end token's first: equal iff pairs differ by renaming only.

    >>> canonical_pair("xyx", "yzz", cls=False)
    ((0, 1, 0), (1, 2, 2))
    """
    if len(first) != len(second) or not len(first):
        raise BindscopeError(f"Sequences need equal lengths of at least 1, got {len(first)} and {len(second)}.")
    ends = (_END,) if cls else ()
    number: dict[str, int] = {token: index for index, token in enumerate(ends)}
    left, right = (tuple(number.setdefault(token, len(number)) for token in (*s, *ends)) for s in (first, second))
    return left, right
