"""Bindscope: a laboratory for how a transformer learns to bind variables to values and compute with them.

>>> run = bindscope.open_run("binding-laptop")
>>> run.trajectory().plot()
>>> bindscope.open_study("symbols").curves("same-different").plot()
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "open_run", "open_study", "register_family"]


def __getattr__(name: str) -> Any:
    """What opens things is looked up when it is first asked for: importing Bindscope alone imports nothing heavy."""
    if name in ("open_run", "open_study"):
        return getattr(import_module("bindscope.notebook"), name)
    if name == "register_family":
        return import_module("bindscope.families").register_family
    raise AttributeError(f"module 'bindscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
