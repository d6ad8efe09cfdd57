"""Every preset by name, of all families. Data only: importing this needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.families import Family, UnknownFamily, all_families, find_family
from bindscope.studies.framework.preset import Preset


class _Presets(Mapping[str, Preset]):
    """The presets of all families, those that were named a moment ago included."""

    def __getitem__(self, name: str) -> Preset:
        return _by_name()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_by_name())

    def __len__(self) -> int:
        return len(_by_name())


PRESETS: Mapping[str, Preset] = _Presets()


def find_preset(name: str) -> Preset:
    """The preset of that name.

    >>> find_preset("binding-tiny").config.task.lines
    6
    """
    known = _by_name()
    if name not in known:
        raise BindscopeError(f"there is no preset '{name}'.{suggest_nearest(name, known)}")
    return known[name]


def find_family_preset(name: str) -> Preset:
    """A preset by its own name, or the one that stands for a family: binding, assign-add, templates, text or another."""
    known = _by_name()
    if name in known:
        return known[name]
    try:
        return standing_preset(find_family(name))
    except UnknownFamily:
        names = {*known, *(family.option for family in all_families())}
        raise BindscopeError(f"there is no preset or family '{name}'.{suggest_nearest(name, names)}") from None


def standing_preset(family: Family) -> Preset:
    """The preset that stands for a family: the one it names, or its first."""
    presets = {preset.name: preset for preset in family.presets()}
    if not presets:
        raise BindscopeError(f"the family '{family.name}' has no presets; its class can give some with 'presets'.")
    return presets[family.preset or next(iter(presets))]


def _by_name() -> dict[str, Preset]:
    return {preset.name: preset for family in all_families() for preset in family.presets()}
