"""Which ops and source lines a compiled kernel came from: read from the wrapper that Inductor wrote for its graph.

A wrapper defines each kernel by name. Newer torch-spyre puts a debug handle with the source line on every op of it; older ones leave
the names of the ops in a comment above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

KERNEL = re.compile(r"\bsdsc_\w+|\bspyre_fused_\w+")
_DEFINED = re.compile(r"^(?P<name>\w+) = async_compile\.\w+\('(?P=name)',?(?P<body>.*?)^\)", re.DOTALL | re.MULTILINE)
_HANDLE = re.compile(
    r"DebugHandle\(id=(?P<id>\d+), source=(?:SourceLoc\(file='(?P<file>[^']+)', start_line=(?P<line>\d+)[^)]*\)|None), aten_op='(?P<op>[^']+)'"
)
_COMMENT = re.compile(r"Original ATen: \[(?P<ops>[^\]]*)\](?:(?!^\w).)*?\Z", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """One op of a kernel; `place` is file:line of the code that called it, None where the version does not record it."""

    op: str
    place: str | None = None
    handle: str | None = None


def kernels_in(text: str) -> list[str]:
    """Names of compiled kernels in a text, each once."""
    return list(dict.fromkeys(KERNEL.findall(text)))


def origins(wrapper: str) -> dict[str, tuple[Origin, ...]]:
    """Kernel name to the ops in it, of one wrapper's text."""
    found = {}
    for kernel in _DEFINED.finditer(wrapper):
        handles = [
            Origin(h["op"], f"{h['file']}:{h['line']}" if h["file"] else None, h["id"])
            for h in _HANDLE.finditer(kernel["body"])
        ]
        if not handles:
            above = _COMMENT.search(wrapper[: kernel.start()].rpartition("\n\n")[2])
            handles = [Origin(op.strip()) for op in above["ops"].split(",") if op.strip()] if above else []
        found[kernel["name"]] = tuple(dict.fromkeys(handles))
    return found


def said(name: str, ways: Iterable[tuple[Origin, ...]]) -> str:
    """A kernel in words; several graphs may each have one of that name."""
    texts = [", ".join(dict.fromkeys(f"{o.op} at {o.place}" if o.place else o.op for o in way)) for way in ways]
    texts = [text for text in dict.fromkeys(texts) if text]
    more = f", or {len(texts) - 3} more" if len(texts) > 3 else ""
    return f"kernel {name}: {'; or '.join(texts[:3])}{more}"
