"""A metric of one's own: any function of logits that gives one number a pair.

    def source_probability(patched, base, source, answers):
        chosen = answers.source[:, None]
        return patched.softmax(-1).gather(-1, chosen)[:, 0]

    >>> head_grid(model, contrast, metric=source_probability).source_probability.mean("pair")

``patched``, ``base`` and ``source`` are the logits [pair, output] of the changed run, the base run and the source run;
``answers.base`` and ``answers.source`` the true answers [pair] of both programs. A grid is measured in parts, so a pair's
number may depend on nothing but its own row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.metrics import METRICS
from bindscope.own_files import explain, load_named

OPTION = "--metric"
TAKEN = ("layer", "head", "position", "pair", "step", "receiver", "n")  # what else a dataset of outcomes may hold


class Answers(NamedTuple):
    """The true answers [pair] of the base and of the source programs."""

    base: Tensor
    source: Tensor


Function = Callable[[Tensor, Tensor, Tensor, Answers], Tensor]


@dataclass(frozen=True)
class OwnMetric:
    """A function with its name in datasets and, if it stands in a file, where."""

    function: Function
    name: str
    location: str = ""

    @torch.no_grad()
    def measure(self, patched: Tensor, base: Tensor, source: Tensor, answers: Answers) -> Tensor:
        """Its numbers [..., pair] for changed logits [..., pair, output]; the others are [pair, output]."""
        cells = patched.reshape(-1, *patched.shape[-2:])
        values = torch.stack([self._measure_cell(cell, base, source, answers) for cell in cells])  # [cell, pair]
        one = Answers(answers.base[:1], answers.source[:1])
        alone = self._measure_cell(cells[0, :1], base[:1], source[:1], one)
        if not torch.allclose(alone, values[0, :1], rtol=1e-3, atol=1e-4):
            raise self._refuse("a pair's number changes with the pairs beside it; let it depend on its own row alone")
        return values.reshape(patched.shape[:-1])

    def _measure_cell(self, patched: Tensor, base: Tensor, source: Tensor, answers: Answers) -> Tensor:
        copies = (patched.clone(), base.clone(), source.clone(), Answers(*(each.clone() for each in answers)))
        try:
            values = self.function(*copies)  # on copies: what it changes in place, the next cell does not see
        except Exception as problem:
            code = getattr(self.function, "__code__", None)
            reason = explain(problem, code.co_filename if code else None)
            raise BindscopeError(f"{self.where} failed{reason}") from problem
        return self._check(values, len(base))

    def _check(self, values: Any, n_pairs: int) -> Tensor:
        wanted = f"it must return a tensor of one number for each of {n_pairs} pairs, and it returned"
        if not isinstance(values, Tensor):
            raise self._refuse(f"{wanted} {_in_words(values)}")
        if values.shape != (n_pairs,):
            raise self._refuse(f"{wanted} one of shape {list(values.shape)}")
        if values.is_complex():
            raise self._refuse(f"{wanted} complex numbers")
        numbers = values if values.is_floating_point() else values.float()
        wrong = ~numbers.float().isfinite()
        if wrong.any():
            found = float(numbers[wrong][0])
            raise self._refuse(f"{wanted} {found} for {int(wrong.sum())} of them; give every pair a finite number")
        return numbers

    def _refuse(self, problem: str) -> BindscopeError:
        return BindscopeError(f"{self.where}: {problem}.")

    @property
    def where(self) -> str:
        """How sentences name it."""
        return self.location or f"metric '{self.name}'"


def own_metric(given: OwnMetric | Function | None) -> OwnMetric | None:
    """A function as a metric; a metric, or none, as it is."""
    if given is None or isinstance(given, OwnMetric):
        return given
    if not callable(given):
        raise BindscopeError(f"metric: a function of logits is needed, got {_in_words(given)}.")
    name = getattr(given, "__name__", "")
    if not name.isidentifier():
        raise BindscopeError("metric: a function with a name is needed, to call its numbers by; define it with def.")
    return _named(given, name, _find_location(given, name))


def load_metric(location: str) -> OwnMetric:
    """The metric in a file, ``PATH.py:NAME``, or in a module, ``module:NAME``.

    >>> load_metric("examples/metrics.py:source_probability").name
    'source_probability'
    """
    found = load_named(location, OPTION, "function", inspect.isfunction)
    return _named(found, location.rpartition(":")[2], location)


def _named(function: Function, name: str, location: str) -> OwnMetric:
    metric = OwnMetric(function, name, location)
    if name in METRICS:
        raise BindscopeError(
            f"{metric.where}: a metric '{name}' comes with Bindscope already; give this one another name."
        )
    if name in TAKEN or name.endswith(("_low", "_high")):
        raise BindscopeError(f"{metric.where}: '{name}' names something else in results; choose another name.")
    return metric


def _find_location(function: Any, name: str) -> str:
    """Where a command would find the function; empty for one that was typed into a notebook, or made inside another."""
    code = getattr(function, "__code__", None)
    if code is None or function.__qualname__ != name or not code.co_filename.endswith(".py"):
        return ""
    return f"{code.co_filename}:{name}"


def _in_words(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
