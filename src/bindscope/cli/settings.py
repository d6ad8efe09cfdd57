"""``--set training.optimizer.lr=3e-4``: settings from the command line."""

from __future__ import annotations

from collections.abc import Iterable

from bindscope.errors import BindscopeError


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Dotted keys and their values, still as text: what a value means depends on the setting.

    >>> parse_settings(["training.steps=500", "model.positions=learned"])
    {'training.steps': '500', 'model.positions': 'learned'}
    """
    settings: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise BindscopeError(f"--set {text}: write it as KEY=VALUE, such as --set training.optimizer.lr=3e-4.")
        if key in settings:
            raise BindscopeError(f"--set {key}: given twice; keep one.")
        settings[key] = value.strip()
    return settings
