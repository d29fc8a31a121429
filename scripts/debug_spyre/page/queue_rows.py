"""Section 3: the hypothesis queue, a row a hypothesis or fix; what the log says of a run in words, and its lines of output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

from debug_spyre.page.page_context import MOST_ROWS, OLDER, Frame, Link, Tail, Word, rows_on_page
from debug_spyre.page.timeline import GLYPHS
from debug_spyre.session.state import Hypothesis, Run
from debug_spyre.vocabulary.local_time import Moment, between, duration
from debug_spyre.vocabulary.safe_text import Piece, clip, count, size
from debug_spyre.vocabulary.words import (
    BASELINE,
    CPU_CONTROL,
    FULL_MATRIX,
    POST_FIX,
    POST_FIX_MATRIX,
    HypothesisStatus,
    RunStatus,
)

TAIL_LINES, LINE_WIDTH = 14, 240


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of output; `css` marks what bears the load."""

    text: str
    css: str


def tail_lines(frame: Frame, tail: Tail | None) -> tuple[tuple[OutputLine, ...], str, str]:
    """The last lines, their label, and what the cut left out."""
    if tail is None:
        return (), "", ""
    lines = frame.say("\n".join(tail.lines)).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    shown = lines[-TAIL_LINES:]
    if not shown:
        return (), "", "the output is empty" if tail.size == 0 else ""
    made = tuple(output_line(frame, line, said=True) for line in shown)
    noise = f", {count(tail.noise, 'line')} of torch's trace among them" if tail.noise else ""
    total = tail.total if tail.total is not None and tail.total >= len(shown) else None
    if total == len(shown):
        return made, f"Output, {count(total, 'line')}", ""
    whole = f"{total:,} lines" if total is not None else size(tail.size)
    earlier = (
        f"{total - len(shown):,} {'' if noise else 'earlier '}lines left out"
        if total is not None
        else f"earlier lines of {size(tail.size)} left out"
    ) + noise
    return made, f"Output, last {len(shown)} of {whole}", earlier


def output_line(frame: Frame, line: str, *, said: bool = False) -> OutputLine:
    """One line, cut, with its accent. `said`: it is cleaned and masked already."""
    words = clip(line, 2 * LINE_WIDTH) if said else clip(frame.say(line), LINE_WIDTH)  # the digest is cut already
    return OutputLine(words, line_css(words))


def line_css(line: str) -> str:
    """Which lines of output bear the load: failures red, fallbacks amber, passes green."""
    if "FallbackWarning" in line or "falling back to" in line or line.startswith("fallback"):
        return "amber"
    if "Mismatched elements" in line or "Greatest absolute" in line or "Greatest relative" in line:
        return "red"
    start = line.lstrip()[:11]
    if line.startswith("E  ") or start.startswith(("FAILED", "ERROR", "Mismatched", "Greatest", "mismatch")):
        return "red"
    if (
        (" failed" in line or " error" in line)
        and " in " in line
        and line.strip(" =").endswith(("s", ")"))
        and line[:1] in "=0123456789"
    ):
        return "red"
    if " passed" in line and " in " in line and line[:1] in "=0123456789":
        return "green"
    return ""


ORDER = tuple(HypothesisStatus)


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One row."""

    number: int
    status: Word
    text: tuple[Piece, ...]
    reason: tuple[Piece, ...]
    outcome: tuple[Piece, ...]
    command: str
    kind: str  # probe, code change, full run
    cost: str
    confidence: str
    origin: str
    runs: tuple[Link, ...]
    excerpt: tuple[str, ...]
    added: Moment
    concluded: Moment | None


@dataclass(frozen=True, slots=True)
class QueueView:
    """The queue with the counts for its filter."""

    rows: tuple[QueueRow, ...]
    counts: tuple[tuple[Word, int], ...]
    changed: Moment | None
    total: int
    older: Link | None  # the file with the rows that are left out here


def status_word(status: HypothesisStatus) -> Word:
    """A row's status: css and word."""
    return Word(GLYPHS[status], status.value.replace("-", " "))


def queue(frame: Frame) -> QueueView:
    """Section 3."""
    rows = frame.session.hypotheses
    counts = Counter(row.status for row in rows)
    times = [t for row in rows for t in (row.added_at, row.started_at, row.concluded_at) if t]
    return QueueView(
        rows=tuple(_row(frame, row) for row in sorted(rows_on_page(rows), key=_place)),
        total=len(rows),
        older=frame.file_link(OLDER) if len(rows) > MOST_ROWS else None,
        counts=tuple((status_word(status), counts[status]) for status in ORDER if counts[status]),
        changed=frame.at(max(times)) if times else None,
    )


def _place(row: Hypothesis) -> int:
    """What is confirmed stands first, what was dropped last; all others keep their order."""
    return {HypothesisStatus.CONFIRMED: 0, HypothesisStatus.DROPPED: 2}.get(row.status, 1)


def runs_of(frame: Frame, row: Hypothesis) -> tuple[str, ...]:
    """The runs of a row: those that its verdict names, then those that were made for it."""
    return tuple(dict.fromkeys([*row.runs, *frame.runs_for.get(row.number, [])]))


def _row(frame: Frame, row: Hypothesis) -> QueueRow:
    runs = runs_of(frame, row)
    return QueueRow(
        number=row.number,
        status=status_word(row.status),
        text=frame.prose(row.text, 1000),
        reason=frame.prose(row.reason, 600) if row.reason else (),
        outcome=frame.prose(row.outcome, 1000) if row.outcome else (),
        command=clip(frame.say(row.command or row.test), 1500),
        kind=frame.line(row.test_class.replace("-", " "), 40),
        cost=duration(row.cost_seconds) if row.cost_seconds is not None else "",
        confidence=frame.line(row.confidence, 20),
        origin=frame.line(row.origin, 40),
        runs=tuple(frame.run_link(run) for run in runs[-8:]),
        excerpt=tuple(frame.lines(row.excerpt[:10])),
        added=frame.at(row.added_at),
        concluded=frame.at(row.concluded_at) if row.concluded_at else None,
    )


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
    if run.name == CPU_CONTROL and run.exit == 0:
        return Word("passed", "passes on the CPU")
    if run.verb == "investigate" and run.exit == 0:
        return Word("passed", "done")
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
    said: list[tuple[Piece, ...]] = []
    verdicts = []
    for number in numbers:
        row = frame.rows.get(number)
        if row is None or not row.is_concluded or (row.runs and run_id not in row.runs):
            continue
        verdicts.append((status_word(row.status), number))
        outcome = frame.prose(row.outcome, 600) if row.outcome else ()
        if outcome and outcome not in said:
            said.append(outcome)
            words += [Piece("; "), *outcome] if words else outcome
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
