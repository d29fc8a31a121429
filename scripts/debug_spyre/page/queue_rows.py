"""Section 3: the hypothesis queue, a row a hypothesis or fix, in the order in which they were queued."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from debug_spyre.page.page_context import Frame, Link, Word
from debug_spyre.page.selection import MOST_ROWS, OLDER, rows_on_page
from debug_spyre.page.timeline import GLYPHS
from debug_spyre.session.state import Hypothesis
from debug_spyre.vocabulary.local_time import Moment, duration
from debug_spyre.vocabulary.safe_text import Piece, clip
from debug_spyre.vocabulary.words import HypothesisStatus

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
