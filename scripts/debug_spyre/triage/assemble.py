"""From what a terminal text showed to Evidence: failures of every session, outcomes, counts, what was left open.

Nothing is invented: a test without an outcome is a failure only where the text shows how the process ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from debug_spyre.triage.block import Block
from debug_spyre.triage.block_owner import FAILED_WORDS, name_blocks, with_first_verdict
from debug_spyre.triage.failures_without_summary import dump_of, dump_signal, failures_at_the_end, with_dump
from debug_spyre.triage.judging import judge
from debug_spyre.triage.nodeids import domain
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.session_text import Session, SummaryLine, listed_sessions, notes_of, seen_outcomes, totals
from debug_spyre.triage.terminal import Terminal
from debug_spyre.vocabulary.evidence import (
    Counts,
    Evidence,
    Failure,
    Fallback,
    Kind,
    Outcome,
    SessionCounts,
    Stage,
    TestRecord,
    Unrecognised,
)


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
        failures=tuple(_flaky_merging(f, passed[place + 1 :]) for place, e in enumerate(found) for f in e.failures),
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


def _flaky_merging(failure: Failure, later: Sequence[set[str]]) -> Failure:
    """A failure of a test that passed in a later log says so, as one within a log does."""
    if "flake" in failure.tags or not any(failure.nodeid in passed for passed in later):
        return failure
    return replace(failure, tags=(*failure.tags, "flake"))


_OUTCOME_OF = {Kind.CRASH: Outcome.CRASHED, Kind.TIMEOUT: Outcome.TIMEOUT}


def evidence_of(terminals: Sequence[Terminal], *, source: str, rules: Sequence[Rule] = RULES) -> Evidence:
    """All that the text shows; several terminals where several streams of lines stand among each other in it."""
    sessions = sorted((s for t in terminals for s in t.sessions if s.is_shown), key=lambda s: s.number)
    listed: list[Failure] = []
    later_passed: set[str] = set()
    warnings = list(dict.fromkeys(note for t in terminals for note in t.warned.notes))
    for session in sessions:
        if session.counts is None:
            session.counts = session.maybe
        found = _session_failures(session, source=source, rules=rules, warnings=warnings)
        listed = _later_wins(listed, found)
        failed = {f.nodeid for f in found}
        later_passed |= {n for n, o in session.progress.outcomes.items() if o is Outcome.PASSED and n not in failed}
        later_passed -= {n for n in failed if n}
    listed = [_flaky(f) if f.nodeid in later_passed and len(sessions) > 1 else f for f in listed]
    trace = next((t.traces.first for t in terminals if t.traces.first is not None), None)
    if not listed and trace is not None and not any(s.counts for s in sessions):
        listed = [judge(trace, source=source, rules=rules)]
    begun = [s for s in sessions if s.begun]
    counts = totals(begun, listed)
    warnings += notes_of(begun, counts)
    return Evidence(
        sources=(source,),
        counts=counts,
        complete=bool(begun) and begun[-1].counts is not None and begun[-1].ended >= begun[-1].begun_at_once,
        failures=tuple(listed),
        fallbacks=_fallbacks(terminals),
        tests=_records(sessions, listed),
        unrecognised=_unrecognised(listed),
        warnings=tuple(dict.fromkeys(warnings)),
        collected=sum(s.progress.collected or 0 for s in begun) or None,
        signal=next((s.ending.signal for s in reversed(sessions) if s.ending.signal), None) or dump_signal(sessions),
        seen=seen_outcomes(begun, listed) if counts is None else None,
        sessions=listed_sessions(begun, source),
    )


def _fallbacks(terminals: Sequence[Terminal]) -> tuple[Fallback, ...]:
    if len(terminals) == 1:
        return terminals[0].warned.result()
    found: dict[tuple[str, str | None, int | None], Fallback] = {}
    for fallback in (f for t in terminals for f in t.warned.result()):
        key = (fallback.op, fallback.file, fallback.line)
        before = found[key].nodeids if key in found else ()
        found[key] = replace(fallback, nodeids=tuple(dict.fromkeys((*before, *fallback.nodeids))))
    return tuple(found.values())


def _later_wins(listed: list[Failure], found: list[Failure]) -> list[Failure]:
    """A test that fails again counts once, as it failed last; a busy or broken card after its crash is no new failure."""
    ended = {f.nodeid for f in listed if f.kind in {Kind.CRASH, Kind.TIMEOUT} and f.nodeid}
    found = [f for f in found if f.nodeid not in ended or not {"card-busy", "device-error"} & set(f.tags)]
    again = {f.nodeid for f in found}
    return [f for f in listed if f.nodeid not in again] + found


def _session_failures(session: Session, *, source: str, rules: Sequence[Rule], warnings: list[str]) -> list[Failure]:
    name_blocks(session)
    crashed = [d for d in session.ending.dumps if d.kind == "fatal"]
    workers = sum("crashed while running" in line for block in session.blocks for line in block.plain)
    found: list[Failure] = []
    done = 0
    for block in session.blocks:
        empty = not block.frames and not block.errors
        if (block.nodeid is None and empty and session.summary) or (
            block.is_headless and (not block.errors or (block.nodeid is None and session.summary))
        ):
            continue  # a line that captured output drew
        failure = judge(block, source=source, rules=rules)
        if failure.nodeid is None:
            failure = replace(failure, nodeid=block.title or None, tags=(*failure.tags, "name-only"))
        in_order = len(crashed) == workers - done  # each worker left its dump, in the order of their failures
        done += failure.kind is Kind.CRASH
        if failure.kind is Kind.CRASH and (dump := dump_of(failure, crashed, alone=workers <= 1 or in_order)):
            crashed.remove(dump)
            failure = with_dump(failure, dump, source=source, rules=rules)
        found.append(failure)
    found = with_first_verdict(_without_totals(found))
    covered = {(f.nodeid, f.phase == "call") for f in found}
    lines = [s for s in session.summary if s.word in FAILED_WORDS or s.word == "ERROR"]
    bare = [s for s in lines if (s.nodeid, s.word != "ERROR") not in covered]
    calls = [s for s in bare if s.word in FAILED_WORDS]
    texts = dict(zip(map(id, calls), session.one_liners, strict=True)) if len(calls) == len(session.one_liners) else {}
    found += [_from_summary(line, texts.get(id(line)), source=source, rules=rules) for line in bare]
    found += _from_progress(session, found, source)
    if session.counts is None:
        found += failures_at_the_end(session, found, source=source, rules=rules, warnings=warnings)
    if session.internal is not None:
        found.append(judge(session.internal, source=source, rules=rules))
    elif session.interrupted and not found and "Interrupted" not in session.interrupted[1]:
        found += _interrupted(session, source=source, rules=rules)
    return found


def _without_totals(found: list[Failure]) -> list[Failure]:
    """Without `contains N failed subtests` where the subtests themselves are listed."""
    totals = [f for f in found if re.match(r"contains \d+ failed subtests?", f.message or "")]
    if not totals:
        return found
    names = {f.nodeid for f in found if f not in totals}
    return [f for f in found if f not in totals or f.nodeid not in names]


def _from_summary(line: SummaryLine, block: Block | None, *, source: str, rules: Sequence[Rule]) -> Failure:
    phase = "call" if line.word != "ERROR" else ("setup" if "::" in (line.nodeid or "") else "collect")
    if block is None:
        block = Block(title=line.text, number=line.number)
        if line.message:
            block.feed(f"E   {line.message}")
        for text in line.more:
            block.feed(f"E   {text}")
    block.phase, block.nodeid = phase, line.nodeid
    return judge(block, source=source, rules=rules)


def _from_progress(session: Session, found: list[Failure], source: str) -> list[Failure]:
    """Tests that a progress line calls failed, where no failure text and no summary names them."""
    named = {f.nodeid for f in found}
    if not any(o in {Outcome.FAILED, Outcome.ERROR} for o in session.progress.outcomes.values()):
        return []
    unnamed = {f.nodeid for f in found if f.nodeid and "name-only" in f.tags}
    missing = []
    for nodeid, outcome in session.progress.outcomes.items():
        if outcome not in {Outcome.FAILED, Outcome.ERROR} or nodeid in named:
            continue
        if any(nodeid.endswith(name.rsplit(".", 1)[-1]) for name in unnamed):
            continue
        phase = "call" if outcome is Outcome.FAILED else "setup"
        missing.append(Failure(nodeid=nodeid, phase=phase, kind=Kind.EXCEPTION, tags=("no-text",), source=source))
    return missing


def _interrupted(session: Session, *, source: str, rules: Sequence[Rule]) -> list[Failure]:
    number, text = session.interrupted or (0, "")
    if "KeyboardInterrupt" in text or text.startswith("stopping after"):
        return []
    block = Block(title=text, phase="session", number=number)
    block.errors.append(text)
    failure = judge(block, source=source, rules=rules)
    return [failure if failure.stage else replace(failure, stage=Stage.ENVIRONMENT)]


def _flaky(failure: Failure) -> Failure:
    return replace(failure, tags=(*failure.tags, "flake"))


def _records(sessions: list[Session], failures: list[Failure]) -> tuple[TestRecord, ...]:
    outcomes: dict[str, Outcome] = {}
    for session in sessions:
        outcomes.update(session.progress.outcomes)
        for nodeid in session.progress.running:
            outcomes.setdefault(nodeid, Outcome.MISSING)
        for line in session.summary:
            word = {"PASSED": Outcome.PASSED, "XFAIL": Outcome.XFAILED, "XPASS": Outcome.XPASSED}.get(line.word)
            if word and line.nodeid:
                outcomes.setdefault(line.nodeid, word)
    for failure in failures:
        if failure.nodeid is not None and "flake" not in failure.tags:
            default = Outcome.FAILED if failure.phase == "call" else Outcome.ERROR
            outcomes[failure.nodeid] = _OUTCOME_OF.get(failure.kind, default)
    return tuple(TestRecord(nodeid, outcome) for nodeid, outcome in outcomes.items())


def _unrecognised(failures: list[Failure]) -> tuple[Unrecognised, ...]:
    return tuple(
        Unrecognised(f.source, f.line, (f.message or "no text").split("\n", 1)[0][:200])
        for f in failures
        if f.rule is None and f.kind is not Kind.MISMATCH
    )
