"""Node ids laid out for reading: path, function, parameters; grouped by function, equal parameters told apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeId:
    """One node id in pieces that may break between them; `params` are (text, dim)."""

    whole: str
    path: tuple[str, ...]
    function: str
    params: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The ids of one file::function; `prefix` + the parameters of an id is the whole id."""

    prefix: str
    path: tuple[str, ...]
    function: str
    ids: tuple[NodeId, ...]


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


def groups(nodeids: Iterable[str]) -> tuple[Group, ...]:
    """The ids grouped by file::function, in the order of their first appearance."""
    found: dict[str, list[str]] = {}
    for nodeid in nodeids:
        path, function, _ = split(nodeid)
        found.setdefault(path + function, []).append(nodeid)
    return tuple(_group(prefix, ids) for prefix, ids in found.items())


def _group(prefix: str, ids: list[str]) -> Group:
    path, function, _ = split(ids[0])
    params = [split(nodeid)[2] for nodeid in ids]
    shown = _tell_apart(params)
    parts = path_parts(path)
    return Group(
        prefix,
        parts,
        function,
        tuple(NodeId(nodeid, parts, function, pieces) for nodeid, pieces in zip(ids, shown, strict=True)),
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
