"""Two builds of torch-spyre op by op: which ops gained, lost or changed a form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from debug_spyre.surface.asked import Registry, full_name
from debug_spyre.surface.names import OpName
from debug_spyre.surface.op_verdict import judge
from debug_spyre.surface.verdicts import Index

MODES = ("eager", "compiled")
KINDS = ("lost", "gained", "changed", "no longer works", "works now")
MOST = 40


@dataclass(frozen=True, slots=True)
class Form:
    """What one mode does with one overload."""

    verdict: str
    works: bool | None

    def __str__(self) -> str:
        return f"{self.verdict}, does not work" if self.works is False and self.verdict != "none" else self.verdict


Build = Mapping[str, Mapping[str, Form]]  # overload to mode to form


@dataclass(frozen=True, slots=True)
class Change:
    """One overload in one mode. `kind`: one of KINDS; the last two have the same form and other leaves."""

    op: str
    mode: str
    kind: str
    before: str
    after: str


def build_of(index: Index, registry: Registry, packets: Iterable[OpName]) -> Build:
    """The forms of every overload of these packets."""
    found: dict[str, dict[str, Form]] = {}
    for packet in packets:
        for overload in registry.overloads(packet):
            if full_name(packet, overload) in registry.rows:
                both = judge(index, packet, overload, registry)
                verdicts = zip(MODES, (both.eager, both.compiled), strict=True)
                found[f"{packet}.{overload}"] = {mode: Form(v.verdict, v.works) for mode, v in verdicts}
    return found


def build_from_answer(data: Mapping[str, Any]) -> Build:
    """The same from what `op --all --json` printed.

    Raises:
        KeyError, TypeError, AttributeError: it is no such answer.
    """
    return {
        f"{op['name']}.{overload}": {mode: Form(told[mode], told["works"][mode]) for mode in MODES}
        for op in data["ops"]
        for overload, told in op["overloads"].items()
    }


def changes(before: Build, after: Build) -> list[Change]:
    """All differences, what was lost first. An overload that one side does not list has the form `none` there."""
    none = Form("none", False)
    found = []
    for op in sorted({*before, *after}):
        for mode in MODES:
            was, now = (build.get(op, {}).get(mode, none) for build in (before, after))
            kind = _kind(was, now)
            if kind:
                found.append(Change(op, mode, kind, str(was), str(now)))
    return sorted(found, key=lambda c: KINDS.index(c.kind))


def _kind(was: Form, now: Form) -> str:
    if was.verdict != now.verdict:
        return "gained" if was.verdict == "none" else "lost" if now.verdict == "none" else "changed"
    if was.works is not now.works and None not in (was.works, now.works):
        return "works now" if now.works else "no longer works"
    return ""


def lines_of(found: list[Change], before: str, after: str) -> list[str]:
    """For people: the changes of form one by one, what only follows from them as numbers."""
    counts = {kind: sum(c.kind == kind for c in found) for kind in KINDS}
    said = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) or "no op changed its form"
    lines = [f"{before} against {after}: {said}"]
    own = [c for c in found if c.kind in KINDS[:3]]
    lines += [f"  {c.kind:8s} {c.op} {c.mode}: {c.before} -> {c.after}" for c in own[:MOST]]
    if len(own) > MOST:
        lines.append(f"  and {len(own) - MOST} more (--json has all)")
    for kind in KINDS[3:]:
        ops = sorted({c.op for c in found if c.kind == kind})
        if ops:
            lines.append(
                f"  {kind} by the ops that they call: {' '.join(ops[:6])}{f' and {len(ops) - 6} more' if len(ops) > 6 else ''}"
            )
    return lines
