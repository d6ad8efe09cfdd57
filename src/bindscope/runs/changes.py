"""The inverse of ``override``: which settings, given as text, make one configuration of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.runs.config import RunConfig, config_to_mapping, fit_model, override

_FITTED = ("model.d_vocab", "model.n_positions", "model.d_out")  # which follow the task by themselves


def find_changes(base: RunConfig, config: RunConfig) -> dict[str, str] | None:
    """Settings as text such that ``override(base, changes)`` trains as ``config`` does; None when no text can say it.

    >>> find_changes(base, override(base, {"training.clip": None, "task.lines": 8}))
    {'task.lines': '8', 'training.clip': 'none'}
    """
    if config.training.epochs is not None:  # which say how long to train, whatever the number of steps beside them
        config = replace(config, training=replace(config.training, steps=base.training.steps))
    changes = dict(list_differences(config_to_mapping(base), config_to_mapping(config)))
    if fit_model(config.model, config.task) == config.model:
        changes = {key: text for key, text in changes.items() if key not in _FITTED}
    if "training.steps" in changes and changes.get("training.epochs") == "none":
        del changes["training.epochs"]  # a number of steps takes their place
    try:
        return changes if override(base, changes) == config else None
    except BindscopeError:
        return None


def list_differences(base: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each dotted key under ``prefix`` whose value differs, with the wanted value as text."""
    for key, value in wanted.items():
        before = base.get(key)
        if isinstance(value, Mapping):
            yield from list_differences(before if isinstance(before, Mapping) else {}, value, f"{prefix}{key}.")
        elif key not in base or value != before:
            yield f"{prefix}{key}", _to_text(value)


def _to_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ",".join(map(_to_text, value)) or "()"
    return str(value).lower() if isinstance(value, bool) else str(value)
