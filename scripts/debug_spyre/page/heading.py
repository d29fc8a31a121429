"""Section 1: what is broken, where we are in five facts, what runs right now, and the cluster's members."""

from __future__ import annotations

import re
from dataclasses import dataclass

from debug_spyre.page.nodeid_layout import NodeId, node_id
from debug_spyre.page.page_context import Frame, Link, Word, scope_words
from debug_spyre.page.validation_section import ValidationView
from debug_spyre.session.state import Hypothesis, Run
from debug_spyre.vocabulary.local_time import Moment, between, duration
from debug_spyre.vocabulary.safe_text import Piece, count
from debug_spyre.vocabulary.words import POST_FIX, POST_FIX_MATRIX, HypothesisStatus, Status

_FIX = re.compile(r"(?:work-?around|fix)\b", re.IGNORECASE)
FEW_DONE = 3  # fewer finished tests give no estimate


@dataclass(frozen=True, slots=True)
class Fact:
    """One of the facts under the title; derived, never typed."""

    label: str
    word: Word
    note: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Live:
    """The run in flight."""

    link: Link
    name: str
    row: Link | None
    done: int | None
    failed: int
    total: int | None
    started: Moment
    elapsed: str
    left: str  # an estimate from the tests that are done; empty where nothing can be said
    last: Moment
    current: NodeId | None
    scope: str
    wait: str

    @property
    def says(self) -> str:
        """37 of 60 done."""
        if self.done is None:
            return "started"
        of = f" of {self.total:,}" if self.total is not None else ""
        return f"{self.done:,}{of} done"


def facts(frame: Frame, checked: ValidationView) -> tuple[Fact, ...]:
    """Status, cause, members and matrix after the fix, gate; those that have nothing to say yet are left out."""
    dossier = frame.material.dossier
    is_found = dossier is not None and bool(dossier.causes)
    found = (
        _status(frame),
        *(() if is_found else (_cause(frame),)),  # its card says more
        _after(frame, POST_FIX, "Members after the fix"),
        _matrix(frame, checked),
        _gate(frame),
    )
    shown = tuple(fact for fact in found if fact.word.css != "to-come")
    return () if len(shown) == 1 and is_found else shown  # the bar has the status


def status_word(frame: Frame) -> Word:
    """The session's status; what was handed over waits for somebody else and is no alarm."""
    closing, status = frame.session.closing, frame.session.status
    handed_over = status is Status.BLOCKED and closing is not None and closing.escalated
    return Word("escalated" if handed_over else status.value, status.value)


def _status(frame: Frame) -> Fact:
    session = frame.session
    if session.closing:
        how = "by workaround, " if session.closing.workaround and session.status is Status.RESOLVED else ""
        return Fact(
            "Status",
            status_word(frame),
            (
                Piece(
                    f"{how}{frame.at(session.closing.at).text}, after {duration(between(session.opened_at, session.closing.at))}"
                ),
            ),
        )
    since = session.reopened[-1].at if session.reopened else session.opened_at
    words = "reopened" if session.reopened else "since"
    return Fact("Status", status_word(frame), (Piece(f"{words} {frame.at(since).text}"),))


def _cause(frame: Frame) -> Fact:
    rows = frame.session.hypotheses
    confirmed = [h for h in rows if h.status is HypothesisStatus.CONFIRMED]
    if confirmed:
        row = ([h for h in confirmed if not _is_fix(h)] or confirmed)[-1]
        return Fact(
            "Cause",
            Word("confirmed", "confirmed"),
            (Piece(f"H{row.number}", "", f"#h{row.number}"), Piece(" " + frame.line(row.text, 60))),
        )
    tested = [h for h in rows if h.status in {HypothesisStatus.RULED_OUT, HypothesisStatus.INCONCLUSIVE}]
    note = f"{len(tested)} of {count(len(rows), 'row')} tested" if rows else "queue is empty"
    return Fact("Cause", Word("unknown", "not known yet"), (Piece(note),))


def _is_fix(row: Hypothesis) -> bool:
    """A change that works is no cause."""
    return row.test_class == "code-change" or _FIX.match(row.text) is not None


def _after(frame: Frame, name: str, label: str) -> Fact:
    runs = frame.session.named_runs(name)
    if not runs:
        return Fact(label, Word("to-come", "not run yet"))
    run = runs[-1]
    link = frame.run_link(run.id)
    note: tuple[Piece, ...] = (Piece(f"{scope_words(run)}, "), Piece(link.text, "", link.href))
    if not run.is_finished:
        return Fact(label, Word("running", f"{run.done or 0} done, {run.failed_so_far or 0} failing"), note)
    if not run.valid:
        return Fact(label, Word("unknown", f"{run.status.value}, not valid"), note)
    if run.counts is None:
        return Fact(label, Word("unknown", f"{run.status.value}, no counts"), note)
    return Fact(label, counts_word(run), note)


def _matrix(frame: Frame, checked: ValidationView) -> Fact:
    """The matrix after the fix against the one before: old failures are no news, new ones are."""
    fact = _after(frame, POST_FIX_MATRIX, "Matrix after the fix")
    newest = frame.session.named_runs(POST_FIX_MATRIX)[-1:]
    before, after = checked.heads[2], checked.heads[3]
    if not newest or not newest[0].is_finished or not newest[0].valid or before is None or after is None:
        return fact
    if newest[0].counts is None or after.text != frame.say(newest[0].id) or not checked.matrix_total:
        return fact
    if checked.new_count:
        return Fact(fact.label, Word("failed", count(checked.new_count, "new failure")), fact.note)
    if fact.word.css == "failed":
        return Fact(fact.label, Word("passed", "no new failure"), (Piece(f"{fact.word.text} as before, "), *fact.note))
    return fact


def counts_word(run: Run) -> Word:
    """A finished run's result: how many of its tests failed, or that all passed."""
    counts = run.counts or {}
    bad = counts.get("failed", 0) + counts.get("errors", 0)
    total = sum(v for v in counts.values() if isinstance(v, int))
    passed = counts.get("passed", 0)
    if bad:
        return Word("failed", f"{bad:,} of {total:,} failed")
    if run.status.value == "passed" and passed:
        rest = f", {total - passed:,} not run or expected to fail" if total > passed else ""
        return Word("passed", f"{passed:,} passed{rest}")
    return Word("error" if run.status.value != "passed" else "unknown", f"{run.status.value}, none passed")


def result_words(run: Run) -> str:
    """The same beside the run's status, without saying it twice."""
    counts = run.counts or {}
    bad = counts.get("failed", 0) + counts.get("errors", 0)
    total = sum(v for v in counts.values() if isinstance(v, int))
    if bad:
        return f"{bad:,} of {count(total, 'test')}"
    others = ", ".join(f"{counts[key]:,} {key}" for key in ("skipped", "xfailed", "xpassed") if counts.get(key))
    return count(total, "test") + (f", {others}" if others else "")


def _gate(frame: Frame) -> Fact:
    validation = frame.session.validation
    if validation is None:
        return Fact("Gate", Word("to-come", "not judged yet"), (Piece("no validation"),))
    if frame.session.closing is not None and frame.session.status is Status.BLOCKED:
        return Fact("Gate", Word("to-come", "not asked"), (Piece("the session ended as blocked"),))
    state = str(validation.gate.get("gate", "unknown"))
    reasons = validation.gate.get("reasons") or ()
    word = state if state in {"open", "shut"} else "unknown"
    note = (Piece(count(len(reasons), "reason"), "", "#gate"),) if reasons else ()
    return Fact("Gate", Word(word, word), note)


def _left(run: Run, seconds: float | None) -> str:
    """How long it may still take if the rest is like what is done."""
    if not run.done or not run.collected or run.done < FEW_DONE or run.done >= run.collected or not seconds:
        return ""
    return f"about {duration(seconds / run.done * (run.collected - run.done))} left"


def live(frame: Frame) -> Live | None:
    """The newest run that has not ended, while the session is investigating."""
    running = [r for r in frame.session.runs.values() if not r.is_finished]
    if not running or frame.session.status is not Status.INVESTIGATING:
        return None
    run = max(running, key=lambda r: r.started_seq)
    return Live(
        frame.run_link(run.id),
        frame.line(run.name or run.verb, 60),
        frame.row_link(run.hypothesis) if run.hypothesis is not None else None,
        run.done,
        run.failed_so_far or 0,
        run.collected,
        frame.at(run.started_at),
        duration(between(run.started_at, frame.session.updated_at)),
        _left(run, between(run.started_at, frame.session.updated_at)),
        frame.at(frame.session.updated_at),
        node_id(frame.say(run.current)) if run.current else None,
        scope_words(run),
        f"debug-spyre wait {frame.say(run.id)}",
    )
