"""The ledger of a shadowed matrix: every distinct call with its verdict, and what each failing test met first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.examine.features import packet_of


@dataclass(frozen=True, slots=True)
class Line:
    """One distinct call with one verdict: right, wrong or refused."""

    number: int
    verdict: str
    call: dict[str, Any]
    out: tuple[dict[str, Any], ...]
    site: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Meeting:
    """A test met a call that is wrong or refused; the first of each pair, in the order of the run."""

    nodeid: str | None
    number: int
    op: str
    site: str
    verdict: str
    said: str | None = None
    suspect: str | None = None  # the folder of its values below suspects/


@dataclass(frozen=True, slots=True)
class Ledger:
    """Lines in the order of their first call, and meetings in the order of the run."""

    lines: tuple[Line, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    outcomes: dict[str, str] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()

    def call(self, number: int) -> dict[str, Any] | None:
        """The call of that number, without its values."""
        return next((line.call for line in self.lines if line.number == number), None)

    def of_op(self, packet: str) -> list[Line]:
        """All lines of the op, whatever the overload."""
        return [line for line in self.lines if packet_of(line.call["op"]) == packet]

    def met_by(self, nodeid: str) -> list[Meeting]:
        """What the test met, first things first."""
        return [m for m in self.meetings if m.nodeid == nodeid]


def read_ledger(text: Iterable[str], outcomes: dict[str, str]) -> Ledger:
    """The ledger from its lines; a torn line is left out."""
    lines: dict[tuple[int, str], dict[str, Any]] = {}
    meetings: list[Meeting] = []
    for row in text:
        try:
            data = json.loads(row)
            key = int(data["n"]), str(data["verdict"])
        except (ValueError, KeyError, TypeError):
            continue
        if "call" in data:
            lines[key] = data
        elif "count" in data:
            lines.get(key, {})["count"] = data["count"]
        elif "nodeid" in data:
            meetings.append(
                Meeting(data["nodeid"], key[0], data["op"], data["site"], key[1], data.get("said"), data.get("suspect"))
            )
    made = [
        Line(n, verdict, d["call"], tuple(d.get("out") or ()), d["site"], int(d.get("count", 1)))
        for (n, verdict), d in lines.items()
    ]
    return Ledger(tuple(made), tuple(meetings), outcomes)
