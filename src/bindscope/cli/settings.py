"""``--set training.optimizer.lr=3e-4``: one setting from the command line, its value read as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from bindscope.errors import BindscopeError


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Dotted keys and their values.

    >>> parse_settings(["training.steps=500", "model.positions=learned"])
    {'training.steps': 500, 'model.positions': 'learned'}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise BindscopeError(f"--set {text}: write it as KEY=VALUE, such as --set training.optimizer.lr=3e-4.")
        if key in settings:
            raise BindscopeError(f"--set {key}: given twice; keep one.")
        settings[key] = parse_value(value.strip())
    return settings


def parse_value(text: str) -> Any:
    """A TOML value when it is one, ``none`` for an empty one, and otherwise the text itself, so words need no quotes."""
    if text.lower() in ("none", "null"):
        return None
    if text in ("True", "False"):
        return text == "True"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
