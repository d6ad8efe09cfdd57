"""One term of a claim that is written as a document: a number of a saved result, and what it must be.

    result = "chain"
    variable = "success"
    select = {depth = 2, position = "rhs 2"}
    reduce = ["max over layer"]
    at_least = 0.8

``select`` picks coordinates, ``reduce`` makes one number of what is left, ``minus`` subtracts the same number selected
otherwise. A term is judged by the whole 95 % interval of its number: the one that the result holds, Wilson's where
``n`` counts the examples of a fraction, Student's of a mean over examples. Without one nothing can be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.intervals import normal_quantile, student_interval, wilson_interval
from bindscope.studies.framework.claims import Condition, Quantity, Unit, all_hold, reaches, stays_within
from bindscope.studies.framework.quantities import difference_of

WORDS = ("max", "min", "mean")
EXAMPLES = ("pair", "program", "example", "sample", "seed")  # dimensions whose mean has an interval of its own
NO_FRACTIONS = ("kl", "loss", "logit", "logit_difference", "rank", "layer")  # endings of names that are none
ENDS = ("low", "high")


@dataclass(frozen=True)
class Term:
    """What to read of a result, and the comparison that decides."""

    result: str  # its name; of a question the name that its answer is saved under
    variable: str
    select: Mapping[str, Any] = field(default_factory=dict)
    reduce: tuple[tuple[str, str], ...] = ()  # (word, dimension), one after the other
    minus: Mapping[str, Any] = field(default_factory=dict)
    n: str | int | None = None  # the count behind a fraction: a number, a variable or an attribute
    at_least: float | None = None
    at_most: float | None = None
    unit: Unit | None = None
    label: str = ""
    asks: str = ""  # the question whose answer it reads, in words

    def __str__(self) -> str:
        """The number in words: ``success of chain at depth 2, position rhs 2, max over layer``."""
        if self.label:
            return self.label
        where = f" at {_select_in_words(self.select)}" if self.select else ""
        reduced = "".join(f", {word} over {dim}" for word, dim in self.reduce)
        minus = f", minus that at {_select_in_words(self.minus)}" if self.minus else ""
        return f"{self.variable} of {self.asks or self.result}{where}{reduced}{minus}"

    @property
    def comparison(self) -> str:
        """``is at least 0.8``."""
        return f"is {self.bounds()}"

    def bounds(self, unit: Unit = "1") -> str:
        """``at least 0.8``; of fractions ``at least 80 %``."""
        bounds = [
            f"{word} {100 * bound:g} %" if unit == "fraction" else f"{word} {bound:,g}"
            for word, bound in (("at least", self.at_least), ("at most", self.at_most))
            if bound is not None
        ]
        return " and ".join(bounds)


@dataclass(frozen=True)
class Judgement:
    """A term's number, whether it is as it must be, and why that cannot be told where no interval is known."""

    quantity: Quantity
    condition: Condition


@dataclass(frozen=True)
class _Cells:
    value: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray
    n: xr.DataArray | None


def judge_term(term: Term, dataset: xr.Dataset, must_be_able_to_fail: bool = False) -> Judgement:
    """What a dataset says about a term; a control must be one that this number could have failed."""
    quantity = read_term(term, dataset)
    words = f"{term} {quantity.number}"
    if quantity.value != quantity.value:
        return Judgement(quantity, Condition(None, "", "", f"nothing was measured of {term}"))
    if quantity.low is None:
        why = (
            f"{words}: no interval is saved with '{term.variable}', so it cannot be judged; give n, the count behind it"
        )
        return Judgement(quantity, Condition(None, "", "", why))
    if must_be_able_to_fail and quantity.unit == "fraction" and not term.minus and _cannot_fail(term):
        why = f"{term} {term.comparison} whatever the model does, so this control could not have failed"
        return Judgement(quantity, Condition(None, "", "", why))
    holds = all_hold(
        compare(quantity, bound)
        for compare, bound in ((reaches, term.at_least), (stays_within, term.at_most))
        if bound is not None
    )
    asked = term.bounds(quantity.unit)
    unclear = f"whether {words} is {asked} cannot be told: its interval spans the threshold"
    return Judgement(quantity, Condition(holds, f"{words} is {asked}", f"{words} is not {asked}", unclear))


def read_term(term: Term, dataset: xr.Dataset) -> Quantity:
    """The number of a term with its interval; ``low`` is None where none is known."""
    first = _read_cell(term, dataset, term.select)
    if not term.minus:
        return first
    second = _read_cell(term, dataset, {**term.select, **term.minus})
    if first.low is None or second.low is None:
        return Quantity(str(term), first.value - second.value, n=first.n, unit=first.unit)
    return difference_of(str(term), first, second)


def count_cells(term: Term, dataset: xr.Dataset) -> int:
    """How many measured numbers a term reads; what was measured of many examples is one. Names are checked as in reading."""
    read_term(term, dataset)
    both = (term.select, {**term.select, **term.minus}) if term.minus else (term.select,)
    found = [_select(term, dataset, select).value.notnull() for select in both]
    return sum(int(each.any([dim for dim in each.dims if dim in EXAMPLES]).sum()) for each in found)


def _read_cell(term: Term, dataset: xr.Dataset, select: Mapping[str, Any]) -> Quantity:
    cells = _select(term, dataset, select)
    unit = term.unit or _guess_unit(term.variable, dataset)
    for word, dim in term.reduce:
        if dim not in cells.value.dims:
            held = ", ".join(map(str, cells.value.dims)) or "nothing"
            raise BindscopeError(
                f"reduce: '{word} over {dim}', but '{term.variable}' is left with {held} after select."
            )
        cells = _mean_of_examples(cells, dim, unit) if _is_sample(cells, word, dim) else _reduce(cells, word, dim)
    if cells.value.dims:
        left = ", ".join(f"{dim} ({size})" for dim, size in cells.value.sizes.items())
        raise BindscopeError(
            f"'{term.variable}' still varies over {left}; select one of each, or reduce it, as in "
            f'reduce = ["max over {cells.value.dims[0]}"].'
        )
    n = None if cells.n is None or not np.isfinite(cells.n) else int(cells.n)
    low, high = float(cells.low), float(cells.high)
    if low != low or high != high:
        return Quantity(str(term), float(cells.value), n=n, unit=unit)
    return Quantity(str(term), float(cells.value), low, high, n, unit)


def _select(term: Term, dataset: xr.Dataset, select: Mapping[str, Any]) -> _Cells:
    value = _variable(term.variable, dataset)
    stem = term.variable.removesuffix("_fraction")
    low, high = (
        dataset[f"{stem}_{end}"] if f"{stem}_{end}" in dataset else xr.full_like(value, np.nan, float) for end in ENDS
    )
    count = _count(term, dataset, value)
    if term.n is not None:
        low, high = _wilson(term, value, cast(xr.DataArray, count))
    cells = {"value": value, "low": low, "high": high, **({} if count is None else {"n": count})}
    chosen = xr.Dataset({name: array.astype(float) for name, array in cells.items()})
    for dim, wanted in select.items():
        if dim not in value.dims:
            known = suggest_nearest(dim, map(str, value.dims)) if value.dims else " It is a single number."
            raise BindscopeError(f"select: '{term.variable}' does not vary over '{dim}'.{known}")
        chosen = chosen.isel({dim: _find(dim, wanted, dataset)})
    return _Cells(chosen["value"], chosen["low"], chosen["high"], chosen.get("n"))


def _variable(name: str, dataset: xr.Dataset) -> xr.DataArray:
    """A variable, or a number among the attributes."""
    numbers = _numbers(dataset)
    if name in dataset.data_vars:
        if dataset[name].dtype.kind not in "biuf":
            raise BindscopeError(f"variable: '{name}' holds text, not numbers.")
        return dataset[name]
    if name in numbers:
        return xr.DataArray(numbers[name])
    known = [str(each) for each in dataset.data_vars if not str(each).endswith(("_low", "_high"))]
    raise BindscopeError(f"variable: there is no '{name}'.{suggest_nearest(name, [*known, *numbers])}")


def _count(term: Term, dataset: xr.Dataset, value: xr.DataArray) -> xr.DataArray | None:
    if isinstance(term.n, int):
        return xr.full_like(value, term.n, float)
    name = term.n or "n"
    if name in dataset.data_vars and set(dataset[name].dims) <= set(value.dims):
        return dataset[name].astype(float).broadcast_like(value)
    if term.n is None:
        return None
    if name in _numbers(dataset):
        return xr.full_like(value, _numbers(dataset)[name], float)
    varies = ", ".join(map(str, _variable(name, dataset).dims))  # refused where there is none of that name
    raise BindscopeError(f"n: '{name}' counts by {varies}, and '{term.variable}' does not vary over that.")


def _numbers(dataset: xr.Dataset) -> dict[str, float]:
    """The attributes that are numbers."""
    kinds = (int, float, np.integer, np.floating)
    return {str(key): float(each) for key, each in dataset.attrs.items() if isinstance(each, kinds)}


def _wilson(term: Term, value: xr.DataArray, n: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    known = value.where(np.isfinite(value))
    if bool((known < 0).any() or (known > 1).any()):
        raise BindscopeError(f"n: '{term.variable}' is no fraction, so a count gives it no interval.")
    low, high = wilson_interval(known.fillna(0).values * n.values, n.values)
    return tuple(value.copy(data=end).where(np.isfinite(value)) for end in (low, high))  # type: ignore[return-value]


def _find(dim: str, wanted: Any, dataset: xr.Dataset) -> int | list[int]:
    """Indices of one coordinate, of a list of them, of ``first`` or ``last``, or of a range ``{from = 1, to = 3}``."""
    known = dataset[dim].values if dim in dataset.coords else np.arange(dataset.sizes[dim])
    if isinstance(wanted, Mapping):
        inside = np.ones(len(known), bool)
        if known.dtype.kind not in "iuf":
            raise BindscopeError(f"select: '{dim}' has names, not numbers, so it has no range.")
        if "from" in wanted:
            inside &= known >= wanted["from"]
        if "to" in wanted:
            inside &= known <= wanted["to"]
        if not inside.any():
            raise BindscopeError(f"select: no {dim} lies in that range; there are {known[0]} to {known[-1]}.")
        return [int(index) for index in np.flatnonzero(inside)]
    if isinstance(wanted, list):
        return [_find_one(dim, each, known) for each in wanted]
    return _find_one(dim, wanted, known)


def _find_one(dim: str, wanted: Any, known: np.ndarray) -> int:
    if wanted in ("first", "last") and wanted not in known:
        return 0 if wanted == "first" else len(known) - 1
    found = [index for index, each in enumerate(known.tolist()) if each == wanted and not isinstance(wanted, bool)]
    if not found:
        raise BindscopeError(f"select: there is no {dim} {wanted!r}.{suggest_nearest(str(wanted), map(str, known))}")
    return found[0]


def _is_sample(cells: _Cells, word: str, dim: str) -> bool:
    """Whether a mean is one over examples, whose spread gives the interval."""
    return word == "mean" and dim in EXAMPLES and not bool(np.isfinite(cells.low).any())


def _mean_of_examples(cells: _Cells, dim: str, unit: Unit) -> _Cells:
    """The mean of what is known of each cell: Wilson's interval of answers that are right or wrong, else Student's."""
    value = cells.value.transpose(..., dim)
    n = value.notnull().sum(dim).astype(float)
    mean = value.mean(dim)
    known = value.values[np.isfinite(value.values)]
    if np.isin(known, (0.0, 1.0)).all():
        low, high = wilson_interval((mean.fillna(0) * n).values, n.values)
    else:
        spread = np.apply_along_axis(_student, -1, value.values)  # [..., 2]
        low, high = spread[..., 0], spread[..., 1]
    return _Cells(mean, mean.copy(data=low).where(n > 0), mean.copy(data=high).where(n > 0), n)


def _student(values: np.ndarray) -> np.ndarray:
    known = values[np.isfinite(values)]
    return np.array(student_interval(known) if len(known) > 1 else (np.nan, np.nan))


def _reduce(cells: _Cells, word: str, dim: str) -> _Cells:
    """Maximum, minimum or mean of cells that may share their examples.

    That the highest of k cells reaches something needs intervals that hold for all k at once (Bonferroni); that it
    stays below something needs every cell to, each by its own. So the interval of a maximum goes from the highest
    widened lower end to the highest upper end, and that of a minimum likewise. The ends of a mean are the means of the
    ends, which is wide enough however the cells depend on each other.
    """
    if word == "mean":
        count = None if cells.n is None else cells.n.sum(dim)
        low, high = (end.mean(dim, skipna=not _gaps(cells)) for end in (cells.low, cells.high))
        return _Cells(cells.value.mean(dim), low, high, count)
    k = np.maximum(cells.value.notnull().sum(dim), 1)
    factor = xr.apply_ufunc(np.vectorize(lambda of: normal_quantile(1 - 0.05 / of) / normal_quantile(0.95)), k)
    sign = 1.0 if word == "max" else -1.0
    near, far = (cells.low, cells.high) if word == "max" else (cells.high, cells.low)
    near = cells.value - (cells.value - near) * factor
    best = (sign * cells.value).fillna(-np.inf).argmax(dim)
    gaps = _gaps(cells)
    value, near, far = cells.value.isel({dim: best}), _extreme(near, sign, dim), _extreme(far, sign, dim)
    near, far = (each.where(not gaps) for each in (near, far))
    low, high = (near, far) if word == "max" else (far, near)
    if bool((cells.low.min() >= 0) & (cells.high.max() <= 1)):
        low, high = low.clip(0, 1), high.clip(0, 1)
    return _Cells(value, low, high, None if cells.n is None else cells.n.isel({dim: best}))


def _extreme(ends: xr.DataArray, sign: float, dim: str) -> xr.DataArray:
    return sign * (sign * ends).max(dim)


def _gaps(cells: _Cells) -> bool:
    """Whether some measured cell has no interval."""
    return bool((np.isfinite(cells.value) & ~np.isfinite(cells.low + cells.high)).any())


def _guess_unit(name: str, dataset: xr.Dataset) -> Unit:
    if name in ("step", "first_step", "last_step"):
        return "step"
    values = np.asarray(_variable(name, dataset).values, float)
    known = values[np.isfinite(values)]
    inside = bool(((known >= 0) & (known <= 1)).all())
    return "fraction" if inside and not name.endswith(NO_FRACTIONS) else "1"


def _cannot_fail(term: Term) -> bool:
    return (term.at_least is None or term.at_least <= 0) and (term.at_most is None or term.at_most >= 1)


def _select_in_words(select: Mapping[str, Any]) -> str:
    return ", ".join(f"{dim} {_value_in_words(value)}" for dim, value in select.items())


def _value_in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{word} {end}" for word, end in value.items())
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)
