"""The file beside a long session's page: the rows and entries that the page leaves out, a line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from debug_spyre.page.page_context import Frame, items_left_out, rows_left_out
from debug_spyre.page.queue_rows import rows_of, run_word, title
from debug_spyre.session.events import ExperimentNoted
from debug_spyre.session.state import Hypothesis, Run
from debug_spyre.vocabulary.safe_text import one_line, quoted

WIDTH = 200


@dataclass(frozen=True, slots=True)
class OlderLine:
    """One row of the queue, or one entry of the log."""

    id: str
    when: str
    name: str
    status: str
    words: str
    outcome: str


@dataclass(frozen=True, slots=True)
class OlderView:
    """The file; entries newest first, rows by number."""

    stem: str
    slug: str
    rows: tuple[OlderLine, ...]
    entries: tuple[OlderLine, ...]
    page: str


def older(frame: Frame) -> OlderView | None:
    """None where the page shows all."""
    session = frame.session
    rows, items = rows_left_out(session.hypotheses), items_left_out(session)
    if not rows and not items:
        return None
    numbers = {note.seq: i for i, note in enumerate(session.experiments, start=1)}
    say = cache(frame.line)  # names and verdicts repeat
    return OlderView(
        stem=frame.line(session.stem, 200),
        slug=frame.line(session.slug, 120),
        rows=tuple(_row(frame, say, row) for row in rows),
        entries=tuple(
            _run(frame, say, item) if isinstance(item, Run) else _note(frame, say, item, numbers[item.seq])
            for item in items
        ),
        page=quoted(f"../{session.stem}.html"),
    )


def _row(frame: Frame, say: Callable[..., str], row: Hypothesis) -> OlderLine:
    return OlderLine(
        id=f"h{row.number}",
        when=say((row.concluded_at or row.added_at)[:19]),
        name=f"H{row.number}",
        status=row.status.value.replace("-", " "),
        words=frame.line(row.text, WIDTH),
        outcome=say(row.outcome or "", WIDTH),
    )


def _run(frame: Frame, say: Callable[..., str], run: Run) -> OlderLine:
    rows = [frame.rows[number] for number in rows_of(frame, run) if number in frame.rows]
    shown = [row.outcome for row in rows if row.is_concluded and row.outcome and run.id in (row.runs or (run.id,))]
    said = shown[0] if shown else run.digest[0] if run.digest else ""
    numbers = " ".join(f"H{row.number}" for row in rows[:3])
    return OlderLine(
        id=say(run.id),
        when=say(run.started_at[:19]),
        name=say(f"{run.id} {title(run)}", 80),
        status=run_word(run, frame.reports_of).text,
        words=one_line(frame.short_command(run) or frame.command(run), WIDTH),
        outcome=f"{numbers} {say(said, WIDTH)}".strip(),
    )


def _note(frame: Frame, say: Callable[..., str], note: ExperimentNoted, number: int) -> OlderLine:
    return OlderLine(
        id=f"n{number}",
        when=say(note.at[:19]),
        name=frame.line(note.text, 80),
        status="noted",
        words=frame.line(note.command or "", WIDTH),
        outcome=say(note.conclusion or "", WIDTH),
    )
