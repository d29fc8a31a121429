"""The one way between frozen dataclasses and JSON: names stay, tuples are lists, enums their words.

JSON has no NaN and no infinity: such numbers are the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache, partial
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
    try:
        made: T = _object(typing.cast("type", cls), data)
    except FormError as error:
        raise FormError(f"{where or cls.__name__}{error}") from error
    return made


def _object(cls: type, data: Any) -> Any:
    """The object; the text of an error begins behind the name of the class."""
    if not isinstance(data, dict):
        raise FormError(" is not an object")
    values = {}
    for name, check, required in _plan_of(cls):
        if name in data:
            try:
                values[name] = check(data[name])
            except FormError as error:
                raise FormError(f".{name}{error}") from error
        elif required:
            raise FormError(f" has no {name}")
    return cls(**values)


@cache
def _plan_of(cls: type) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """Each field with what checks its value, found once: a journal of 25,000 events asks for it as often."""
    return tuple((name, _checker(hint), required) for name, (hint, required) in shape_of(cls).items())


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


@cache
def _checker(hint: Any) -> Callable[[Any], Any]:
    """What gives a value as this type hint wants it, and raises FormError where it has another type."""
    if hint is Any:
        return lambda value: value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return partial(_one_of, tuple(_checker(x) for x in args if x is not type(None)), type(None) in args)
    if origin is tuple:
        endless = len(args) == 2 and args[1] is Ellipsis
        return partial(_same_items, _checker(args[0])) if endless else partial(_items, tuple(map(_checker, args)))
    if origin is dict or hint is dict:
        return partial(_mapping, None if not args or args[1] is Any else _checker(args[1]))
    if dataclasses.is_dataclass(hint):
        return partial(_object, typing.cast("type", hint))
    if hint is float:
        return _number
    if issubclass(hint, Enum) or hint is Path:
        return partial(_word, hint)
    return partial(_plain, hint)


def _plain(hint: type, value: Any) -> Any:
    if type(value) is hint:
        return value
    raise FormError(f" is {type(value).__name__}, not {hint.__name__}")


def _word(hint: Any, value: Any) -> Any:
    try:
        return hint(value)
    except (ValueError, TypeError) as error:
        raise FormError(f" is {value!r}") from error


def _mapping(check: Callable[[Any], Any] | None, value: Any) -> Any:
    if not isinstance(value, dict):
        raise FormError(" is not an object")
    if check is None:
        return value
    found = {}
    for name, item in value.items():
        try:
            found[name] = check(item)
        except FormError as error:
            raise FormError(f".{name}{error}") from error
    return found


def _one_of(checks: tuple[Callable[[Any], Any], ...], or_none: bool, value: Any) -> Any:
    if value is None and or_none:
        return None
    for check in checks[:-1]:
        try:
            return check(value)
        except FormError:
            continue
    return checks[-1](value)


def _same_items(check: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FormError(" is not a list")
    return tuple(map(check, value))


def _items(checks: tuple[Callable[[Any], Any], ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FormError(" is not a list")
    if len(value) != len(checks):
        raise FormError(f" has {len(value)} items, not {len(checks)}")
    return tuple(check(item) for check, item in zip(checks, value, strict=True))


def _number(value: Any) -> float:
    if isinstance(value, str) and value in {"nan", "inf", "-inf"}:
        return float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FormError(f" is {type(value).__name__}, not float")
    try:
        return float(value)
    except OverflowError as error:
        raise FormError(" is too large for a number") from error
