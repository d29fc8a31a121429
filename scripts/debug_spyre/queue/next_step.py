"""What comes next in a session: one table of situations, for the answers, `status` and the page alike."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from debug_spyre.queue.queue_rules import in_order, nothing_explains
from debug_spyre.session.state import Hypothesis, Session
from debug_spyre.vocabulary.words import BASELINE, HypothesisStatus, RunStatus, Status

TIERS = ("shadow", "ladder", "repro")  # the verbs that examine a failure, the cheapest first
ADD = "debug-spyre hypothesis add TEXT --test COMMAND"
PROGRAMS = frozenset({"python", "python3", "bash", "sh", "torchrun"})
MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class Step:
    """The situation in a sentence, and the one command that moves on. `command` "": the session is closed."""

    why: str
    command: str


def next_step(session: Session) -> Step:
    """The first situation of the table that fits."""
    if session.status is not Status.INVESTIGATING:
        return Step(f"the session is {session.status}", "")
    running = next((run for run in session.runs.values() if not run.is_finished), None)
    if running is not None:
        return Step(f"{running.id} is running", f"debug-spyre wait {running.id}")
    row = session.in_progress
    if row is not None:
        return _of_row(session, row)
    if session.members and not _has_baseline(session):
        probe = session.probe or session.members[0].nodeid
        return Step("there is no baseline yet", f"debug-spyre run --as baseline {shlex.quote(probe)}")
    if session.validation is not None:
        return _validated(session)
    cause = next((h for h in session.hypotheses if h.status is HypothesisStatus.CONFIRMED), None)
    if cause is not None or session.verified_repro is not None:
        return _explained(session, cause)
    if nothing_explains(session):
        return _next_tier(session)
    if session.queued:
        first = in_order(session.queued)[0]
        return Step(f"hypothesis {first.number} is the next in order", f"debug-spyre hypothesis start {first.number}")
    return Step("no hypothesis is queued", "debug-spyre hypothesis seed" if not session.hypotheses else ADD)


def _has_baseline(session: Session) -> bool:
    return bool(session.last_run(BASELINE)) or any(report.verb == "investigate" for report in session.reports)


def _of_row(session: Session, row: Hypothesis) -> Step:
    """A row is tested, or its run is there and it is concluded."""
    began = row.started_at or ""
    done = [r for r in session.runs.values() if r.hypothesis == row.number and r.is_finished and r.started_at >= began]
    if not done:
        return Step(f"hypothesis {row.number} is in progress: test it", under_lock(row.command or row.test))
    told = done[-1]
    how = "passes" if told.status is RunStatus.PASSED else "fails"
    command = f"debug-spyre hypothesis conclude {row.number} VERDICT 'SENTENCE' --run {told.id}"
    return Step(f"hypothesis {row.number} was tested by {told.id}, which {how}", command)


def under_lock(command: str) -> str:
    """A test that somebody wrote down, as it is typed: what is no verb of ours runs under the card's lock."""
    first = command.split(" ", 1)[0]
    is_program = first in PROGRAMS or "/" in first
    return f"debug-spyre exec -- {command}" if is_program else command


def _validated(session: Session) -> Step:
    """The table is filled: end it, or see what is not met."""
    gate = (session.validation.gate if session.validation else {}).get("gate")
    if gate == "open":
        return Step("all conditions are met", "debug-spyre finish")
    return Step("some conditions are not met", "debug-spyre close resolved --check")


def _explained(session: Session, cause: Hypothesis | None) -> Step:
    """A cause is known: what is queued is no reason to wait, but for `resolved` it has to be concluded or dropped."""
    known = f"hypothesis {cause.number} is confirmed" if cause else "a script proves the bug"
    rows = [str(h.number) for h in in_order(session.queued)[:MOST_ROWS]]
    left = f" (rows that it answers: debug-spyre hypothesis drop {' '.join(rows)} 'REASON')" if rows else ""
    if session.tree_seen not in {None, session.tree.get("digest")}:
        return Step(f"{known}, and the tree is changed{left}", "debug-spyre finish")
    if session.verified_repro is not None:
        return Step(f"{known}: change the code or the test, or hand it over as it is{left}", "debug-spyre finish")
    return Step(f"{known}: change the code or the test, then{left}", "debug-spyre finish")


def _next_tier(session: Session) -> Step:
    """Every row is tested and none explains it: the first verb that has not looked yet."""
    looked = {report.verb for report in session.reports}
    verb = next((verb for verb in TIERS if verb not in looked), None)
    why = "every hypothesis was tested and none explains the failure"
    return Step(why, f"debug-spyre {verb}" if verb else "debug-spyre close blocked --next 'TEXT'")
