"""``bindscope presets``: what can be trained."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def show_presets(
    name: str | None = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """List the presets, or print all settings of one.

    Examples:
        bindscope presets
        bindscope presets binding-tiny
        bindscope presets binding-paper --json

    Parameters
    ----------
    name
        Print every setting of this preset, as TOML.
    json
        Print JSON instead.
    """
