"""A preset as a TOML file of one's own: a preset to start from, and the settings that differ, or all of them.

    preset = "binding-tiny"
    name = "wide"

    [model]
    d_model = 128

``bindscope presets NAME`` prints such a file with every setting of a preset; what is not set is written "none".
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.runs.config import RunConfig, config_to_mapping, override
from bindscope.studies.framework.preset import Preset
from bindscope.studies.framework.presets import find_preset

SUFFIX = ".toml"
MOST_BYTES = 1_000_000


def open_preset(name: str) -> Preset:
    """A preset by its name, or from a TOML file by its path; only what a person typed may be a path.

    >>> open_preset("mine.toml").config.model.d_model
    128
    """
    return read_preset(Path(name)) if name.endswith(SUFFIX) else find_preset(name)


def read_preset(path: Path) -> Preset:
    """The preset that a TOML file describes; whatever it gets wrong is refused with the file's name."""
    table = load_toml(path)
    base = table.pop("preset", None)
    if not isinstance(base, str):
        raise BindscopeError(f'{path}: begin it with the preset to start from, such as preset = "binding-tiny".')
    try:
        start = find_preset(base).config
        config = override(start, {"name": path.stem, **_settings(table, start)})
    except BindscopeError as problem:
        raise BindscopeError(f"{path}: {problem}") from None
    return Preset(config, f"The settings of {path}, which starts from {base}.", base)


def preset_to_toml(preset: Preset) -> str:
    """All settings of a preset as a file that ``read_preset`` reads back."""
    start = f"# {preset.summary}\npreset = {json.dumps(preset.base or preset.name)}\n"
    return start + format_toml(config_to_mapping(preset.config))


def format_toml(settings: Mapping[str, Any], prefix: str = "") -> str:
    """Nested settings as TOML: plain values first, then tables.

    >>> print(format_toml({"seed": 0, "training": {"clip": None}}))
    seed = 0
    <BLANKLINE>
    [training]
    clip = "none"
    """
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    lines = [f"{key} = {json.dumps('none' if v is None else v, ensure_ascii=False)}\n" for key, v in plain.items()]
    tables = [
        f"\n[{prefix}{key}]\n{format_toml(value, f'{prefix}{key}.')}"
        for key, value in settings.items()
        if isinstance(value, dict)
    ]
    return "".join(lines + tables)


def load_toml(path: Path) -> dict[str, Any]:
    """A TOML file as plain data; whatever it gets wrong is refused with its name."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BindscopeError(f"{path}: too large for a file that a person writes.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BindscopeError(f"{path}: cannot be read ({problem.strerror or problem}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BindscopeError(f"{path}: not valid TOML: {problem}.") from None


def _settings(table: Mapping[str, Any], start: RunConfig) -> dict[str, Any]:
    """Dotted names and values; the family of the task is that of the preset and cannot be another."""
    settings = dict(_flatten(table))
    family = settings.pop("task.family", start.task.family)
    if family not in (start.task.family, family_of(start.task).option):
        raise BindscopeError(f"task.family: the preset is of the family '{start.task.family}', not '{family}'.")
    return settings


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
