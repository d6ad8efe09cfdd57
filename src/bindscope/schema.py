"""Frozen dataclasses to plain mappings and back, strictly: an unknown key or a wrong type is an error that says where.

>>> from_mapping(AdamW, {"lr": 1e-3, "weight_decy": 0.1}, where="optimizer")
BindscopeError: optimizer: unknown key 'weight_decy'. Did you mean 'weight_decay'?
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from bindscope.errors import BindscopeError, suggest_nearest

T = TypeVar("T")


@dataclass(frozen=True)
class ByFamily:
    """Marks a field that holds one of an open set of dataclasses, told apart by the key ``family``.

    >>> task: Annotated[Task, ByFamily(find_task_type)]
    """

    find: Callable[[str], type]  # the dataclass of a family; raises for one that is not known


def to_mapping(value: Any) -> Any:
    """Plain dicts, lists and scalars, ready for JSON. A dataclass with a ``family`` class variable keeps it as a key."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_mapping(getattr(value, f.name)) for f in dataclasses.fields(value)}
        family = getattr(type(value), "family", None)
        return {"family": family, **fields} if family else fields
    if isinstance(value, Mapping):
        return {str(k): to_mapping(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_mapping(v) for v in value]
    return value


def from_mapping(cls: type[T], mapping: Any, where: str = "config") -> T:
    """Build ``cls`` from a mapping; keys not among its fields are refused with the nearest known one."""
    if not isinstance(mapping, Mapping):
        raise BindscopeError(f"{where}: expected a table of settings, got {mapping!r}.")
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    values = {k: v for k, v in mapping.items() if not (k == "family" and "family" not in fields)}
    for key in values:
        if key not in fields:
            raise BindscopeError(f"{where}: unknown key '{key}'.{suggest_nearest(key, fields)}")
    missing = [
        name
        for name, field in fields.items()
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise BindscopeError(f"{where}: missing key '{missing[0]}'.")
    return cls(**{k: convert_value(hints[k], v, f"{where}.{k}") for k, v in values.items()})


def convert_value(hint: Any, value: Any, where: str) -> Any:
    """Check ``value`` against a type hint of the kinds configs use, building nested dataclasses and tuples."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _convert_by_family(args, value, where)
    if origin in (types.UnionType, typing.Union):
        return _convert_union(args, value, where)
    if origin is Literal:
        if value not in args:
            raise BindscopeError(f"{where}: {value!r} is not a choice.{suggest_nearest(str(value), map(str, args))}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise BindscopeError(f"{where}: expected a list, got {value!r}.")
        item_hints = [args[0]] * len(value) if len(args) == 2 and args[1] is Ellipsis else list(args)
        if len(item_hints) != len(value):
            raise BindscopeError(f"{where}: expected {len(item_hints)} values, got {len(value)}.")
        return tuple(convert_value(h, v, f"{where}[{i}]") for i, (h, v) in enumerate(zip(item_hints, value)))
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else from_mapping(hint, value, where)  # type: ignore[arg-type]
    return _convert_scalar(hint, value, where)


def _convert_by_family(args: tuple[Any, ...], value: Any, where: str) -> Any:
    finders = [extra for extra in args[1:] if isinstance(extra, ByFamily)]
    if not finders:
        return convert_value(args[0], value, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return value
    if not isinstance(value, Mapping):
        raise BindscopeError(f"{where}: expected a table of settings, got {value!r}.")
    return from_mapping(finders[0].find(str(value.get("family"))), value, where)


def _convert_union(args: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in args:
        return None
    families = {a.family: a for a in args if hasattr(a, "family")}
    if families and isinstance(value, Mapping):
        family = value.get("family")
        if family not in families:
            raise BindscopeError(f"{where}: unknown family {family!r}.{suggest_nearest(str(family), families)}")
        return from_mapping(families[family], value, where)
    if any(dataclasses.is_dataclass(a) and isinstance(value, a) for a in args):  # type: ignore[arg-type]
        return value
    choices = [a for a in args if a is not type(None)]
    for choice in choices[:-1]:
        try:
            return convert_value(choice, value, where)
        except BindscopeError:
            continue
    return convert_value(choices[-1], value, where)


def _convert_scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise BindscopeError(f"{where}: expected a finite number, got {value}.")
    if isinstance(hint, type) and (not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool)):
        raise BindscopeError(f"{where}: expected {hint.__name__}, got {value!r}.")
    return value
