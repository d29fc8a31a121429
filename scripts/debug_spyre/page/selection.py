"""What of a long session stands on its page: the newest entries, and rows by what they are worth; the rest lies in a file beside it."""

from __future__ import annotations

from collections.abc import Sequence

from debug_spyre.session.events import ExperimentNoted
from debug_spyre.session.state import Hypothesis, Run, Session
from debug_spyre.vocabulary.words import HypothesisStatus

OLDER = "older.html"  # in the session's folder
MOST_ROWS = 300
WHOLE_ENTRIES, SHORT_ENTRIES = 40, 300  # the newest are shown in full, those before them on a line each
_WORTH = {HypothesisStatus.IN_PROGRESS: 3, HypothesisStatus.CONFIRMED: 2, HypothesisStatus.QUEUED: 1}

Item = Run | ExperimentNoted


def rows_on_page(rows: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The row in progress, confirmed rows, open ones, then the newest of all others, as far as there is room."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    best = sorted(rows, key=lambda row: (_WORTH.get(row.status, 0), row.number), reverse=True)[:MOST_ROWS]
    return sorted(best, key=lambda row: row.number)


def rows_left_out(rows: Sequence[Hypothesis]) -> list[Hypothesis]:
    """All others."""
    here = {row.number for row in rows_on_page(rows)}
    return [row for row in rows if row.number not in here]


def log_items(session: Session) -> list[Item]:
    """Runs and noted experiments, newest first."""
    items: list[tuple[int, Item]] = [(run.started_seq, run) for run in session.runs.values()]
    items += [(note.seq, note) for note in session.experiments]
    items.sort(key=lambda item: item[0], reverse=True)
    return [item for _, item in items]


def items_on_page(session: Session) -> tuple[list[Item], list[Item]]:
    """(those shown in full, those on a line)."""
    items = log_items(session)
    return items[:WHOLE_ENTRIES], items[WHOLE_ENTRIES : WHOLE_ENTRIES + SHORT_ENTRIES]


def items_left_out(session: Session) -> list[Item]:
    """All older ones."""
    return log_items(session)[WHOLE_ENTRIES + SHORT_ENTRIES :]
