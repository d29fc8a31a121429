"""Node ids as pytest prints them: where one ends in a line, its file, its function, its parameters.

Parameter ids may hold blanks, brackets, `::` and ` - `; only brackets that close tell where such an id ends.
"""

from __future__ import annotations

import re

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
