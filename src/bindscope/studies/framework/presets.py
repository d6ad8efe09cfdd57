"""Every preset by name. Data only: importing this needs no torch."""

from __future__ import annotations

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.studies import assign_add, binding, symbols
from bindscope.studies.framework.preset import Preset
from bindscope.studies.symbols.language import presets as text_presets

PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (*binding.PRESETS, *assign_add.PRESETS, *symbols.PRESETS, *text_presets.PRESETS)
}
FAMILIES = {
    "binding": "binding-laptop",
    "assign-add": "assign-add",
    "templates": "templates-same-different",
    "text": "text-small",
}


def find_preset(name: str) -> Preset:
    """The preset of that name.

    >>> find_preset("binding-tiny").config.task.lines
    6
    """
    if name not in PRESETS:
        raise BindscopeError(f"there is no preset '{name}'.{suggest_nearest(name, PRESETS)}")
    return PRESETS[name]


def find_family_preset(name: str) -> Preset:
    """A preset by its own name, or the one that stands for a family: binding, assign-add, templates or text."""
    known = {*PRESETS, *FAMILIES}
    if name not in known:
        raise BindscopeError(f"there is no preset or family '{name}'.{suggest_nearest(name, known)}")
    return PRESETS[FAMILIES.get(name, name)]
