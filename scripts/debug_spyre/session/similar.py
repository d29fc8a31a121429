"""Which past sessions look like this one: the same signature first, then the same kind, stage and words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from debug_spyre.session.state import Session

ALIKE = 0.6
_WORD = re.compile(r"[a-z][a-z0-9_]{2,}")


@dataclass(frozen=True, slots=True)
class Similar:
    """A past session with what it taught."""

    stem: str
    slug: str
    status: str
    score: float  # 1.0: the same signature
    why: str
    cause: str | None
    fixed_by: str | None
    wasted: str | None


def likeness(one: dict[str, Any] | None, other: dict[str, Any] | None) -> tuple[float, str]:
    """How alike two clusters are (0..1), and why."""
    if not one or not other or not one.get("signature") or not other.get("signature"):
        return 0.0, "no signature to compare"
    if one["signature"] == other["signature"]:
        return 1.0, "the same signature"
    if (one.get("kind"), one.get("stage")) != (other.get("kind"), other.get("stage")):
        return 0.0, "another kind or stage"
    a, b = _words(one), _words(other)
    score = len(a & b) / len(a | b) if a | b else 0.0
    return round(score, 3), f"same kind and stage, {len(a & b)} of {len(a | b)} words in common"


def _words(cluster: dict[str, Any]) -> set[str]:
    return set(_WORD.findall(f"{cluster['signature']} {cluster.get('why', '')}".lower()))


def find_similar(cluster: dict[str, Any] | None, past: list[Session], *, except_stem: str = "") -> tuple[Similar, ...]:
    """Past sessions alike enough to be worth a look, the most alike first, then the newest."""
    found = []
    for session in past:
        score, why = likeness(cluster, session.cluster)
        if score < ALIKE or session.stem == except_stem:
            continue
        closing = session.closing
        confirmed = [h for h in session.hypotheses if h.status == "confirmed"]
        found.append(
            Similar(
                stem=session.stem,
                slug=session.slug,
                status=session.status.value,
                score=score,
                why=why,
                cause=closing.cause if closing else None,
                fixed_by=confirmed[-1].text if confirmed else None,
                wasted=closing.wasted if closing else None,
            )
        )
    found.sort(key=lambda s: s.stem, reverse=True)
    return tuple(sorted(found, key=lambda s: -s.score))
