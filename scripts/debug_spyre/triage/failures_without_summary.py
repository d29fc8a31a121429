"""Failures of a session that has no summary: from its stack dumps, signals, watchers and cancelled jobs.

A test without an outcome is a failure only where the text shows how the process ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from debug_spyre.triage.block import Block, Frame
from debug_spyre.triage.block_owner import from_dump
from debug_spyre.triage.death_markers import Dump
from debug_spyre.triage.judging import judge
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.session_text import Session
from debug_spyre.triage.signature import function
from debug_spyre.vocabulary.evidence import Failure, Kind
from debug_spyre.vocabulary.safe_text import count


def with_dump(failure: Failure, dump: Dump, *, source: str, rules: Sequence[Rule]) -> Failure:
    """The failure of a worker that crashed, with what its stack dump shows."""
    block = _dump_block(dump, failure.nodeid)
    return replace(judge(block, source=source, kind=Kind.CRASH, rules=rules), line=failure.line)


def dump_of(failure: Failure, dumps: Sequence[Dump], *, alone: bool) -> Dump | None:
    """The stack dump of the worker that this test took down: the one that names it or its function, or the only one."""
    name = function(failure.nodeid).rsplit("::", 1)[-1]
    same = next((d for d in dumps if d.nodeid is not None and d.nodeid == failure.nodeid), None)
    named = same or next((d for d in dumps if any(f.function == name for f in d.frames())), None)
    return named or (dumps[0] if dumps and (alone or not dumps[0].frames()) else None)


def _dump_block(dump: Dump, nodeid: str | None) -> Block:
    block = Block(title=dump.text, number=dump.number, nodeid=nodeid)
    frames = _own(dump.frames())
    block.frames.extend(frames)
    block.location_class = dump.text if dump.kind == "fatal" else None
    if dump.kind == "fatal":
        block.plain.append(f"{dump.mark} {dump.text}")
    block.phase = _phase(dump.frames())
    return block


def _own(frames: list[Frame]) -> list[Frame]:
    return [f for f in frames if not f.path.startswith("<frozen")] or frames


def _phase(frames: list[Frame]) -> str:
    names = {f.function for f in frames}
    if "pytest_runtest_setup" in names or "call_fixture_func" in names:
        return "setup"
    if "pytest_runtest_teardown" in names:
        return "teardown"
    if "pytest_pycollect_makemodule" in names or "pytest_collection" in names or "importtestmodule" in names:
        return "collect"
    return "call"


def failures_at_the_end(
    session: Session, found: list[Failure], *, source: str, rules: Sequence[Rule], warnings: list[str]
) -> list[Failure]:
    """What the end of a session without a summary shows to have failed; notes for people go into `warnings`."""
    ending, running = session.ending, session.progress.current
    for number, name in ending.crashed:
        if all(f.nodeid != name for f in found):
            block = Block(title=name, number=number, nodeid=name)
            block.plain.append("a worker crashed while running it")
            found.append(judge(block, source=source, kind=Kind.CRASH, rules=rules))
    dump = next((d for d in reversed(ending.dumps) if d.kind == "fatal"), ending.dumps[-1] if ending.dumps else None)
    if dump is not None:
        nodeid = dump.nodeid or running or from_dump(dump.frames(), session)
        kind = Kind.CRASH if dump.kind == "fatal" else Kind.TIMEOUT
        block = _dump_block(dump, nodeid)
        block.captured.extend(ending.texts)
        if any(f.nodeid == nodeid and f.kind is kind for f in found):
            return []
        return [judge(block, source=source, kind=kind, rules=rules)]
    ended_from_outside = ending.cancelled is not None and ending.signal_text is not None and ending.signal in {9, 15}
    if ending.signal_text is not None and (running or not found) and not ended_from_outside:
        number, text = ending.signal_text
        if running is None and session.progress.outcomes:
            warnings.append(f"the process ended with {text} after {_progress(session)}")
        block = Block(title=text, number=number, nodeid=running, location_class=text)
        block.plain.append(ending.abort_text or text)
        block.captured.extend(ending.texts)
        if running is None and _all_done(session):
            return []
        return [judge(block, source=source, kind=Kind.CRASH, rules=rules)]
    if (
        ending.signal is not None
        and running is None
        and not found
        and not ended_from_outside
        and ending.signal not in _FROM_OUTSIDE
    ):
        if _all_done(session):
            return []
        text = _NAMES.get(ending.signal, f"signal {ending.signal}")
        block = Block(title=text, phase="session", number=session.number, location_class=text)
        block.plain.append(f"a runner tells that the process was ended by signal {ending.signal}")
        return [judge(block, source=source, kind=Kind.CRASH, rules=rules)]
    if ending.cancelled is not None:
        number, text = ending.cancelled
        if running is None:
            warnings.append(f"the run was ended from outside ({text}); every test that is named had an outcome")
            return []
        block = Block(title=text, number=number, nodeid=running)
        block.plain.append(text)
        return [judge(block, source=source, kind=Kind.TIMEOUT, rules=rules)]
    if ending.signal == _TERMINATED and running is None and not found:
        warnings.append(f"the run was ended from outside after {_progress(session)}")
        return []
    if ending.signal is not None and running is not None:
        block = Block(title=f"signal {ending.signal}", number=session.progress.running[running], nodeid=running)
        block.plain.append(f"ended by signal {ending.signal}")
        return [judge(block, source=source, kind=Kind.CRASH, rules=rules)]
    if running is not None and not session.progress.is_parallel:
        warnings.append(f"the log ends while {running} runs: no outcome, and nothing says how the process ended")
    elif session.begun and not found:
        warnings.append("the log ends without pytest's summary")
    return []


_NAMES = {
    6: "Aborted", 7: "Bus error", 4: "Illegal instruction", 8: "Floating point exception", 9: "Killed", 11: "Segmentation fault",
}  # fmt: skip


_TERMINATED = 15
_FROM_OUTSIDE = frozenset({15})


def _progress(session: Session) -> str:
    done, collected = session.progress.outcomes, session.progress.collected
    last = next(reversed(done), "the session began")
    return f"{last}: {len(done)} of {count(collected, 'test')} had an outcome" if collected else last


def _all_done(session: Session) -> bool:
    done = len(session.progress.outcomes) or sum(session.progress.letters.values())
    return bool(done) and session.progress.collected == done


def dump_signal(sessions: list[Session]) -> int | None:
    """The signal that the last fatal dump names."""
    fatal = (d for session in reversed(sessions) for d in reversed(session.ending.dumps) if d.kind == "fatal")
    return next((d.signal for d in fatal), None)
