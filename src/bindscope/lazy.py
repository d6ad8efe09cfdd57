"""A package's short list of public names, each imported when it is first asked for, so that importing stays instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def reexport(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names live in its modules.

    ``names`` says where each is: ``module:attribute``, or the module alone where the attribute has the same name.

    >>> __getattr__, __dir__ = reexport(__name__, {"Transformer": "bindscope.model.transformer"})
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module, _, attribute = names[name].partition(":")
        return getattr(import_module(module), attribute or name)

    return find, lambda: sorted(names)
