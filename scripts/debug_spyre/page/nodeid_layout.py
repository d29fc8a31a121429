"""Node ids laid out for reading: path, function, parameters; grouped by function, equal parameters told apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?")


@dataclass(frozen=True, slots=True)
class NodeId:
    """One node id in pieces that may break between them; `params` are (text, dim)."""

    whole: str
    path: tuple[str, ...]
    function: str
    params: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The ids of one file::function; `prefix` + the parameters of an id is the whole id.

    `ids` are as they are shown, `nodeids` the same as the run gave them: two of these may look alike when masked.
    """

    prefix: str
    path: tuple[str, ...]
    function: str
    ids: tuple[NodeId, ...]
    nodeids: tuple[str, ...]


def split(nodeid: str) -> tuple[str, str, str]:
    """(path with its `::`, function, parameters with their brackets) of a node id."""
    head, bracket, tail = nodeid.partition("[")
    params = bracket + tail
    where, separator, function = head.rpartition("::")
    if not separator:
        return "", head, params
    return where + separator, function, params


def path_parts(path: str) -> tuple[str, ...]:
    """A path in pieces that end with / or ::."""
    parts: list[str] = []
    start = position = 0
    while position < len(path):
        step = 2 if path.startswith("::", position) else 1
        if step == 2 or path[position] == "/":
            parts.append(path[start : position + step])
            start = position + step
        position += step
    if start < len(path):
        parts.append(path[start:])
    return tuple(parts)


def node_id(nodeid: str) -> NodeId:
    """A node id that stands alone."""
    path, function, params = split(nodeid)
    return NodeId(nodeid, path_parts(path), function, ((params, False),) if params else ())


def natural(nodeid: str) -> tuple[tuple[object, ...], str]:
    """A key by which numbers in ids sort as numbers: 64 before 128, 0.25 before 0.5."""
    parts: list[object] = []
    end = 0
    for match in _NUMBER.finditer(nodeid):
        whole = match[1].lstrip("0")  # compared by length, then as text: no number is too long
        parts += [nodeid[end : match.start()], (len(whole), whole, match[2] or "")]
        end = match.end()
    return (*parts, nodeid[end:]), nodeid


def groups(nodeids: Iterable[str], say: Callable[[str], str] = str) -> tuple[Group, ...]:
    """The ids grouped by file::function as `say` shows them, in the order of their first appearance."""
    found: dict[str, list[tuple[str, str]]] = {}
    for nodeid in nodeids:
        shown = say(nodeid)
        path, function, _ = split(shown)
        found.setdefault(path + function, []).append((shown, nodeid))
    return tuple(_group(prefix, pairs) for prefix, pairs in found.items())


def _group(prefix: str, pairs: list[tuple[str, str]]) -> Group:
    ids = [shown for shown, _ in pairs]
    path, function, _ = split(ids[0])
    params = [split(nodeid)[2] for nodeid in ids]
    shown = _tell_apart(params)
    parts = path_parts(path)
    return Group(
        prefix,
        parts,
        function,
        tuple(NodeId(nodeid, parts, function, pieces) for nodeid, pieces in zip(ids, shown, strict=True)),
        tuple(nodeid for _, nodeid in pairs),
    )


def _tell_apart(params: list[str]) -> list[tuple[tuple[str, bool], ...]]:
    """Each one's pieces with dim = equal in all of them; only where all have the same number of parameters."""
    words = [text.split("-") for text in params]
    if len(params) < 2 or len({len(w) for w in words}) != 1 or len(words[0]) < 2:
        return [((text, False),) if text else () for text in params]
    equal = [len({w[i] for w in words}) == 1 for i in range(len(words[0]))]
    if all(equal):
        return [((text, False),) for text in params]
    return [_merge(w, equal) for w in words]


def _merge(words: list[str], equal: list[bool]) -> tuple[tuple[str, bool], ...]:
    pieces: list[tuple[str, bool]] = []
    last = len(words) - 1
    for index, (word, dim) in enumerate(zip(words, equal, strict=True)):
        text = word + ("-" if index < last else "")
        if pieces and pieces[-1][1] == dim:
            pieces[-1] = (pieces[-1][0] + text, dim)
        else:
            pieces.append((text, dim))
    return tuple(pieces)
