"""The words of the project, one per thing: statuses, verdicts, predicates, well-known run names."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Status of a session."""

    INVESTIGATING = "investigating"
    BLOCKED = "blocked"
    RESOLVED = "resolved"


class HypothesisStatus(StrEnum):
    """Status of one row of the queue; the last three are verdicts."""

    QUEUED = "queued"
    IN_PROGRESS = "in-progress"
    CONFIRMED = "confirmed"
    RULED_OUT = "ruled-out"
    INCONCLUSIVE = "inconclusive"
    DROPPED = "dropped"  # taken off the queue without a test, with a reason


VERDICTS = (HypothesisStatus.CONFIRMED, HypothesisStatus.RULED_OUT, HypothesisStatus.INCONCLUSIVE)


class RunStatus(StrEnum):
    """How a run ended (contracts: `run --json`)."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    RUNNING = "running"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    BUSY = "busy"
    ORPHANS = "orphans"
    INVALID = "invalid"
    INTERRUPTED = "interrupted"
    KILLED = "killed"
    LOST = "lost"


class GateState(StrEnum):
    """The gate's answer; unknown is not open."""

    OPEN = "open"
    SHUT = "shut"
    UNKNOWN = "unknown"


CARVED_OUT = "carved-out"  # relation of a session to the one that members left for

APPROVED_CHANGE = "the change that was approved"  # the note of its file

FULL_MATRIX = "full-matrix"
BASELINE = "baseline"
CPU_CONTROL = "cpu-control"
POST_FIX = "post-fix"
POST_FIX_MATRIX = "post-fix-matrix"
WORK_BEFORE = "work-before"  # the members once more, their device ops, CPU ops and transfers counted
WORK_AFTER = "work-after"
VERBOSE = "verbose"
RUN_NAMES = (FULL_MATRIX, BASELINE, CPU_CONTROL, POST_FIX, POST_FIX_MATRIX, VERBOSE)
