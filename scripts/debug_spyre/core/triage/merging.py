"""Several logs as one evidence: sources in the order given, later outcomes of a test win, counts are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from debug_spyre.core.evidence import Counts, Evidence, Fallback, TestRecord


def merge(found: Sequence[Evidence]) -> Evidence:
    """One evidence of all; a single one stays as it is."""
    if len(found) == 1:
        return found[0]
    counted = [e.counts for e in found if e.counts is not None]
    totals = {f.name: sum(getattr(c, f.name) for c in counted) for f in fields(Counts)}
    tests: dict[str, TestRecord] = {}
    fallbacks: dict[tuple[str, str | None, int | None], Fallback] = {}
    for evidence in found:
        tests.update({t.nodeid: t for t in evidence.tests})
        for one in evidence.fallbacks:
            key = (one.op, one.file, one.line)
            before = fallbacks.get(key)
            names = dict.fromkeys([*(before.nodeids if before else ()), *one.nodeids])
            fallbacks[key] = Fallback(one.op, one.file, one.line, tuple(names), one.accepted)
    return Evidence(
        sources=tuple(s for e in found for s in e.sources),
        counts=Counts(**totals) if counted else None,
        complete=bool(found) and all(e.complete for e in found),
        failures=tuple(f for e in found for f in e.failures),
        fallbacks=tuple(fallbacks.values()),
        tests=tuple(tests.values()),
        unrecognised=tuple(u for e in found for u in e.unrecognised),
        warnings=tuple(dict.fromkeys(w for e in found for w in e.warnings)),
        collected=sum(e.collected or 0 for e in found) or None,
        selected=tuple(dict.fromkeys(n for e in found for n in e.selected)),
        signal=next((e.signal for e in found if e.signal), None),
    )
