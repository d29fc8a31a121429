"""Section 1: what is broken, where we are in five facts, what runs right now, and the cluster's members."""

from __future__ import annotations

from dataclasses import dataclass

from debug_spyre.core.evidence import Failure
from debug_spyre.core.session import Run
from debug_spyre.core.view.frame import Frame, Link, Word, scope_words
from debug_spyre.core.view.moments import Moment, between, duration
from debug_spyre.core.view.nodeids import Group, NodeId, groups, node_id
from debug_spyre.core.view.pictures import Picture
from debug_spyre.core.view.severity import severity_picture
from debug_spyre.core.view.text import Piece, clip, count, number, quoted
from debug_spyre.core.words import BASELINE, FULL_MATRIX, POST_FIX, POST_FIX_MATRIX, HypothesisStatus, Status

MOST_PLAIN = 60  # more members than this are not repeated as plain text


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
    last: Moment
    current: NodeId | None
    scope: str
    wait: str

    @property
    def says(self) -> str:
        """37 of 60 tests, 2 failing."""
        if self.done is None:
            return "started"
        of = f" of {self.total:,}" if self.total is not None else ""
        return f"{self.done:,}{of} done"


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One member with the figures that it showed before a fix."""

    id: NodeId
    probe: bool
    predicate: str  # empty: it fails
    mismatched: str
    max_abs: str
    max_rel: str
    says: str  # other failures in words


@dataclass(frozen=True, slots=True)
class MemberGroup:
    """The members of one file::function."""

    group: Group
    rows: tuple[MemberRow, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """A member that left."""

    id: NodeId
    reason: tuple[Piece, ...]
    moved: Link | None
    at: Moment


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster: why these belong together, its members, what left it."""

    size: int
    why: tuple[tuple[Piece, ...], ...]
    signature: str
    scope: tuple[Piece, ...]
    groups: tuple[MemberGroup, ...]
    figures: bool  # at least one member has mismatch figures
    plain: tuple[str, ...]
    gone: tuple[Gone, ...]
    folded: int
    hidden: tuple[str, ...]
    picture: Picture | None


def facts(frame: Frame) -> tuple[Fact, ...]:
    """Status, cause, members and matrix after the fix, gate."""
    return (
        _status(frame),
        _cause(frame),
        _after(frame, POST_FIX, "Members after the fix"),
        _after(frame, POST_FIX_MATRIX, "Matrix after the fix"),
        _gate(frame),
    )


def status_word(frame: Frame) -> Word:
    """The session's status."""
    return Word(frame.session.status.value, frame.session.status.value)


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
        row = confirmed[-1]
        return Fact(
            "Cause",
            Word("confirmed", "confirmed"),
            (Piece(f"H{row.number}", "", f"#h{row.number}"), Piece(" " + frame.line(row.text, 60))),
        )
    tested = [h for h in rows if h.status in {HypothesisStatus.RULED_OUT, HypothesisStatus.INCONCLUSIVE}]
    note = f"{len(tested)} of {count(len(rows), 'row')} tested" if rows else "queue is empty"
    return Fact("Cause", Word("unknown", "not known yet"), (Piece(note),))


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


def counts_word(run: Run) -> Word:
    """A finished run's result in one word and its counts."""
    counts = run.counts or {}
    bad = counts.get("failed", 0) + counts.get("errors", 0)
    total = sum(v for v in counts.values() if isinstance(v, int))
    if bad:
        return Word("failed", f"{bad:,} of {total:,} failed")
    if run.status.value == "passed" and counts.get("passed", 0):
        rest = total - counts.get("passed", 0)
        return Word(
            "passed", f"{counts['passed']:,} passed" + (f", {rest:,} not run or expected to fail" if rest else "")
        )
    return Word("error" if run.status.value != "passed" else "unknown", f"{run.status.value}, none passed")


def _gate(frame: Frame) -> Fact:
    validation = frame.session.validation
    if validation is None:
        return Fact("Gate", Word("to-come", "not judged yet"), (Piece("no validation"),))
    state = str(validation.gate.get("gate", "unknown"))
    reasons = validation.gate.get("reasons") or ()
    word = state if state in {"open", "shut"} else "unknown"
    note = (Piece(count(len(reasons), "reason"), "", "#gate"),) if reasons else ()
    return Fact("Gate", Word(word, word), note)


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
        frame.at(frame.session.updated_at),
        node_id(frame.say(run.current)) if run.current else None,
        scope_words(run),
        f"debug-spyre wait {frame.say(run.id)}",
    )


def matrix_before(frame: Frame) -> Run | None:
    """The matrix run before any fix: the figures of the members come from here."""
    return frame.session.last_run(FULL_MATRIX)


def cluster(frame: Frame) -> ClusterView:
    """The cluster with the members' figures of one scope."""
    session = frame.session
    run = matrix_before(frame) or session.last_run(BASELINE)
    evidence = frame.evidence.get(run.id) if run else None
    failures = _by_id(evidence.failures if evidence else ())
    members = {frame.say(m.nodeid): m for m in session.members}
    shown = tuple(
        MemberGroup(
            g,
            tuple(
                _row(
                    frame,
                    i,
                    members[i.whole].says(),
                    failures.get(members[i.whole].nodeid),
                    members[i.whole].nodeid == session.probe,
                )
                for i in g.ids
            ),
        )
        for g in groups(members)
    )
    figures = any(row.mismatched for g in shown for row in g.rows)
    scope: tuple[Piece, ...] = ()
    if run and evidence:
        link = frame.run_link(run.id)
        scope = (Piece(f"Figures: {scope_words(run)}, "), Piece(link.text, "", link.href), Piece("."))
    return ClusterView(
        size=len(session.members),
        why=_why(frame),
        signature=frame.line((session.cluster or {}).get("signature") or "", 300),
        scope=scope,
        groups=shown,
        figures=figures,
        plain=tuple(_quoted(i) for i in members) if 0 < len(members) <= MOST_PLAIN else (),
        gone=tuple(_gone(frame, d.nodeid, d.reason, d.moved_to, d.at) for d in session.departed),
        folded=len((session.cluster or {}).get("folded") or ()),
        hidden=tuple(frame.say(h) for h in (session.cluster or {}).get("hidden") or ()),
        picture=_severity(frame, failures, run),
    )


def _by_id(failures: tuple[Failure, ...]) -> dict[str, Failure]:
    found: dict[str, Failure] = {}
    for failure in failures:
        if failure.nodeid is not None:
            found.setdefault(failure.nodeid, failure)
    return found


def _row(frame: Frame, nodeid: NodeId, says: str, failure: Failure | None, probe: bool) -> MemberRow:
    predicate = "" if says == "fails" else frame.say(says)
    if failure is None:
        return MemberRow(nodeid, probe, predicate, "", "", "", "")
    if failure.mismatched is not None and failure.total:
        share = 100 * failure.mismatched / failure.total
        ratio = f"{failure.mismatched:,} / {failure.total:,} ({share:.1f} %)"
        return MemberRow(nodeid, probe, predicate, ratio, number(failure.max_abs), number(failure.max_rel), "")
    return MemberRow(nodeid, probe, predicate, "", "", "", failure_words(frame, failure))


def failure_words(frame: Frame, failure: Failure, most: int = 160) -> str:
    """A failure that is no mismatch, in words."""
    name = failure.inner_class or failure.error_class or failure.kind.value
    return frame.line(f"{name}: {failure.message}" if failure.message else name, most)


def _why(frame: Frame) -> tuple[tuple[Piece, ...], ...]:
    cluster = frame.session.cluster or {}
    found: list[tuple[Piece, ...]] = []
    for separator in cluster.get("separators") or ():
        words = separator.get("text") if isinstance(separator, dict) else separator
        if words:
            found.append((Piece(clip(frame.line(words, 400), 400), "strong"),))
    if cluster.get("why"):
        found.append(frame.prose(cluster["why"], 1000))
    placed = [f"{key} {cluster[key]}" for key in ("kind", "stage", "severity") if cluster.get(key)]
    if placed:
        reason = f" ({cluster['reason']})" if cluster.get("reason") else ""
        found.append((Piece(frame.line(", ".join(placed) + reason + ".", 600)),))
    return tuple(found)


def _quoted(nodeid: str) -> str:
    return "'" + nodeid.replace("'", "'\"'\"'") + "'"


def _gone(frame: Frame, nodeid: str, reason: str, moved_to: str | None, at: str) -> Gone:
    link = session_link(frame, moved_to) if moved_to else None
    return Gone(node_id(frame.say(nodeid)), frame.prose(reason, 400), link, frame.at(at))


def session_link(frame: Frame, stem: str) -> Link:
    """A link to another session's page, beside this one."""
    shown = frame.say(stem)
    safe = "/" not in stem and stem.startswith("debug-")
    return Link(shown, quoted(f"{stem}.html") if safe else "")


def _severity(frame: Frame, failures: dict[str, Failure], run: Run | None) -> Picture | None:
    if run is None:
        return None
    members = {m.nodeid for m in frame.session.members}
    link = frame.run_link(run.id)
    after = frame.session.last_run(POST_FIX_MATRIX) if run.name == FULL_MATRIX else None
    evidence = frame.evidence.get(after.id) if after else None
    fresh = [f for f in evidence.failures if f.nodeid not in failures] if evidence else []
    later = frame.run_link(after.id) if after else None
    return severity_picture(
        (f for n, f in failures.items() if n in members),
        fresh,
        before=Piece(link.text, "", link.href),
        after=Piece(later.text, "", later.href) if later else None,
    )
