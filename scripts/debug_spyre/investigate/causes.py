"""Which tests belong together: by the op that is wrong first and how; the rest by what they did op by op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from debug_spyre.examine.features import packet_of
from debug_spyre.investigate.ledger import Ledger, Meeting
from debug_spyre.repro.same_fault import stable_words

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
