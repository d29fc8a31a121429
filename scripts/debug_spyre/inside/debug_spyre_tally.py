"""The tally of a shadowed run: per op and call site the calls, shapes, errors; transfers, fallbacks, outcomes; the suspect."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from types import FrameType
from typing import Any

import torch
from debug_spyre_calls import (  # type: ignore[import-not-found]
    call_of,
    is_device,
    recorded_layout,
    tensors_in,
)
from debug_spyre_judging import Difference  # type: ignore[import-not-found]

MOST_SHAPES = 4
FIRST_CALLS, LAST_CALLS = 64, 192  # of those before the suspect: what a process does once, and what it did just now
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_KINDS: dict[str, int] = {}  # file -> 0 machinery, 1 test or conftest, 2 code


def _kind(file: str) -> int:
    if file not in _KINDS:
        name = os.path.basename(file)
        inner = file.startswith((OWN, _TORCH, "<")) or any(
            f"{os.sep}{part}{os.sep}" in file for part in ("_pytest", "pluggy", "torch_spyre", "pytest")
        )
        test = (
            name.startswith("test_")
            or name.endswith("_test.py")
            or name == "conftest.py"
            or f"{os.sep}tests{os.sep}" in file
        )
        _KINDS[file] = 0 if inner else 1 if test else 2
    return _KINDS[file]


def caller() -> tuple[str, int]:
    """File and line of the innermost frame that is no machinery: where a warning belongs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None and not _kind(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("<unknown>", 0)


def site_of(root: str) -> str:
    """file:line of the innermost frame in the plugin's code; of the test's where there is none."""
    frame: FrameType | None = sys._getframe(2)
    best: tuple[int, str] = (0, "unknown")
    while frame is not None:
        file = frame.f_code.co_filename
        kind = _kind(file)
        if kind > best[0]:
            under = file.startswith(root.rstrip(os.sep) + os.sep)
            shown = os.path.relpath(file, root) if under else file
            if kind == 1 or under:
                best = kind, f"{shown}:{frame.f_lineno}"
            elif best[0] == 0:
                best = 0, f"{shown}:{frame.f_lineno}"
        if best[0] == 2:
            break
        frame = frame.f_back
    return best[1]


@dataclass
class Entry:
    """One op at one call site."""

    op: str
    site: str
    order: int
    calls: int = 0
    checked: int = 0
    off: int = 0
    fallbacks: int = 0
    max_abs: float = 0.0
    ratio: float = 0.0
    elements: int = 0
    slightly: int = 0
    refused: bool = False
    raised: str | None = None
    shapes: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)

    def saw(self, args: Any, kwargs: Any) -> None:
        """Shapes, strides and types of the arguments."""
        self.calls += 1
        if len(self.shapes) < MOST_SHAPES:
            text = ", ".join(shape_text(t) for t in (*tensors_in(args), *tensors_in(kwargs)))
            if text not in self.shapes:
                self.shapes.append(text)

    def count(self, fell_back: bool) -> None:
        """One more call, on the card or on the CPU."""
        self.fallbacks += fell_back

    def unchecked(self, why: str) -> None:
        """A call that was not run again."""
        self.reasons[why] = self.reasons.get(why, 0) + 1

    def add(self, found: Difference) -> None:
        """Statistics of one result."""
        self.elements += found.total
        self.max_abs = max(self.max_abs, found.max_abs)
        self.ratio = max(self.ratio, found.ratio)
        self.slightly += bool(found.wrong and not found.is_clear)

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers that JSON lacks are words."""
        how = "fallback" if self.fallbacks else "kernel"
        return {
            "op": self.op, "site": self.site, "order": self.order, "calls": self.calls, "checked": self.checked,
            "off": self.off, "slightly_off": self.slightly, "how": how, "fallbacks": self.fallbacks,
            "max_abs": _number(self.max_abs), "ratio": _number(self.ratio), "elements": self.elements,
            "raised": self.raised, "refused": self.refused, "arguments": self.shapes, "unchecked": self.reasons,
        }  # fmt: skip


def _number(value: float) -> float | str:
    return value if isfinite(value) else str(value)


def shape_text(tensor: torch.Tensor) -> str:
    """f16[4,128]@1,4+8: type, shape, strides unless contiguous, offset."""
    short = str(tensor.dtype).removeprefix("torch.").replace("bfloat", "bf").replace("float", "f").replace("int", "i")
    text = f"{short}[{','.join(map(str, tensor.shape))}]"
    if not tensor.is_contiguous():
        text += "@" + ",".join(map(str, tensor.stride()))
    return text + (f"+{tensor.storage_offset()}" if tensor.storage_offset() else "")


class Tally:
    """All entries in the order of their first call."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}
        self.transfers = {way: {"count": 0, "bytes": 0} for way in ("h2d", "d2h")}
        self.fallbacks: dict[tuple[str, str], int] = {}
        self.fallen: dict[tuple[str, str], dict[str, Any]] = {}
        self.outcomes: dict[str, str] = {}
        self.known: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self.first: list[dict[str, Any]] = []
        self.last: deque[dict[str, Any]] = deque(maxlen=LAST_CALLS)
        self.suspect: dict[str, Any] | None = None
        self.settled = False  # the suspect's own test failed: a later one does not take its place

    def entry(self, op: str, site: str) -> Entry:
        """The entry of an op at a site."""
        key = op, site
        if key not in self.entries:
            self.entries[key] = Entry(op, site, len(self.entries))
        return self.entries[key]

    def moved(self, way: str, tensor: torch.Tensor) -> None:
        """A transfer."""
        self.transfers[way]["count"] += 1
        self.transfers[way]["bytes"] += tensor.numel() * tensor.element_size()

    def fell_back(self, op: str, site: str, call: dict[str, Any] | None) -> None:
        """A fallback to the CPU; the first call of each is kept, where its arguments were copied."""
        key = op, site
        self.fallbacks[key] = self.fallbacks.get(key, 0) + 1
        if call is not None:
            self.fallen.setdefault(key, call)

    def number(self, op: str, host: Any, given: Any) -> tuple[int, dict[str, Any], bool]:
        """The number of this call among all distinct ones, the call without its values, and whether it is new."""
        key = op, ", ".join(map(_word, _leaves(given)))
        is_new = key not in self.known
        if is_new:
            self.known[key] = len(self.known), _without_values(op, host, given)
        return *self.known[key], is_new

    def remember(self, call: dict[str, Any]) -> None:
        """A call that may matter for later ones, without its values."""
        (self.first if len(self.first) < FIRST_CALLS else self.last).append(call)

    def prelude(self) -> list[dict[str, Any]]:
        """The calls before this one: the process's first, and the last."""
        return [*self.first, *self.last]

    def outcome(self, nodeid: str, phase: str, outcome: str) -> None:
        """A test's outcome: the worst of its phases."""
        worst = {"passed": 0, "skipped": 1, "failed": 2}
        before = self.outcomes.get(nodeid, "passed")
        self.outcomes[nodeid] = max(before, outcome, key=lambda word: worst.get(word, 2))
        if self.suspect and self.suspect["nodeid"] in {nodeid, None} and outcome == "failed" and phase != "teardown":
            self.settled = True

    def report(self, *, seconds: float) -> dict[str, Any]:
        """Everything, as plain data."""
        entries = sorted(self.entries.values(), key=lambda e: e.order)
        return {
            "schema": 1,
            "seconds": round(seconds, 3),
            "outcomes": self.outcomes,
            "ops": [e.to_json() for e in entries],
            "transfers": self.transfers,
            "fallbacks": [
                {"op": op, "site": site, "count": n, "call": self.fallen.get((op, site))}
                for (op, site), n in self.fallbacks.items()
            ],
            "suspect": self.suspect,
        }


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    else:
        yield value


def _word(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    layout = recorded_layout(value) if is_device(value) else None
    return f"{value.device.type} {shape_text(value)}" + (f" {layout}" if layout else "")


def _without_values(op: str, host: Any, given: Any) -> dict[str, Any]:
    data: dict[str, Any] = call_of(op, host, given, {}, "")
    for tensor in _tensor_bodies(data):
        tensor.update(fill="randn", file=None, key=None)
    return data


def _tensor_bodies(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        if isinstance(data.get("tensor"), dict):
            yield data["tensor"]
        else:
            for value in data.values():
                yield from _tensor_bodies(value)
    elif isinstance(data, list):
        for value in data:
            yield from _tensor_bodies(value)
