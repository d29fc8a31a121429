"""What the log says of a run in words: its status, its rows, the verdicts that rest on it, how long it took and who ran it."""

from __future__ import annotations

from collections.abc import Container

from debug_spyre.page.page_context import Frame, Word
from debug_spyre.page.queue_rows import status_word
from debug_spyre.session.state import Run
from debug_spyre.vocabulary.local_time import between, duration
from debug_spyre.vocabulary.safe_text import Piece
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX, POST_FIX, POST_FIX_MATRIX, RunStatus

_CSS = {
    RunStatus.PASSED: "passed",
    RunStatus.FAILED: "failed",
    RunStatus.RUNNING: "running",
    RunStatus.TIMEOUT: "late",
    RunStatus.STALLED: "late",
    RunStatus.INVALID: "unknown",
    RunStatus.LOST: "unknown",
    RunStatus.INTERRUPTED: "skipped",
    RunStatus.BUSY: "skipped",
}


_ANSWERED = {"shadow": "found it", "ladder": "found it", "sweep": "found it"}  # a failing test is what they look for
_REPRO = {0: "shows the fault", 3: "does not show it"}


def _is_control(run: Run) -> bool:
    return any(word.endswith("_control.py") for word in run.argv)


def run_word(run: Run, reported: Container[str | None] = ()) -> Word:
    """A run's status by what it means: css and word; a command that is no pytest run has its exit status only.

    `reported`: ids of runs that a report rests on.
    """
    answered = _ANSWERED.get(run.verb)
    if answered and run.status is RunStatus.FAILED and run.id in reported:
        return Word("passed", answered)
    if run.verb == "repro" and run.name is None and run.pytest_args is None and run.exit in _REPRO:
        return Word("passed", "right on the CPU" if _is_control(run) and run.exit else _REPRO[run.exit])
    if run.pytest_args is None and run.status in {RunStatus.PASSED, RunStatus.FAILED} and run.exit is not None:
        return Word("passed" if run.exit == 0 else "failed", f"exit {run.exit}")
    return Word(_CSS.get(run.status, "error"), run.status.value)


def rows_of(frame: Frame, run: Run) -> list[int]:
    """The rows that a run tests: its own, and those whose verdict names it."""
    own = [run.hypothesis] if run.hypothesis is not None else []
    return list(dict.fromkeys([*own, *frame.rows_naming.get(run.id, [])]))


def conclusion(frame: Frame, run_id: str, numbers: list[int]) -> tuple[tuple[Piece, ...], tuple[tuple[Word, int], ...]]:
    """The verdicts of the run's rows, in words, where this run is the evidence for them."""
    words: list[Piece] = []
    verdicts = []
    for number in numbers:
        row = frame.rows.get(number)
        if row is None or not row.is_concluded or (row.runs and run_id not in row.runs):
            continue
        verdicts.append((status_word(row.status), number))
        if row.outcome:
            words += [Piece(" ")] if words else []
            words += frame.prose(row.outcome, 600)
    return tuple(words), tuple(verdicts)


STANDING = {
    FULL_MATRIX: (Piece("The matrix before a fix."),),
    BASELINE: (Piece("The state before a fix."),),
    POST_FIX: (Piece("Judged under "), Piece("validation", "", "#validation"), Piece(".")),
    POST_FIX_MATRIX: (Piece("Judged under "), Piece("validation", "", "#validation"), Piece(".")),
}


def title(run: Run) -> str:
    """Its name, and the verb where that says more."""
    name = run.name or run.verb
    return f"{name} ({run.verb})" if run.name and run.verb not in {"run", "exec", run.name} else name


def who(frame: Frame, who: str) -> str:
    """Who did it, where it was not the one who opened the session."""
    return "" if who == frame.session.opened_by else f"by {frame.line(who, 40)}"


def took(frame: Frame, run: Run) -> str:
    """Its length, so far where it has not ended."""
    if run.is_finished:
        return f"took {duration(run.seconds)}"
    return f"{duration(between(run.started_at, frame.session.updated_at))} so far"
