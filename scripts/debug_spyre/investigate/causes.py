"""The ledger of a shadowed matrix (every distinct call with its verdict), which tests belong together by it, and what else is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.examine.dossier import Cause
from debug_spyre.examine.features import packet_of
from debug_spyre.repro.same_fault import stable_words
from debug_spyre.surface.limits import Limit, Reading


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


PRODUCTS = ("matrix product", "matrix products")
OTHER_NAMES = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "matmul"), PRODUCTS), "linear": ("linear layer", *PRODUCTS),
    "constant_pad_nd": ("pad",), "_to_copy": (".to(dtype)", "dtype change"),
}  # fmt: skip


def known_limits(op: str, limits: Iterable[Limit]) -> list[str]:
    """Known limitations that hold and name the op: their statements, at most three."""
    packet = packet_of(op).partition(".")[2]
    names = {packet, *OTHER_NAMES.get(packet, ())}
    named = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, sorted(names)))})(?![\w])", re.IGNORECASE)
    return [x.statement for x in limits if x.state is not Reading.LIFTED and named.search(x.statement)][:3]


def next_of(causes: Sequence[Cause], left_out: Sequence[str]) -> str:
    """The one thing to do next."""
    if left_out:
        return "debug-spyre investigate --resume"
    proved = next((c for c in causes if c.claim == "cause"), None)
    if proved is not None:
        goes_round = any(way["measured"] == "right" for way in proved.ways_round) or not proved.ways_round
        first = (
            "change the code or the test, then" if goes_round else "nothing that was tried goes round it, hand it over"
        )
        return f"{first}: debug-spyre finish --session {proved.session}"
    open_one = next((c for c in causes if c.session), None)
    return f"debug-spyre hypothesis list --session {open_one.session}" if open_one else "debug-spyre status"


STALE, OP, CLEAN, FAILS_CLEAN, UNSEEN, DIED = "stale-mark", "op", "passes-op-by-op", "fails-op-by-op", "unseen", "died"

Key = tuple[str, str | None, str | None, str]  # kind, op, verdict, words of a refusal


@dataclass(frozen=True, slots=True)
class Draft:
    """A cause before it is looked into.

    `kind`: op (a call is wrong or refused), stale-mark, passes-op-by-op (order or graph), fails-op-by-op (no op is wrong:
    host logic, the test, or what was not checked), unseen, died.
    """

    kind: str
    tests: tuple[str, ...]
    clusters: tuple[str, ...]
    packet: str | None = None
    verdict: str | None = None  # wrong, refused
    first: Meeting | None = None
    also: tuple[Meeting, ...] = ()  # later wrong calls of the op, one a site


def draft_causes(
    failing: Sequence[str],
    ledger: Ledger,
    clusters: Mapping[str, str],
    *,
    stale: Sequence[str] = (),
    died: str | None = None,
) -> list[Draft]:
    """The drafts, those with most tests first. `clusters`: node id to the triage's cluster; `died`: the test in flight."""
    groups: dict[Key, list[str]] = {}
    firsts: dict[Key, list[Meeting]] = {}
    for nodeid in failing:
        met = ledger.met_by(nodeid)
        keys: list[Key]
        if nodeid in stale:
            keys = [(STALE, None, None, "")]
        elif met:
            keys = list(dict.fromkeys(_key_of(m) for m in met))
        elif nodeid == died:
            keys = [(DIED, None, None, "")]
        else:
            seen = ledger.outcomes.get(nodeid)
            kind = UNSEEN if seen in {None, "skipped"} else CLEAN if seen == "passed" else FAILS_CLEAN
            keys = [(kind, None, None if kind != FAILS_CLEAN else clusters.get(nodeid), "")]
        for key in keys:
            groups.setdefault(key, []).append(nodeid)
            firsts.setdefault(key, []).extend(m for m in met if _key_of(m) == key)
    drafts = [_draft(key, tests, firsts[key], clusters) for key, tests in groups.items()]
    return sorted(drafts, key=lambda d: (d.kind != OP, -len(d.tests)))


def _key_of(met: Meeting) -> Key:
    """What makes two wrong calls one cause: the op and the manner; of refusals also the words, of which the first line counts."""
    words = stable_words(met.said or "") if met.verdict == "refused" else ""
    return OP, packet_of(met.op), met.verdict, words


def _draft(key: Key, tests: list[str], met: list[Meeting], clusters: Mapping[str, str]) -> Draft:
    kind, packet, verdict, _ = key
    with_values = [m for m in met if m.suspect] or met
    by_site = {m.site: m for m in reversed(with_values)}
    return Draft(
        kind=kind,
        tests=tuple(tests),
        clusters=tuple(dict.fromkeys(clusters[t] for t in tests if t in clusters)),
        packet=packet,
        verdict=verdict if kind == OP else None,
        first=with_values[0] if with_values else None,
        also=tuple(m for m in reversed(by_site.values()) if m is not with_values[0]) if with_values else (),
    )
