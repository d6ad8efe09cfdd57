"""Whether a transformer's kernel can learn templates so that unseen symbols are answered right, and why.

>>> report = learnable(["ABA", "ABB"], [1, -1])
>>> report.verdict, report.smallest.low > 0
('learnable', True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import Template
from bindscope.tasks.templates.checks import Overlap, find_overlaps
from bindscope.theory.kernel import Estimate, KernelSettings, TemplateKernel, parse_templates, template_kernel

if TYPE_CHECKING:
    import xarray as xr

Verdict = Literal["learnable", "not learnable", "undecided", "not covered"]
ROUNDING = 1e-12  # eigenvalues below this fraction of the largest are not told from 0 in double precision
LABEL_TOLERANCE = 1e-6  # labels with a smaller fraction in the null directions have none
PRECISE_FRACTION = 1e-2  # … and when less than this can be told apart from none, there is said to be none


@dataclass(frozen=True, eq=False)
class KernelReport:
    """N of some templates with errors, its eigenvalues with 95 % intervals, and what they say."""

    kernel: TemplateKernel = field(repr=False)
    labels: tuple[float, ...] | None
    overlaps: tuple[Overlap, ...]
    null_directions: np.ndarray = field(repr=False)  # [direction, template]: orthonormal, N takes each to 0
    verdict: Verdict
    why: str

    @property
    def templates(self) -> tuple[str, ...]:
        return self.kernel.templates

    @property
    def settings(self) -> KernelSettings:
        return self.kernel.settings

    @property
    def matrix(self) -> Estimate:
        """N [template, other]."""
        return self.kernel.matrix

    @property
    def eigenvalues(self) -> Estimate:
        return self.kernel.eigenvalues

    @property
    def smallest(self) -> Estimate:
        """λ_min(N)."""
        found = self.eigenvalues
        return Estimate(found.value[0], found.standard_error[0], found.low[0], found.high[0])

    @property
    def label_fraction(self) -> float | None:
        """How much of the labels' length lies in null directions; None without labels."""
        return None if self.labels is None else _label_fraction(self.labels, self.null_directions)

    def to_dataset(self) -> xr.Dataset:
        """Dims template, other, eigenvalue (smallest first), null; errors as ``…_error``, intervals ``…_low/high``."""
        import xarray as xr

        matrix, eigenvalues, with_itself = self.matrix, self.eigenvalues, self.kernel.with_itself
        pair, settings = ("template", "other"), self.settings
        arrays: dict[str, object] = {
            "kernel": (pair, matrix.value),
            "kernel_error": (pair, matrix.standard_error),
            "attention": (pair, self.kernel.attention.value),
            "attention_error": (pair, self.kernel.attention.standard_error),
            "with_itself": ("template", with_itself.value),
            "with_itself_error": ("template", with_itself.standard_error),
            "eigenvalue_value": ("eigenvalue", eigenvalues.value),
            "eigenvalue_error": ("eigenvalue", eigenvalues.standard_error),
            "eigenvalue_low": ("eigenvalue", eigenvalues.low),
            "eigenvalue_high": ("eigenvalue", eigenvalues.high),
            "eigenvector": (("eigenvalue", "template"), np.linalg.eigh(matrix.value)[1].T),
            "null_direction": (("null", "template"), self.null_directions),
        }
        if self.labels is not None:
            arrays["label"] = ("template", list(self.labels))
        names = list(self.templates)
        attributes = {
            **{name: getattr(settings, name) for name in ("beta", "gamma", "b1", "b2", "points", "inner_points")},
            **{"randomisations": settings.randomisations, "seed": settings.seed, "cls": int(settings.cls)},
            **{"activation": settings.phi.name, "verdict": self.verdict, "why": self.why},
        }
        coordinates = {"template": names, "other": names, "eigenvalue": np.arange(len(names))}
        return xr.Dataset(arrays, coords=coordinates, attrs=attributes)  # type: ignore[arg-type]


def learnable(
    templates: Sequence[str | Template],
    labels: Sequence[float] | None = None,
    settings: KernelSettings | None = None,
) -> KernelReport:
    """Estimate N and judge it; without labels the question is whether *every* labelling can be learned."""
    parsed = parse_templates(templates)
    checked = None if labels is None else _check_labels(labels, len(parsed))
    kernel = template_kernel(parsed, settings)
    overlaps = find_overlaps(parsed)
    null = _null_directions(kernel)
    verdict, why = _judge(kernel, checked, null)
    if overlaps:
        verdict, why = "not covered", f"{_describe(overlaps)} The theory is about disjoint templates. Of N alone: {why}"
    return KernelReport(kernel, checked, overlaps, null, verdict, why)


def _judge(kernel: TemplateKernel, labels: tuple[float, ...] | None, null: np.ndarray) -> tuple[Verdict, str]:
    found = kernel.eigenvalues
    value, low, high = found.value[0], found.low[0], found.high[0]
    words = f"the smallest eigenvalue of N is {value:.3g}, 95 % interval {low:.3g} to {high:.3g}"
    if not len(null):
        if low > _floor(kernel):
            return "learnable", f"N is not singular: {words}."
        return "undecided", f"{words}: its sign cannot be told; use more points."
    directions = " and ".join(_describe_direction(direction, kernel.templates) for direction in null)
    singular = f"N is singular: it takes {directions} to 0"
    if labels is None:
        return "not learnable", f"{singular}; labels with a component there cannot be learned."
    fraction = _estimate_fraction(kernel, labels, len(null))
    if fraction.low > LABEL_TOLERANCE:
        return "not learnable", f"{singular}, where the labels have a component ({fraction.value:.1%} of their length)."
    if fraction.high > PRECISE_FRACTION or (len(null) < len(labels) and found.low[len(null)] <= _floor(kernel)):
        return "undecided", f"{singular}; whether the labels have a component there cannot be told; use more points."
    return "learnable", f"{singular}, but the labels have no component there."


def _estimate_fraction(kernel: TemplateKernel, labels: Sequence[float], n_null: int) -> Estimate:
    """How much of the labels lies in the null directions, which are themselves estimated."""
    expect = kernel.settings.phi.expect

    def statistic(same: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        vectors = np.linalg.eigh(expect(same[:, None], same[None, :], fresh))[1]
        return np.array(_label_fraction(labels, vectors[:, :n_null].T))

    return kernel.estimate(statistic)


def _null_directions(kernel: TemplateKernel) -> np.ndarray:
    """Eigenvectors of N whose eigenvalue is 0 with certainty: its whole interval is within rounding."""
    found, floor = kernel.eigenvalues, _floor(kernel)
    n_null = int(((found.high <= floor) & (found.low >= -floor)).sum())
    return np.linalg.eigh(kernel.matrix.value)[1][:, :n_null].T


def _floor(kernel: TemplateKernel) -> float:
    return ROUNDING * float(kernel.eigenvalues.value[-1]) * len(kernel.templates)


def _label_fraction(labels: Sequence[float], null: np.ndarray) -> float:
    values = np.array(labels)
    length = float(np.linalg.norm(values))
    return float(np.linalg.norm(null @ values)) / length if length else 0.0


def _check_labels(labels: Sequence[float], n_templates: int) -> tuple[float, ...]:
    if len(labels) != n_templates:
        raise BindscopeError(f"labels: {n_templates} templates need as many labels, got {len(labels)}.")
    if any(isinstance(label, str) for label in labels):
        raise BindscopeError("labels: must be numbers; the kernel says nothing about labels that are symbols.")
    if not np.isfinite(np.array(labels, dtype=float)).all():
        raise BindscopeError("labels: must be finite numbers.")
    return tuple(float(label) for label in labels)


def _describe(overlaps: tuple[Overlap, ...]) -> str:
    shown = "; ".join(map(str, overlaps[:3]))
    more = f"; and {len(overlaps) - 3} more pairs" if len(overlaps) > 3 else ""
    return f"Templates are not disjoint: {shown}{more}."


def _describe_direction(direction: np.ndarray, templates: Sequence[str]) -> str:
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    parts = [f"{weight:+.2f}·{name}" for weight, name in zip(direction, templates) if abs(weight) > 5e-3]
    return " ".join(parts[:8]) + (" …" if len(parts) > 8 else "")
