"""Behaviour told apart by an attribute of the program: accuracy, where predictions come from, which rules they follow.

>>> by_depth = behaviour_by(predict_answers(model, batch), "depth")
>>> by_depth.accuracy.sel(depth=2), by_depth.prediction_source.sel(depth=2, source="line 1")

A rule that agrees with the chain on a program says nothing about which of the two the model follows. So each rule's
agreement is also given on the programs where it is wrong (``followed_where_wrong``), and any table can be limited to
the programs on which line 1, position and chain all disagree (``predictions.select("conflict")``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.binding.attributes import ATTRIBUTES, check_attribute
from bindscope.measures.binding.predictions import Predictions
from bindscope.measures.stats.fractions import CONFIDENCE, count_variable, fraction_variables

NO_LINE = "none"


def behaviour_by(predictions: Predictions, by: str = "depth") -> xr.Dataset:
    """All fractions with intervals over the attribute ``by``, its values in order.

    ``accuracy`` and ``n`` (by); ``prediction_source`` (by, source): the line whose constant was given; ``agreement``,
    ``rule_accuracy``, ``n_rule`` (by, rule) where the rule says something, and ``followed_where_wrong``,
    ``n_rule_wrong`` (by, rule) where what it says is not the answer.
    """
    by = check_attribute(by)
    if not len(predictions):
        raise BindscopeError("behaviour: no question was given.")
    values, group = np.unique(predictions.attributes[by], return_inverse=True)

    def count(mask: np.ndarray) -> np.ndarray:
        return np.bincount(group[mask], minlength=len(values))  # [group]

    n = count(np.ones(len(predictions), bool))
    n_lines = int(predictions.attributes["lines"].max())
    lines = [*range(1, n_lines + 1), 0]
    sources = np.stack([count(predictions.sources == line) for line in lines], 1)  # [group, source]
    variables = {
        "n": count_variable([by], n),
        **fraction_variables("accuracy", [by], count(predictions.right), n),
        **fraction_variables("prediction_source", [by, "source"], sources, n[:, None]),
        **_rule_variables(predictions, by, count),
    }
    names = [*(f"line {line}" for line in lines[:-1]), NO_LINE]
    dataset = xr.Dataset(variables, {by: values, "source": names, "rule": list(predictions.rules)})
    dataset[by].attrs["description"] = ATTRIBUTES[by]
    dataset.attrs = {
        "title": f"behaviour by {by.replace('_', ' ')}",
        "n": len(predictions),
        "confidence": CONFIDENCE,
        "source_means": "the earliest line that assigns the predicted digit; none: no line does",
    }
    return dataset


def behaviour_by_each(predictions: Predictions, rule: str = "line_1") -> xr.Dataset:
    """One row (``group``) for each value of each attribute that varies: ``accuracy``, ``agreement`` with a rule and how
    often it is ``followed_where_wrong``, with intervals and counts.

    >>> table = behaviour_by_each(predictions)
    >>> table.accuracy[table.attribute == "depth"]
    """
    parts = []
    for name, values in predictions.attributes.items():
        if np.ptp(values) == 0:
            continue
        part = behaviour_by(predictions, name).sel(rule=rule, drop=True).drop_dims("source").rename({name: "value"})
        part = part.assign_coords(attribute=("value", [name] * part.sizes["value"]))
        parts.append(part.rename_dims(value="group").reset_index("value"))
    if not parts:
        raise BindscopeError("behaviour: every attribute has the same value in all questions.")
    joined = xr.concat(parts, "group", combine_attrs="drop_conflicts")
    joined.attrs = {"title": "behaviour by attribute", "n": len(predictions), "confidence": CONFIDENCE, "rule": rule}
    return joined


def _rule_variables(predictions: Predictions, by: str, count: Callable[[np.ndarray], np.ndarray]) -> dict:
    """Agreement with each rule, and how good the rule is, over (by, rule)."""

    def table(mask: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return np.stack([count(mask(says)) for says in predictions.rules.values()], 1)  # [group, rule]

    predicted, answers = predictions.predicted, predictions.answers
    n_rule = table(lambda says: says >= 0)
    n_wrong = table(lambda says: (says >= 0) & (says != answers))
    followed = table(lambda says: (says >= 0) & (says == predicted))
    astray = table(lambda says: (says >= 0) & (says != answers) & (says == predicted))
    dims = [by, "rule"]
    return {
        "n_rule": count_variable(dims, n_rule),
        "n_rule_wrong": count_variable(dims, n_wrong),
        **fraction_variables("agreement", dims, followed, n_rule),
        **fraction_variables("rule_accuracy", dims, n_rule - n_wrong, n_rule),
        **fraction_variables("followed_where_wrong", dims, astray, n_wrong),
    }
