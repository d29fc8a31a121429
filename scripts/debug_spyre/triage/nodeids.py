"""Node ids as pytest prints them: where one ends in a line, its file, its function, and what its parameters say, each under a name.

Parameter ids may hold blanks, brackets, `::` and ` - `; only brackets that close tell where such an id ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_SPLIT = re.compile(r"[_-]+")
_DTYPE = re.compile(
    r"(?:b?float|fp|bf|u?int|complex)\d{1,3}|f16|f32|i8|half|double|bool|fp8\w*|float8\w*", re.IGNORECASE
)
_DEVICE = re.compile(r"spyre|cpu|cuda|xpu|privateuse1", re.IGNORECASE)
_RANK = re.compile(r"(\d)[dD]")
_DIMS = re.compile(r"\d+(?:x\d+)+")
_NUMBER = re.compile(r"(neg|m|minus)?(\d+)")
_SIZE = re.compile(r"\d+[bBkKmM]?")


@lru_cache(maxsize=65_536)
def family(function: str) -> str:
    """`file::Class::test_mean_dim` of `file::Class::test_mean_fp32_3d_dim_2`."""
    head, colons, name = function.rpartition("::")
    words = [w for w in _SPLIT.split(name) if w and not _is_value(w)]
    return f"{head}{colons}{'_'.join(words) or name}"


def _is_value(word: str) -> bool:
    return any(p.fullmatch(word) for p in (_DTYPE, _DEVICE, _RANK, _DIMS, _NUMBER, _SIZE))


def values_in_name(function: str) -> dict[str, str | float]:
    """Named values that the function's name carries."""
    name = function.rpartition("::")[2]
    found: dict[str, str | float] = {}
    before = ""
    for word in _SPLIT.split(name):
        if not word:
            continue
        if _DTYPE.fullmatch(word):
            found.setdefault("dtype in the name" if before != "to" else "dtype after to", word)
        elif _DIMS.fullmatch(word):
            _shape(found, word)
        elif match := _RANK.fullmatch(word):
            found.setdefault("rank in the name", float(match[1]))
        elif match := _NUMBER.fullmatch(word):
            value = float(match[2]) * (-1 if match[1] else 1)
            found.setdefault(f"{before} in the name" if before.isalpha() else "number in the name", value)
        before = word if not _is_value(word) or _DTYPE.fullmatch(word) is None else before
    return found


def _shape(found: dict[str, str | float], word: str) -> None:
    sizes = [float(n) for n in word.split("x")]
    if "shape in the name" in found:
        return
    found["shape in the name"] = word
    found["last dim in the name"] = sizes[-1]
    for place, size in enumerate(sizes[:6]):
        found[f"dim {place} in the name"] = size


_HEAD = re.compile(r"[^\s:][^:]*?\.\w{1,5}(?:::[^\s\[:]+)+")
_ANY_HEAD = re.compile(r"[^\s:\[][^:\[]*?(?:::[^\s\[:]+)+")
LONGEST = 4096


def split_nodeid(text: str) -> tuple[str, str] | None:
    """A line that begins with a node id, as (id, what follows); None where it does not begin with one."""
    text = text[:LONGEST]
    head = _HEAD.match(text) or _ANY_HEAD.match(text)
    if head is None:
        return None
    end = head.end()
    if text[end : end + 1] == "[":
        end = _bracket_end(text, end)
        if end < 0:
            return None
    return text[:end], text[end:]


def _bracket_end(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        mark = text[place]
        if mark == "[":
            depth += 1
        elif mark == "]":
            depth -= 1
            if depth <= 0 and (place + 1 == len(text) or text[place + 1] in " \t"):
                return place + 1
    last = text.rfind("]")
    return last + 1 if last > start else -1


def without_marks(text: str) -> str:
    """A summary's text without what a plugin puts between the word and the node id: `[TAGS = ...] [SHAPES = [2, 3]] a.py::t`."""
    rest = text.lstrip()
    while rest[:1] in {"[", "("}:
        close = {"[": "]", "(": ")"}[rest[0]]
        depth, end = 0, -1
        for place, mark in enumerate(rest[:LONGEST]):
            depth += (mark == rest[0]) - (mark == close)
            if depth == 0:
                end = place
                break
        if end < 0 or not rest[end + 1 :].strip():
            return rest
        rest = rest[end + 1 :].lstrip()
    return rest


def candidates(text: str) -> list[str]:
    """All readings of `nodeid[ - message]`, the likeliest first."""
    found = []
    split = split_nodeid(text)
    if split and (not split[1].strip() or split[1].startswith(" - ")):
        found.append(split[0])
    place = text.find(" - ")
    while 0 <= place < LONGEST:
        found.append(text[:place])
        place = text.find(" - ", place + 3)
    found.append(text.rstrip())
    return list(dict.fromkeys(found))


def base_and_parameters(nodeid: str) -> tuple[str, str | None]:
    """`a.py::test_f[x-1]` as ("a.py::test_f", "x-1")."""
    place = nodeid.find("[")
    if place < 0 or not nodeid.endswith("]"):
        return nodeid, None
    return nodeid[:place], nodeid[place + 1 : -1]


def domain(nodeid: str) -> str:
    """The name that pytest puts into a failure's heading: `TestX.test_y[p]`."""
    base, parameters = base_and_parameters(nodeid)
    inside = base.split("::", 1)[1] if "::" in base else base
    inside = inside.replace("::", ".")
    return inside if parameters is None else f"{inside}[{parameters}]"


def file_of(nodeid: str) -> str:
    """The part before the first `::`."""
    return nodeid.split("::", 1)[0]


def function_of(nodeid: str) -> str:
    """The bare function name."""
    return base_and_parameters(nodeid)[0].rsplit("::", 1)[-1]


def from_domain(path: str, title: str) -> str:
    """The node id of a heading `TestX.test_y[p]` in that file."""
    base, bracket, rest = title.partition("[")
    return f"{path}::{base.replace('.', '::')}{bracket}{rest}"


def from_junit(classname: str, name: str, file: str | None) -> str:
    """The node id of a JUnit case: xunit1 names the file, xunit2 only the dotted class name."""
    parts = [part for part in classname.split(".") if part]
    if file:
        module = file.removesuffix(".py").replace("\\", "/").split("/")
        classes = parts[len(module) :] if parts[: len(module)] == module else _classes(parts)
        return "::".join([file, *classes, name])
    if not parts:
        return name.replace(".", "/") + ".py" if re.fullmatch(r"[\w.]+", name) else name
    classes = _classes(parts)
    module = parts[: len(parts) - len(classes)]
    return "::".join(["/".join(module) + ".py", *classes, name])


def _classes(parts: list[str]) -> list[str]:
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if part.startswith("test_") or part.endswith("_test"):
            return parts[place + 1 :]
    first = next((i for i, part in enumerate(parts) if part[:1].isupper()), len(parts))
    return parts[first:]


Value = str | float
_PAIR = re.compile(r"([A-Za-z_]\w*) ?= ?(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)\b")
_DIMS_parameters = re.compile(r"(?<![\d.])(\d+(?:x\d+)+)(?![\d.])")
_LIST = re.compile(r"[\[(](\d+(?:, ?\d+)+,?)[\])]")
_WORD_NUMBER = re.compile(r"([A-Za-z_]+)[_(]?(-?\d+)\)?$")
_NUMBER_WORD = re.compile(r"(\d+)([A-Za-z]+)$")
_NUMBER_parameters = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?$")
_SPLIT_parameters = re.compile(r"-(?![^\[(]*[\])])")


def components(parameters: str) -> list[str]:
    """The parameters of an id, cut at the hyphens between them (not inside brackets, not a minus sign)."""
    raw = _SPLIT_parameters.split(parameters) if len(parameters) < 2000 else [parameters]
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
    if _NUMBER_parameters.fullmatch(part):
        found[name] = float(part)
        return
    found[name] = part
    for key, value in _PAIR.findall(part):
        found[key] = float(value)
    shape = _DIMS_parameters.search(part) or _LIST.search(part)
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
