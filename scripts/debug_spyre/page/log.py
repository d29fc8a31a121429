"""The whole page as one frozen value, for the templates and the Markdown twin, and the file of old rows beside a long session's page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from debug_spyre.page.actions import Action, actions
from debug_spyre.page.causes import CauseView, causes
from debug_spyre.page.experiments import ExperimentsView, experiments
from debug_spyre.page.findings import FindingsView, findings
from debug_spyre.page.heading import Fact, Live, facts, live, status_word
from debug_spyre.page.members import ClusterView, cluster
from debug_spyre.page.page_context import Frame, Link, Word, items_left_out, rows_left_out
from debug_spyre.page.provenance_section import ProvenanceView, provenance
from debug_spyre.page.queue_rows import QueueView, queue, rows_of, run_word, title
from debug_spyre.page.summary import SummaryView, summary
from debug_spyre.page.validation_section import ValidationView, validation
from debug_spyre.queue.session_warnings import SessionWarning, session_warnings
from debug_spyre.session.events import ExperimentNoted
from debug_spyre.session.state import Hypothesis, Run
from debug_spyre.vocabulary.local_time import Moment
from debug_spyre.vocabulary.safe_text import Piece, clip, count, one_line, quoted
from debug_spyre.vocabulary.words import Status

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


EXPLAINED = frozenset({"stale-summary", "no-baseline", "unattributed"})  # said in their own sections


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice under the title: `css` is its accent."""

    css: str
    word: Word | None
    lines: tuple[tuple[Piece, ...], ...]
    meta: tuple[Piece, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class LogView:
    """One session's page."""

    stem: str
    slug: str
    title: str
    symptom: tuple[Piece, ...]
    status: Word
    investigating: bool
    opened: Moment
    opened_local: str
    opened_by: str
    checkout: str
    updated: Moment
    last_seq: int
    ended: str
    causes: tuple[CauseView, ...]
    facts: tuple[Fact, ...]
    notices: tuple[Notice, ...]
    live: Live | None
    cluster: ClusterView
    summary: SummaryView
    queue: QueueView
    experiments: ExperimentsView
    validation: ValidationView
    findings: FindingsView
    actions: tuple[Action, ...]
    provenance: ProvenanceView
    files: Link
    journal: Link
    markdown: Link


def log_view(frame: Frame) -> LogView:
    """The page of a session."""
    session = frame.session
    running = live(frame)
    checked = validation(frame)
    slug = frame.line(session.slug, 120)
    return LogView(
        stem=frame.line(session.stem, 200),
        slug=slug,
        title=_title(slug, session.status, running),
        symptom=frame.prose(session.symptom, 1200),
        status=status_word(frame),
        investigating=session.status is Status.INVESTIGATING,
        opened=frame.at(session.opened_at),
        opened_local=frame.line(session.local_time, 60),
        opened_by=frame.line(session.opened_by, 40),
        checkout=frame.line(session.checkout, 300),
        updated=frame.at(session.updated_at),
        last_seq=session.last_seq,
        ended=_ended(frame),
        causes=causes(frame),
        facts=facts(frame, checked),
        notices=_notices(frame),
        live=running,
        cluster=cluster(frame),
        summary=summary(frame),
        queue=queue(frame),
        experiments=experiments(frame),
        validation=checked,
        findings=findings(frame),
        actions=actions(frame),
        provenance=provenance(frame),
        files=Link("raw files", frame.file_link("x").href.removesuffix("x")),
        journal=frame.file_link("journal.jsonl"),
        markdown=frame.file_link("log.md"),
    )


def _title(slug: str, status: Status, running: Live | None) -> str:
    """The title carries the progress for a tab in the background."""
    if running is None:
        return f"{slug} · {status.value} · debug-spyre"
    of = f"{running.done}/{running.total}" if running.total is not None and running.done is not None else "running"
    failing = f", {running.failed} failing" if running.failed else ""
    return f"({of}{failing}) {slug} · debug-spyre"


def _ended(frame: Frame) -> str:
    closing = frame.session.closing
    if closing is None:
        return ""
    if closing.status == Status.RESOLVED:
        approved = "a person approved the patch" if frame.session.approval else ""
        return "by a work-around" if closing.workaround else approved
    return "handed over to the torch-spyre team" if closing.escalated else "waits for a person"


def _notices(frame: Frame) -> tuple[Notice, ...]:
    found = [*_closing(frame), *_decisions(frame)]
    for note in frame.session.reopened[-1:]:
        if frame.session.status is Status.INVESTIGATING:
            words = (
                Piece(f"Reopened {frame.at(note.at).text} by {frame.line(note.by, 40)}: "),
                *frame.prose(note.reason, 600),
            )
            found.append(Notice("n-amber", None, (words,)))
    if frame.material.torn:
        text = "The journal's last line was torn by a crash while it was written; it was dropped. Nothing that was acknowledged is lost."
        found.append(Notice("n-amber", Word("unknown", "torn line"), ((Piece(text),),)))
    if frame.material.trouble:
        words = (Piece(frame.line(frame.material.trouble, 400)),)
        found.append(Notice("n-amber", Word("failed", "evidence changed"), (words,)))
    unknown = frame.session.unknown_events
    if unknown:
        text = f"{count(unknown, 'event')} of the journal: kinds that this version does not know; kept, not shown."
        found.append(Notice("n-amber", Word("unknown", "unknown events"), ((Piece(text),),)))
    found += [
        _concern(frame, c)
        for c in session_warnings(frame.session, frame.evidence)
        if c.code not in EXPLAINED and (frame.session.hypotheses or c.code != "few-rows")
    ]
    return tuple(found)


def _concern(frame: Frame, concern: SessionWarning) -> Notice:
    text = frame.prose(concern.text, 600)
    sentence = (Piece(text[0].text[:1].upper() + text[0].text[1:], text[0].kind, text[0].href), *text[1:])
    return Notice("n-amber", None, (sentence,), command=clip(frame.say(concern.next), 400))


def _closing(frame: Frame) -> list[Notice]:
    closing = frame.session.closing
    if closing is None:
        return []
    dossier = frame.material.dossier
    told = {cause.sentence for cause in dossier.causes} if dossier else set()
    parts = (
        ("What it was.", None if closing.cause in told else closing.cause),
        ("Wasted effort.", closing.wasted),
        ("Signal that points there.", closing.signal),
        ("Next action.", closing.next_action),
    )
    lines = tuple((Piece(head, "strong"), Piece(" "), *frame.prose(text, 2000)) for head, text in parts if text)
    meta: list[Piece] = [Piece(f"{closing.status} {frame.at(closing.at).text} by {frame.line(closing.by, 40)}")]
    if closing.workaround:
        meta.append(Piece(", by workaround: the fault in the backend remains"))
    if closing.escalated:
        link = frame.file_link(closing.escalated)
        meta += [Piece(", bundle for the torch-spyre team: "), Piece(link.text, "", link.href)]
    meta.append(Piece(". To go on: "))
    meta.append(Piece("debug-spyre reopen", "code"))
    css = "n-green" if closing.status == Status.RESOLVED else "n-amber" if closing.escalated else "n-red"
    word = Word("escalated" if css == "n-amber" else closing.status, closing.status)
    return [Notice(css, word, lines, tuple(meta))]


def _decisions(frame: Frame) -> list[Notice]:
    """Approval and overrides are a person's; a condition set aside is red."""
    found = []
    for override in frame.session.overrides:
        meta = f"condition {frame.line(override.code, 60)} set aside by {frame.line(override.by, 40)}, {frame.at(override.at).text}"
        found.append(
            Notice("n-red", Word("override", "override"), (frame.prose(override.reason, 800),), (Piece(meta),))
        )
    approval = frame.session.approval
    if approval:
        meta = f"the patch stays in the tree, approved by {frame.line(approval.by, 40)}, {frame.at(approval.at).text}"
        found.append(
            Notice("n-amber", Word("person", "patch approved"), (frame.prose(approval.reason, 800),), (Piece(meta),))
        )
    return found
