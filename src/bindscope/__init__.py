"""Bindscope: a laboratory for how a transformer learns to bind variables to values and compute with them.

>>> run = bindscope.open_run("binding-laptop")
>>> run.trajectory().plot()
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "open_run"]


def __getattr__(name: str) -> Any:
    """``open_run`` is looked up when it is first asked for: importing Bindscope alone imports nothing heavy."""
    if name == "open_run":
        return import_module("bindscope.notebook").open_run
    raise AttributeError(f"module 'bindscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
