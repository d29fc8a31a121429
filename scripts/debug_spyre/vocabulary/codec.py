"""The one way between frozen dataclasses and JSON: names stay, tuples are lists, enums their words.

JSON has no NaN and no infinity: such numbers are the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class FormError(ValueError):
    """The JSON has not the form of the class: a key is missing, or a value has another type."""


def to_json(value: Any) -> Any:
    """The value as plain JSON data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in shape_of(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    return str(value) if isinstance(value, Path) else value


def from_json(cls: type[T], data: Any, where: str = "") -> T:
    """The object of this class that `to_json` made the data from. Keys that the class does not have are ignored.

    Raises:
        FormError: no object, a key without a default is missing, or a value has another type.
    """
    where = where or cls.__name__
    if not isinstance(data, dict):
        raise FormError(f"{where} is not an object")
    values = {}
    for name, (hint, required) in shape_of(typing.cast("type", cls)).items():
        if name in data:
            values[name] = checked(data[name], hint, f"{where}.{name}")
        elif required:
            raise FormError(f"{where} has no {name}")
    return cls(**values)


@cache
def shape_of(cls: type) -> dict[str, tuple[Any, bool]]:
    """Each field's type, and whether it has to be given."""
    hints = typing.get_type_hints(cls)
    missing = dataclasses.MISSING
    return {
        f.name: (hints[f.name], f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(cls)
        if f.init
    }


def checked(value: Any, hint: Any, where: str) -> Any:
    """The value as this type hint wants it.

    Raises:
        FormError: it has another type.
    """
    if hint is Any:
        return value
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, typing.get_args(hint), where)
    if origin is tuple:
        return _items(value, typing.get_args(hint), where)
    if origin is dict:
        if not isinstance(value, dict):
            raise FormError(f"{where} is not an object")
        return value
    if hint is type(None):
        if value is not None:
            raise FormError(f"{where} is not null")
        return None
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast("type", hint), value, where)
    if hint is float:
        return _number(value, where)
    if issubclass(hint, Enum) or hint is Path:
        try:
            return hint(value)
        except (ValueError, TypeError) as error:
            raise FormError(f"{where} is {value!r}") from error
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise FormError(f"{where} is {type(value).__name__}, not {getattr(hint, '__name__', hint)}")
    return value


def _one_of(value: Any, options: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in options:
        return None
    for option in options:
        try:
            return checked(value, option, where)
        except FormError:
            if option is options[-1] or len([o for o in options if o is not type(None)]) == 1:
                raise
    raise FormError(f"{where} is {type(value).__name__}")


def _items(value: Any, args: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FormError(f"{where} is not a list")
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(checked(item, args[0], where) for item in value)
    if len(value) != len(args):
        raise FormError(f"{where} has {len(value)} items, not {len(args)}")
    return tuple(checked(item, hint, where) for item, hint in zip(value, args, strict=True))


def _number(value: Any, where: str) -> float:
    if isinstance(value, str) and value in {"nan", "inf", "-inf"}:
        return float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FormError(f"{where} is {type(value).__name__}, not float")
    return float(value)
