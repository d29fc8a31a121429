"""Several logs as one evidence: sources in the order given, later outcomes of a test win, counts are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from debug_spyre.triage.nodeids import domain
from debug_spyre.vocabulary.evidence import Counts, Evidence, Failure, Fallback, Outcome, SessionCounts, TestRecord


def merge(found: Sequence[Evidence]) -> Evidence:
    """One evidence of all; a single one stays as it is."""
    if len(found) == 1:
        return found[0]
    passed = [{t.nodeid for t in e.tests if t.outcome is Outcome.PASSED} for e in found]
    seen = [e.seen for e in found if e.seen is not None]
    counted = [e.counts for e in found if e.counts is not None]
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
        counts=reduce(Counts.plus, counted) if counted else None,
        complete=bool(found) and all(e.complete for e in found),
        failures=tuple(_flaky(f, passed[place + 1 :]) for place, e in enumerate(found) for f in e.failures),
        fallbacks=tuple(fallbacks.values()),
        tests=tuple(tests.values()),
        unrecognised=tuple(u for e in found for u in e.unrecognised),
        warnings=tuple(dict.fromkeys(w for e in found for w in e.warnings)),
        collected=sum(e.collected or 0 for e in found) or None,
        selected=tuple(dict.fromkeys(n for e in found for n in e.selected)),
        signal=next((e.signal for e in found if e.signal), None),
        seen=reduce(Counts.plus, seen) if seen and not counted else None,
        sessions=tuple(s for e in found for s in (e.sessions or _as_session(e))),
    )


def without_copies(found: Sequence[tuple[Evidence, bool]]) -> list[Evidence]:
    """Without the reports (JUnit, JSON) that a log of the same run lies beside: each run counts once.

    Each evidence comes with whether it is such a report.
    """
    texts = [evidence for evidence, is_report in found if not is_report]
    kept: list[Evidence] = []
    for evidence, is_report in found:
        twin = next((t for t in texts if _is_same_run(evidence, t)), None) if is_report else None
        if twin is None:
            kept.append(evidence)
        else:
            note = f"{evidence.sources[0]} tells the same run as {twin.sources[0]}: counted once"
            place = kept.index(twin) if twin in kept else -1
            if place >= 0:
                kept[place] = replace(twin, warnings=(*twin.warnings, note))
    return kept


def _is_same_run(report: Evidence, text: Evidence) -> bool:
    """The same tests failed, and as many passed and failed."""
    if report.counts is None or not any(
        c is not None
        and (c.failed, c.passed, c.skipped) == (report.counts.failed, report.counts.passed, report.counts.skipped)
        for c in (text.counts, *(s.counts for s in text.sessions))
    ):
        return False
    own, other = ({domain(f.nodeid) for f in e.failures if f.nodeid} for e in (report, text))
    return own == other if not text.sessions else own <= other


def _as_session(evidence: Evidence) -> tuple[SessionCounts, ...]:
    return tuple(SessionCounts(source, 0, None, evidence.counts) for source in evidence.sources)


def _flaky(failure: Failure, later: Sequence[set[str]]) -> Failure:
    """A failure of a test that passed in a later log says so, as one within a log does."""
    if "flake" in failure.tags or not any(failure.nodeid in passed for passed in later):
        return failure
    return replace(failure, tags=(*failure.tags, "flake"))
