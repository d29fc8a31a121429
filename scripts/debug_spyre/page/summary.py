"""Section 2: the summary as written, whether it is stale, and the baseline's lines that matter by themselves."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from debug_spyre.page.members import failure_words
from debug_spyre.page.page_context import Frame, Link, scope_words
from debug_spyre.queue.session_warnings import is_summary_stale
from debug_spyre.session.state import Run
from debug_spyre.vocabulary.evidence import Evidence, Failure
from debug_spyre.vocabulary.local_time import Moment
from debug_spyre.vocabulary.safe_text import Piece, number
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX

MOST_FALLBACKS = 30


@dataclass(frozen=True, slots=True)
class MismatchRow:
    """The probe's failure in one scope."""

    scope: str
    run: Link
    mismatched: str
    max_abs: str
    max_rel: str
    says: str


@dataclass(frozen=True, slots=True)
class FallbackRow:
    """One op that fell back in the baseline."""

    op: str
    at: str
    tests: str
    note: str


@dataclass(frozen=True, slots=True)
class BaselineView:
    """What the baseline shows; `said` are the digest's lines where the evidence file is gone."""

    run: Link
    scope: str
    mismatches: tuple[MismatchRow, ...]
    fallbacks: tuple[FallbackRow, ...]
    more_fallbacks: int
    frames: tuple[tuple[str, str], ...]  # (which frame, file:line)
    severity: str
    pattern: str
    said: tuple[str, ...]
    output: Link
    figures: bool  # at least one of the failures has mismatch figures


@dataclass(frozen=True, slots=True)
class SummaryView:
    """The summary."""

    written: Moment | None
    by: str
    paragraphs: tuple[tuple[Piece, ...], ...]
    stale: bool
    since: tuple[Piece, ...]  # the verdicts since then
    earlier: int
    baseline: BaselineView | None
    baseline_command: str


def summary(frame: Frame) -> SummaryView:
    """Section 2."""
    session = frame.session
    last = session.summaries[-1] if session.summaries else None
    probe = session.probe or (session.members[0].nodeid if session.members else "NODEID")
    return SummaryView(
        written=frame.at(last.at) if last else None,
        by=frame.line(last.by, 40) if last else "",
        paragraphs=frame.paragraphs(last.text) if last else _learnt(frame),
        stale=is_summary_stale(session) and not (last is None and _learnt(frame)),
        since=_since(frame, last.at if last else ""),
        earlier=max(len(session.summaries) - 1, 0),
        baseline=_baseline(frame),
        baseline_command=frame.say(f"debug-spyre run --as baseline {shlex.quote(probe)}"),
    )


def _learnt(frame: Frame) -> tuple[tuple[Piece, ...], ...]:
    """Where nobody wrote a summary and an investigation found causes: these, and what the rows came to."""
    dossier = frame.material.dossier
    if not dossier or not dossier.causes:
        return ()
    found = [
        (
            Piece("Cause" if cause.claim == "cause" else "Located", "", f"#cause-{n}"),
            Piece(": "),
            *frame.prose(cause.sentence, 600),
        )
        for n, cause in enumerate(dossier.causes, 1)
    ]
    rows = _since(frame, "")
    return (*found, (Piece("Rows: "), *rows)) if rows else tuple(found)


def _since(frame: Frame, written: str) -> tuple[Piece, ...]:
    rows = [h for h in frame.session.hypotheses if h.is_concluded and (h.concluded_at or "") > written]
    rows.sort(key=lambda h: h.concluded_at or "")
    found: list[Piece] = []
    for row in rows[-6:]:
        found += [
            Piece(", " if found else ""),
            Piece(f"H{row.number}", "", f"#h{row.number}"),
            Piece(f" {row.status.value.replace('-', ' ')}"),
        ]
    return tuple(found)


def _baseline(frame: Frame) -> BaselineView | None:
    run = _probe_run(frame)
    if run is None:
        return None
    evidence = frame.evidence.get(run.id)
    failure = _failure(evidence, frame.session.probe)
    mismatches = _mismatches(frame)
    fallbacks = evidence.fallbacks if evidence else ()
    total = len(evidence.tests) if evidence else 0
    return BaselineView(
        run=frame.run_link(run.id),
        scope=scope_words(run),
        mismatches=mismatches,
        fallbacks=tuple(
            FallbackRow(
                frame.line(f.op, 160),
                frame.line(f"{f.file}:{f.line}" if f.file and f.line else f.file or "place unknown", 200),
                f"{len(set(f.nodeids)):,} of {total:,}"
                if f.nodeids and total
                else (f"{len(set(f.nodeids)):,}" if f.nodeids else "unknown"),
                frame.line(f"accepted at {f.accepted}", 160) if f.accepted else "",
            )
            for f in fallbacks[:MOST_FALLBACKS]
        ),
        more_fallbacks=max(len(fallbacks) - MOST_FALLBACKS, 0),
        frames=_frames(frame, failure),
        severity=frame.line(
            ": ".join(filter(None, (failure.severity.value if failure.severity else "", failure.reason))), 400
        )
        if failure
        else "",
        pattern=frame.line(failure.pattern, 400) if failure and failure.pattern else "",
        said=() if evidence else tuple(frame.line(line, 300) for line in run.digest),
        output=frame.file_link(run.output),
        figures=any(not row.says for row in mismatches),
    )


def _probe_run(frame: Frame) -> Run | None:
    """The newest valid baseline of the probe alone, else any baseline."""
    runs = [r for r in frame.session.named_runs(BASELINE) if r.is_finished and r.valid]
    alone = [r for r in runs if not r.members_only]
    found = alone or runs
    return found[-1] if found else None


def _failure(evidence: Evidence | None, probe: str | None) -> Failure | None:
    failures = evidence.failures if evidence else ()
    own = [f for f in failures if f.nodeid == probe]
    return own[0] if own else (failures[0] if failures else None)


def _mismatches(frame: Frame) -> tuple[MismatchRow, ...]:
    """The probe's failure in each scope it was seen in before a fix; shown side by side, never compared."""
    found = []
    names = (BASELINE, FULL_MATRIX)
    runs = [r for r in frame.session.runs.values() if r.name in names and r.is_finished and r.valid]
    newest: dict[tuple[str | None, bool], Run] = {(r.name, r.members_only): r for r in runs}
    for run in newest.values():
        evidence = frame.evidence.get(run.id)
        failure = _failure(evidence, frame.session.probe) if evidence else None
        if failure is None or (run.name == FULL_MATRIX and failure.nodeid != frame.session.probe):
            continue
        scope = scope_words(run) if run.members_only or run.name == FULL_MATRIX else f"baseline, {scope_words(run)}"
        ratio = ""
        if failure.mismatched is not None and failure.total:
            ratio = f"{failure.mismatched:,} / {failure.total:,} ({100 * failure.mismatched / failure.total:.1f} %)"
        figures = bool(ratio) or failure.max_abs is not None
        found.append(
            MismatchRow(
                scope,
                frame.run_link(run.id),
                ratio or "not given",
                number(failure.max_abs),
                number(failure.max_rel),
                "" if figures else failure_words(frame, failure, 300),
            )
        )
    return tuple(found)


def _frames(frame: Frame, failure: Failure | None) -> tuple[tuple[str, str], ...]:
    if failure is None:
        return ()
    found = []
    if failure.innermost_frame:
        found.append(("innermost", frame.line(failure.innermost_frame, 300)))
    if failure.backend_frame and failure.backend_frame != failure.innermost_frame:
        found.append(("last in torch-spyre or the plugin", frame.line(failure.backend_frame, 300)))
    return tuple(found)
