"""A row that is started, run and concluded in one call: its events, each checked under the journal's lock."""

from __future__ import annotations

from collections.abc import Iterable

from debug_spyre.queue import queue_rules
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.errors import RefusedError
from debug_spyre.vocabulary.words import HypothesisStatus


def begin_row(folder: Folder, number: int, command: str, *, must: bool) -> None:
    """Put a queued row in progress before its run begins; one that may not start now is left as it is, unless it `must`.

    Raises:
        RefusedError: it must, and there is no baseline, or another row is in progress.
    """

    def make(session: Session) -> Iterable[ev.Event]:
        row = session.hypothesis(number)
        if row is None or row.status is HypothesisStatus.IN_PROGRESS:
            return []
        try:
            queue_rules.check_start(session, row)
        except RefusedError:
            if must:
                raise
            return []
        return [ev.HypothesisStarted(number=number, command=command)]

    folder.journal.record(make)


def end_row(folder: Folder, number: int, said: tuple[str, str], run: str) -> None:
    """The verdict that was foretold for how the run ended."""

    def make(session: Session) -> Iterable[ev.Event]:
        row = queue_rules.row_of(session, number)
        runs = queue_rules.check_conclude(session, row, [run])
        digest = session.runs[run].digest[: queue_rules.MOST_LINES]
        return queue_rules.concluding(row, *said, runs, queue_rules.check_excerpt(digest))

    folder.journal.record(make)
