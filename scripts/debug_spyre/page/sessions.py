"""The list of all sessions as frozen values: what each is about, where it stands, how large it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from debug_spyre.page.heading import live, status_word
from debug_spyre.page.page_context import Frame, Link, Material, Word
from debug_spyre.page.queue_rows import status_word as row_word
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.local_time import Moment, Zone
from debug_spyre.vocabulary.masking import mask
from debug_spyre.vocabulary.safe_text import Piece, clean, count, one_line, quoted, size
from debug_spyre.vocabulary.words import HypothesisStatus, Status

STATUSES = tuple(Status)


@dataclass(frozen=True, slots=True)
class Listed:
    """A session with what only the disk knows; `session` None: its journal can't be read, `trouble` says why."""

    stem: str
    session: Session | None
    octets: int
    page: bool = True
    trouble: str = ""
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One session."""

    status: Word
    note: str
    link: Link
    symptom: tuple[Piece, ...]
    now: tuple[Piece, ...]
    glyphs: tuple[tuple[Word, str], ...]  # and the row in words
    glyphs_said: str
    members: str
    backend: str
    opened: Moment | None
    updated: Moment | None
    size: str


@dataclass(frozen=True, slots=True)
class IndexView:
    """The list."""

    checkout: str
    rows: tuple[IndexRow, ...]
    counts: tuple[tuple[Word, int], ...]
    total: str
    says: str
    updated: str
    investigating: bool
    warning: str


def index_view(listed: Sequence[Listed]) -> IndexView:
    """All sessions: those under work first, then newest first."""
    rows = sorted(listed, key=lambda item: item.stem, reverse=True)
    rows.sort(key=lambda item: item.session is None or item.session.status is not Status.INVESTIGATING)
    sessions = [item.session for item in listed if item.session]
    counts = Counter(s.status for s in sessions)
    open_now = counts[Status.INVESTIGATING]
    newest = max((s.updated_at for s in sessions), default="")
    checkout = next((Frame(Material(s)).line(s.checkout, 300) for s in sessions), "")
    total = size(sum(item.octets for item in listed))
    says = f"{count(len(listed), 'session')}, {open_now} investigating, {total}"
    return IndexView(
        checkout=checkout,
        rows=tuple(_row(item) for item in rows),
        counts=tuple((Word(s.value, s.value), counts[s]) for s in STATUSES if counts[s]),
        total=total,
        says=says,
        updated=newest,
        investigating=open_now > 0,
        warning=f"{open_now} sessions are investigating: a command goes to the one that its client opened; --session STEM says it otherwise."
        if open_now > 1
        else "",
    )


def _row(item: Listed) -> IndexRow:
    href = quoted(f"{item.stem}.html") if item.page else ""
    session = item.session
    if session is None:
        trouble = (Piece(one_line(mask(clean(item.trouble)), 300)),)
        link = Link(one_line(mask(clean(item.stem)), 120), href)
        return IndexRow(
            Word("unknown", "unreadable"), "", link, trouble, (), (), "", "", "", None, None, size(item.octets)
        )
    frame = Frame(Material(session, secrets=item.secrets))
    newest = [r for r in session.runs.values() if r.provenance]
    dated = Zone(frame.zone.offset)  # a list of many days: every time with its date
    return IndexRow(
        status=status_word(frame),
        note=_note(frame, session),
        link=Link(frame.line(session.slug, 120), href),
        symptom=_plain(frame.prose(session.symptom, 240)),
        now=_now(frame, session),
        glyphs=tuple(
            (word := row_word(h.status), f"H{h.number} {word.text}: {frame.line(h.text, 100)}")
            for h in session.hypotheses[:24]
        ),
        glyphs_said=_said(session),
        members=count(len(session.members), "member"),
        backend=frame.line(_revision(newest[-1].provenance), 16) if newest else "",
        opened=dated.moment(session.opened_at),
        updated=dated.moment(session.updated_at),
        size=size(item.octets),
    )


def _revision(provenance: dict[str, object]) -> str:
    """The torch-spyre revision in its short form, wherever a provenance record has it."""
    record = provenance.get("torch_spyre") or provenance.get("torch-spyre")
    if isinstance(record, dict):
        record = record.get("revision") or record.get("commit") or record.get("version")
    return str(record or "")[:10]


def _note(frame: Frame, session: Session) -> str:
    if session.closing:
        if session.status is Status.RESOLVED:
            return "by workaround" if session.closing.workaround else ""
        return "escalated" if session.closing.escalated else "needs a person"
    if session.validation:
        return f"gate {frame.line(session.validation.gate.get('gate', 'unknown'), 12)}"
    return ""


def _now(frame: Frame, session: Session) -> tuple[Piece, ...]:
    closing = session.closing
    if closing and closing.cause:
        return (Piece("What it was:", "strong"), Piece(" "), *_plain(frame.prose(closing.cause, 240)))
    if closing and closing.next_action:
        return (Piece("Next:", "strong"), Piece(" "), *_plain(frame.prose(closing.next_action, 240)))
    running = live(frame)
    if running:
        failing = f", {running.failed} failing" if running.failed else ""
        return (Piece("Now:", "strong"), Piece(f" {running.name}, {running.says}{failing}"))
    proved = [h for h in session.hypotheses if h.status is HypothesisStatus.CONFIRMED and h.outcome]
    if proved and not session.in_progress:
        return (Piece("Found:", "strong"), Piece(f" {frame.line(proved[-1].outcome or '', 240)}"))
    row = session.in_progress
    if row:
        return (Piece("Now:", "strong"), Piece(f" H{row.number} {frame.line(row.text, 160)}"))
    queued = len(session.queued)
    return (Piece("Now:", "strong"), Piece(f" {count(queued, 'row')} queued, none in progress"))


def _plain(parts: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """References lead nowhere on the list."""
    return tuple(Piece(p.text, p.kind) for p in parts)


def _said(session: Session) -> str:
    counts = Counter(h.status for h in session.hypotheses)
    return ", ".join(f"{counts[s]} {s.value.replace('-', ' ')}" for s in HypothesisStatus if counts[s]) or "empty"
