"""Several sessions in one text: a line for each, and what people should know about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from debug_spyre.triage.nodeids import file_of
from debug_spyre.triage.session_text import Session
from debug_spyre.vocabulary.evidence import Counts, Failure, Outcome, SessionCounts

_FEWEST_LETTERS = 3
_IN_ORDER = (
    Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.XFAILED, Outcome.XPASSED,
)  # fmt: skip


def listed_sessions(sessions: Sequence[Session], source: str | None) -> tuple[SessionCounts, ...]:
    """Each of several sessions; one alone needs no list."""
    if len(sessions) < 2:
        return ()
    return tuple(SessionCounts(source, s.number, _name(s), s.counts, s.ending.exit) for s in sessions)


def totals(sessions: Sequence[Session], failures: Sequence[Failure]) -> Counts | None:
    """The counts of all sessions together; a session whose tests all run again later counts with the later one.

    Never fewer failures than there are failing tests: ranks that run the same tests may fail in different ones.
    """
    counted = [s for s in sessions if s.counts is not None]
    if not counted:
        return None
    last = [s for place, s in enumerate(counted) if not any(_again(s, later) for later in counted[place + 1 :])]
    bad = {f.nodeid for f in failures if f.phase == "call" and "flake" not in f.tags}
    once = reduce(Counts.plus, (s.counts for s in last if s.counts))
    return once if once.failed >= len(bad) else reduce(Counts.plus, (s.counts for s in counted if s.counts))


def seen_outcomes(sessions: Sequence[Session], failures: Sequence[Failure]) -> Counts | None:
    """What a text without any counts shows of its tests: outcomes by name, or letters."""
    found = Counts()
    for session in sessions:
        named = Counter(session.progress.outcomes.values())
        letters, words = session.progress.letters, Counter(line.word for line in session.summary)
        told = (
            named or Counter(letters) or Counter({Outcome.PASSED: words["PASSED"], Outcome.SKIPPED: words["SKIPPED"]})
        )
        found = found.plus(Counts(*(told[o] for o in _IN_ORDER)))
    failed = len({f.nodeid for f in failures if f.phase == "call"})
    errors = len({f.nodeid for f in failures if f.phase != "call"})
    found = replace(found, failed=max(found.failed, failed), errors=max(found.errors, errors))
    return None if found == Counts() else found


def _again(session: Session, later: Session) -> bool:
    """The later session runs the same tests, as far as both name them."""
    named, again = _tests(session), _tests(later)
    if named and named <= again:
        return True
    files = set(session.progress.files)
    same_size = session.progress.collected is not None and session.progress.collected == later.progress.collected
    return bool(files) and files <= set(later.progress.files) and same_size


def _tests(session: Session) -> set[str | None]:
    return {*session.progress.outcomes, *(b.nodeid for b in session.blocks), *(s.nodeid for s in session.summary)}


def notes_of(sessions: Sequence[Session], counts: Counts | None) -> list[str]:
    """Notes about sessions, reruns and early ends."""
    notes = []
    if len(sessions) > 1:
        every = [s.counts for s in sessions if s.counts is not None]
        is_sum = len(every) < 2 or counts == reduce(Counts.plus, every)
        told = "the counts are their sum" if is_sum else "tests that run again count once, as they ended last"
        notes.append(f"{len(sessions)} test sessions in one log; {told}")
        notes += [f"session at line {s.number}{_named(s)}: {_say(s)}" for s in sessions[:12]]
    for session in sessions:
        if session.begun_at_once > 1:
            notes.append(f"{session.begun_at_once} sessions ran at the same time; {session.ended} printed counts")
    passed = [n for s in sessions for n in s.progress.reruns if s.progress.outcomes.get(n) is Outcome.PASSED]
    notes += [f"passed only when run again: {n}" for n in passed[:20]]
    return notes + [f"the session ended early: {s.interrupted[1]}" for s in sessions if s.interrupted]


def _name(session: Session) -> str | None:
    if session.stream:
        return session.stream
    first = next(iter(session.progress.outcomes), None) or next((b.nodeid for b in session.blocks if b.nodeid), None)
    files = session.progress.files
    return files[0] if files else file_of(first) if first else None


def _named(session: Session) -> str:
    name = _name(session)
    return f" ({name})" if name else ""


def _say(session: Session) -> str:
    end = "" if session.ending.exit is None else f", exit {session.ending.exit}"
    return f"{say_counts(session.counts) if session.counts else 'no counts'}{end}"


def say_counts(counts: Counts) -> str:
    """`2 failed, 1 error, 5 passed`: what is none is left out."""
    pairs = (
        (counts.failed, "failed"),
        (counts.errors, "error" if counts.errors == 1 else "errors"),
        (counts.passed, "passed"),
        (counts.skipped, "skipped"),
        (counts.xfailed, "xfailed"),
        (counts.xpassed, "xpassed"),
    )
    return ", ".join(f"{number} {word}" for number, word in pairs if number) or "no tests"
