"""The cluster of section 1: why its members belong together, what each showed before a fix, what left it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from debug_spyre.page.nodeid_layout import Group, NodeId, groups, natural, node_id
from debug_spyre.page.page_context import Frame, Link, scope_words, session_link
from debug_spyre.page.pictures import Picture, separator_picture, severity_picture
from debug_spyre.runs.transitions import new_failures
from debug_spyre.session.state import Run
from debug_spyre.vocabulary.evidence import Failure
from debug_spyre.vocabulary.local_time import Moment
from debug_spyre.vocabulary.safe_text import Piece, number
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX

MOST_PLAIN = 60  # more members than this are not repeated as plain text


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


def matrix_before(frame: Frame) -> Run | None:
    """The matrix run before any fix: the figures of the members come from here."""
    measure = frame.measured.before_matrix
    return measure.run if measure else None


def cluster(frame: Frame) -> ClusterView:
    """The cluster with the members' figures of one scope."""
    session = frame.session
    run = matrix_before(frame) or session.last_run(BASELINE)
    evidence = frame.evidence.get(run.id) if run else None
    failures = _by_id(evidence.failures if evidence else ())
    members = {m.nodeid: m for m in sorted(session.members, key=lambda m: natural(m.nodeid))}
    shown = tuple(
        MemberGroup(
            g,
            tuple(
                _row(
                    frame,
                    i,
                    members[raw].says(),
                    failures.get(raw),
                    raw == session.probe,
                )
                for i, raw in zip(g.ids, g.nodeids, strict=True)
            ),
        )
        for g in groups(members, frame.say)
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
        plain=tuple(shlex.quote(frame.say(i)) for i in members) if 0 < len(members) <= MOST_PLAIN else (),
        gone=tuple(_gone(frame, d.nodeid, d.reason, d.moved_to, d.at) for d in session.departed),
        folded=len((session.cluster or {}).get("folded") or ()),
        hidden=tuple(frame.say(h) for h in (session.cluster or {}).get("hidden") or ()),
        picture=_separator(frame) or _severity(frame, failures, run),
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
    """A failure that is no mismatch, in words: the inner class and its message, without wrappers and advice."""
    name = failure.inner_class or failure.error_class or failure.kind.value
    message = failure.message or ""
    short = name.rpartition(".")[2]
    at = message.find(f"{short}: ")
    words = message[at:] if at >= 0 else f"{name}: {message}" if message else name
    return frame.line(words.split("Set TORCHDYNAMO_VERBOSE")[0], most)


def _why(frame: Frame) -> tuple[tuple[Piece, ...], ...]:
    cluster = frame.session.cluster or {}
    found: list[tuple[Piece, ...]] = []
    for separator in cluster.get("separators") or ():
        words = separator.get("text") if isinstance(separator, dict) else separator
        if words:
            found.append((Piece(_sentence(frame.line(words, 400)), "strong"),))
    if cluster.get("why") and cluster["why"] not in frame.session.symptom:
        first, *rest = frame.prose(cluster["why"], 1000)
        found.append((Piece(first.text[:1].upper() + first.text[1:], first.kind, first.href), *rest))
    keys = [key for key in ("kind", "stage", "severity") if cluster.get(key)]
    if keys:
        placed = ", ".join(str(cluster[key]) if key == "kind" else f"{key} {cluster[key]}" for key in keys)
        reason = f": {cluster['reason']}" if cluster.get("reason") else ""
        found.append((Piece(_sentence(frame.line(placed + reason, 600))),))
    return tuple(found)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "…")) else ".")


def _gone(frame: Frame, nodeid: str, reason: str, moved_to: str | None, at: str) -> Gone:
    link = session_link(frame, moved_to) if moved_to else None
    return Gone(node_id(frame.say(nodeid)), frame.prose(reason, 400), link, frame.at(at))


def _separator(frame: Frame) -> Picture | None:
    """The first parameter that tells failing from passing tests; it says more than how wrong each is."""
    for told in (frame.session.cluster or {}).get("separators") or ():
        if isinstance(told, dict) and isinstance(told.get("failing"), list) and isinstance(told.get("passing"), list):
            sides = [[frame.line(v, 12) for v in told[side]] for side in ("failing", "passing")]
            return separator_picture(frame.line(told.get("parameter") or "parameter", 40), *sides)
    return None


def _severity(frame: Frame, failures: dict[str, Failure], run: Run | None) -> Picture | None:
    if run is None:
        return None
    members = {m.nodeid for m in frame.session.members}
    link = frame.run_link(run.id)
    measure = frame.measured.after_matrix
    after = measure.run if measure and run.name == FULL_MATRIX else None
    evidence = frame.evidence.get(after.id) if after else None
    new = new_failures(frame.evidence.get(run.id), evidence)
    fresh = [f for f in evidence.failures if f.nodeid in new] if evidence else []
    later = frame.run_link(after.id) if after else None
    return severity_picture(
        (f for n, f in failures.items() if n in members),
        fresh,
        before=Piece(link.text, "", link.href),
        after=Piece(later.text, "", later.href) if later else None,
    )
