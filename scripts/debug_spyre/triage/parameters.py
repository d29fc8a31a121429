"""What a test's id says about its parameters: values, numbers, shapes, each under a name that all cases share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from debug_spyre.triage.name_families import values_in_name
from debug_spyre.triage.nodeids import base_and_parameters

Value = str | float
_PAIR = re.compile(r"([A-Za-z_]\w*) ?= ?(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)\b")
_DIMS = re.compile(r"(?<![\d.])(\d+(?:x\d+)+)(?![\d.])")
_LIST = re.compile(r"[\[(](\d+(?:, ?\d+)+,?)[\])]")
_WORD_NUMBER = re.compile(r"([A-Za-z_]+)[_(]?(-?\d+)\)?$")
_NUMBER_WORD = re.compile(r"(\d+)([A-Za-z]+)$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?$")
_SPLIT = re.compile(r"-(?![^\[(]*[\])])")


def components(parameters: str) -> list[str]:
    """The parameters of an id, cut at the hyphens between them (not inside brackets, not a minus sign)."""
    raw = _SPLIT.split(parameters) if len(parameters) < 2000 else [parameters]
    merged: list[str] = []
    for part in raw:
        if merged and (not merged[-1] or re.search(r"\de$", merged[-1])):
            merged[-1] = f"{merged[-1]}-{part}"
        else:
            merged.append(part)
    return merged


def features(nodeid: str, names: Sequence[str] = ()) -> dict[str, Value]:
    """Named values of one test; a parameter without a name is called by its place in the id."""
    base, parameters = base_and_parameters(nodeid)
    found: dict[str, Value] = values_in_name(base)
    if parameters is None:
        return found
    parts = components(parameters)
    for place, part in enumerate(parts):
        named = place < len(names) <= len(parts)
        _one(found, part, names[place] if named else f"parameter {place + 1}")
    return found


def _one(found: dict[str, Value], part: str, name: str) -> None:
    if _NUMBER.fullmatch(part):
        found[name] = float(part)
        return
    found[name] = part
    for key, value in _PAIR.findall(part):
        found[key] = float(value)
    shape = _DIMS.search(part) or _LIST.search(part)
    if shape:
        sizes = [float(n) for n in re.findall(r"\d+", shape[1])]
        found[f"{name} rank"] = float(len(sizes))
        for index, size in enumerate(sizes[:8]):
            found[f"{name} dim {index}"] = size
        found[f"{name} last dim"] = sizes[-1]
    elif match := _WORD_NUMBER.fullmatch(part):
        found[match[1].strip("_")] = float(match[2])
    elif match := _NUMBER_WORD.fullmatch(part):
        found[match[2]] = float(match[1])


def numbers_of(nodeid: str) -> tuple[float, ...]:
    """All numbers of the id's parameters; small ones make a narrow test."""
    parameters = base_and_parameters(nodeid)[1] or ""
    return tuple(abs(float(n)) for n in re.findall(r"\d+(?:\.\d+)?", parameters)[:40])
