"""The narrowest member of a cluster: smallest shapes, then shortest, then simplest id."""

from __future__ import annotations

from collections.abc import Sequence

from debug_spyre.triage.parameters import numbers_of
from debug_spyre.vocabulary.evidence import TestRecord


def choose_probe(nodeids: Sequence[str], tests: Sequence[TestRecord]) -> str | None:
    """The failing test to use as quick check: the narrowest."""
    if not nodeids:
        return None
    seconds = {t.nodeid: t.seconds for t in tests if t.seconds is not None}

    def cost(nodeid: str) -> tuple[float, float, int, str]:
        size = 1.0
        for number in numbers_of(nodeid):
            size *= max(number, 1.0)
        return (size, seconds.get(nodeid, float("inf")), len(nodeid), nodeid)

    return min(nodeids, key=cost)
