"""A claim is data: what a paper says, how it is measured here, and when the measurement agrees with it.

A claim names the *results* it reads (labelled datasets that ``studies/framework/results.py`` makes and keeps), and a *judge*: a
plain function from those datasets to a ``Finding``. No finding without a control: where the control does not hold, a
claim cannot replicate. Conditions are judged on intervals: where one spans its threshold, or runs were cut off before they
could show anything, the claim is inconclusive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bindscope.errors import BindscopeError, suggest_nearest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bindscope.studies.framework.curves import Curve
    from bindscope.studies.framework.results import Result

Verdict = Literal["replicates", "differs", "inconclusive", "not testable"]
VERDICTS: tuple[Verdict, ...] = ("replicates", "differs", "inconclusive", "not testable")
Unit = Literal["fraction", "step", "1"]


@dataclass(frozen=True)
class Quantity:
    """A measured number with its interval and what it was taken over.

    >>> str(Quantity("end", 0.9912, 0.987, 0.994, n=4000))
    'end 99.1 % [98.7–99.4]'
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    unit: Unit = "fraction"

    def __post_init__(self) -> None:
        _space_percents(self, "label")

    def __str__(self) -> str:
        return f"{self.label} {self.number}"

    @property
    def number(self) -> str:
        """The value with its interval, without the label."""
        if self.value != self.value:
            return "–"
        show = {"fraction": _show_fraction, "step": lambda step: f"{step:,.0f}", "1": lambda number: f"{number:.3g}"}[
            self.unit
        ]
        percent = " %" if self.unit == "fraction" else ""
        if self.low is None or self.high is None:
            return f"{show(self.value)}{percent}"
        to = " to " if self.low < 0 else "–"
        return f"{show(self.value)}{percent} [{show(self.low)}{to}{show(self.high)}]"


@dataclass(frozen=True)
class Finding:
    """What a run says about a claim: a verdict, the numbers behind it, the control beside it, and why."""

    verdict: Verdict
    reason: str
    quantities: tuple[Quantity, ...] = ()
    control: tuple[Quantity, ...] = ()

    def __post_init__(self) -> None:
        _space_percents(self, "reason")

    def adding(self, sentence: str) -> Finding:
        """The same with one more sentence at the end of its reason."""
        return replace(self, reason=f"{self.reason} {sentence}".rstrip())


@dataclass(frozen=True)
class Fixed:
    """Since when a criterion and its control stand as they are, and what had been seen by then.

    >>> str(Fixed("2026-11-17", "binding-laptop and binding-plain"))
    '2026-11-17, having seen binding-laptop and binding-plain'
    """

    on: str  # a date
    seen: str  # the runs, experiments or published numbers whose results were known; "nothing" is the best

    def __str__(self) -> str:
        return f"{self.on}, having seen {self.seen}"


@dataclass(frozen=True)
class Claim:
    """One published claim."""

    id: str  # VB3
    title: str
    statement: str  # what the paper says, in our words
    paper: str  # its figure or number
    measure: str  # how we measure it
    criterion: str  # when a run replicates it, in one sentence
    control_description: str
    results: tuple[str, ...]  # names of the results it reads
    judge: Callable[[Mapping[str, xr.Dataset]], Finding]
    draw: Callable[[Mapping[str, xr.Dataset]], Figure]
    fixed: Fixed | None = None
    source: str = ""  # who says so and where; the study's paper when left out

    def __post_init__(self) -> None:
        _space_percents(self, "statement", "measure", "criterion", "control_description")


@dataclass(frozen=True)
class Drawing:
    """A figure of saved results beside the claims' own: ``bindscope figure RUN score-terms``.

    The first result is what it shows. The others are marked in it where a run has them.
    """

    id: str  # score-terms
    title: str
    results: tuple[str, ...]
    draw: Callable[[Mapping[str, xr.Dataset]], Figure]


@dataclass(frozen=True)
class Wanted:
    """A run of a preset or an experiment that verdicts rest on, and what would be settled by training all of it."""

    name: str
    order: int  # what would change verdicts most comes first, over all studies
    settles: str
    full: bool = False  # variants of a size for many machines are wanted too
    beyond: bool = False  # a question beyond the paper, which no claim of it reads


@dataclass(frozen=True)
class Study:
    """A paper's claims and the results they read, for runs of one family of tasks."""

    family: str
    title: str
    claims: tuple[Claim, ...]
    results: tuple[Result, ...]
    evidence: tuple[Wanted, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    source: str = ""  # the paper
    curves: tuple[Curve, ...] = ()  # numbers over training, shown side by side

    @classmethod
    def of(
        cls,
        family: str,
        title: str,
        measured: Iterable[Any],
        judged: Iterable[Any],
        evidence: tuple[Wanted, ...] = (),
        drawn: Iterable[Any] = (),
        source: str = "",
    ) -> Study:
        """The study of modules with ``RESULTS`` and perhaps ``CURVES``, with ``CLAIMS`` (put in the order of their numbers)
        and with ``DRAWINGS``.
        """
        claims = sorted((claim for part in judged for claim in part.CLAIMS), key=lambda claim: int(claim.id[2:]))
        measured = tuple(measured)
        results = tuple(result for part in measured for result in part.RESULTS)
        curves = tuple(curve for part in measured for curve in getattr(part, "CURVES", ()))
        drawings = tuple(drawing for part in drawn for drawing in part.DRAWINGS)
        return cls(family, title, tuple(claims), results, evidence, drawings, source, curves)

    def claims_on(self, experiment: str) -> tuple[str, ...]:
        """The claims that read an experiment."""
        reading = {result.name for result in self.results if experiment in result.experiments}
        return tuple(claim.id for claim in self.claims if reading & set(claim.results))

    def claims_on_runs(self) -> tuple[str, ...]:
        """The claims that read something of a run itself."""
        reading = {result.name for result in self.results if result.metrics or not result.experiments}
        return tuple(claim.id for claim in self.claims if reading & set(claim.results))

    def find_claim(self, name: str) -> Claim:
        """A claim by its id, in any case."""
        known = {claim.id: claim for claim in self.claims}
        if name.upper() not in known:
            near = suggest_nearest(name.upper(), known)
            raise BindscopeError(f"there is no claim '{name}' about runs of the family '{self.family}'.{near}")
        return known[name.upper()]

    def find_figure(self, name: str) -> Claim | Drawing:
        """What draws the figure of that name: a claim by its id, in any case, or a drawing."""
        known: list[Claim | Drawing] = [*self.claims, *self.drawings]
        found = next((each for each in known if each.id.lower() == name.lower()), None)
        if found is None:
            near = suggest_nearest(name, (each.id for each in known))
            raise BindscopeError(f"there is no claim or figure '{name}'.{near}")
        return found


@dataclass(frozen=True)
class Condition:
    """One thing that a criterion or a control asks for: whether it holds, None if that cannot be told, and the words."""

    holds: bool | None
    yes: str
    no: str
    unclear: str = ""  # where it cannot be told; the words for "no" and why, when left out

    def __str__(self) -> str:
        if self.holds is None:
            return self.unclear or f"{self.no} (its interval spans the threshold)"
        return self.yes if self.holds else self.no


def reaches(quantity: Quantity, threshold: float) -> bool | None:
    """Whether a quantity is at least ``threshold`` with its whole interval; None where that spans it or nothing is known.

    >>> reaches(Quantity("end", 0.93, 0.88, 0.96), 0.9) is None
    True
    """
    low, high = ends_of(quantity)
    return None if low < threshold <= high or low != low or high != high else low >= threshold


def stays_within(quantity: Quantity, threshold: float) -> bool | None:
    """Whether a quantity is at most ``threshold`` with its whole interval; None where that spans it or nothing is known."""
    low, high = ends_of(quantity)
    return None if low <= threshold < high or low != low or high != high else high <= threshold


def all_hold(conditions: Iterable[bool | None]) -> bool | None:
    """Whether all of several hold: False where one does not, None where none fails but one cannot be told.

    >>> all_hold([True, None]) is None
    True
    """
    known = list(conditions)
    return False if False in known else None if None in known else True


def agree(answers: Iterable[bool | None]) -> bool | None:
    """What several trainings or readings all say; None where they do not, or say nothing.

    >>> agree([True, True]), agree([True, False])
    (True, None)
    """
    found = set(answers)
    return found.pop() if len(found) == 1 else None


def ends_of(quantity: Quantity) -> tuple[float, float]:
    """The interval of a quantity, or its value twice where it has none."""
    value = quantity.value
    return (value if quantity.low is None else quantity.low, value if quantity.high is None else quantity.high)


def conclude(
    criterion: tuple[Condition, ...],
    control: tuple[Condition, ...],
    quantities: tuple[Quantity, ...],
    control_quantities: tuple[Quantity, ...],
) -> Finding:
    """Replicates when every condition of the criterion and of the control holds, differs when one does not.

    Inconclusive when none fails but one cannot be told. What fails, or cannot be told, is said first.
    """
    order = (False, None, True)
    conditions = sorted((*criterion, *control), key=lambda condition: order.index(condition.holds))
    words = [str(condition) for condition in conditions]
    if all(condition.holds for condition in criterion) and any(condition.holds is False for condition in control):
        words.insert(0, "The criterion is met, but its control is not:")
    verdicts: dict[bool | None, Verdict] = {False: "differs", None: "inconclusive", True: "replicates"}
    return Finding(verdicts[conditions[0].holds], _sentences(words), quantities, control_quantities)


def inconclusive(reason: str, quantities: tuple[Quantity, ...] = (), control: tuple[Quantity, ...] = ()) -> Finding:
    """A finding that says why what was measured does not tell: too few seeds, runs that were cut off."""
    return Finding("inconclusive", _sentences([reason]), quantities, control)


def not_testable(reason: str, quantities: tuple[Quantity, ...] = ()) -> Finding:
    """A finding that says why nothing can be found here."""
    return Finding("not testable", _sentences([reason]), quantities)


def _show_fraction(fraction: float) -> str:
    """In per cent with one decimal, never rounded up to a perfection that is not there."""
    percent = round(fraction * 100, 1) + 0.0  # no -0
    return "99.9" if percent == 100 and fraction < 1 else f"{percent:g}"


def _space_percents(frozen: Quantity | Finding | Claim, *names: str) -> None:
    """Python writes ``80%`` of a fraction; sentences here say ``80 %``, as tables do."""
    for name in names:
        object.__setattr__(frozen, name, re.sub(r"(?<=\d)%", " %", getattr(frozen, name)))


def _sentences(parts: list[str]) -> str:
    ended = [part if part.endswith((".", ":", "?")) else f"{part}." for part in parts if part]
    return " ".join(f"{part[:1].upper()}{part[1:]}" for part in ended)
