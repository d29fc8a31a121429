"""Section 6: findings, reports of the verbs that examine, error maps, and the files worth keeping."""

from __future__ import annotations

from dataclasses import dataclass

from debug_spyre.page.page_context import Frame, Link
from debug_spyre.page.pictures import Picture, error_map
from debug_spyre.page.queue_rows import OutputLine, line_css
from debug_spyre.session.events import FindingNoted, ReportMade
from debug_spyre.session.state import Run
from debug_spyre.vocabulary.local_time import Moment
from debug_spyre.vocabulary.safe_text import Piece, count, size
from debug_spyre.vocabulary.words import APPROVED_CHANGE, RUN_NAMES

MOST_ARTIFACTS, MOST_REPORTS, MOST_MAPS, MOST_PATCH_LINES, MOST_LINES = 200, 60, 3, 200, 10
WHAT = {
    "full-matrix": "the matrix before a fix",
    "baseline": "the baseline before a fix",
    "cpu-control": "the same on the CPU",
    "post-fix": "all members with the fix",
    "post-fix-matrix": "the matrix with the fix",
    "verbose": "one run with the vendor's logs on",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    number: int
    paragraphs: tuple[tuple[Piece, ...], ...]
    reference: str
    expects: str
    at: Moment
    by: str


@dataclass(frozen=True, slots=True)
class ReportView:
    """The answer of a verb that examines."""

    id: str
    verb: str
    lines: tuple[OutputLine, ...]
    facts: tuple[tuple[str, str], ...]
    report: Link | None
    run: Link | None
    row: Link | None
    at: Moment


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """One file."""

    link: Link
    what: str
    source: Link | None
    size: str
    sha256: str
    at: Moment


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch, shown closed."""

    link: Link
    title: str
    lines: tuple[OutputLine, ...]
    cut: str


@dataclass(frozen=True, slots=True)
class FindingsView:
    """Section 6."""

    findings: tuple[Finding, ...]
    reports: tuple[ReportView, ...]
    older_reports: int
    maps: tuple[Picture, ...]
    more_maps: int
    artifacts: tuple[ArtifactRow, ...]
    more_artifacts: int
    patches: tuple[Patch, ...]


def findings(frame: Frame) -> FindingsView:
    """Section 6."""
    session = frame.session
    rows = _artifacts(frame)
    drawn = [
        m for i, (run, entry) in enumerate(_all_pictures(frame)) if (m := error_map(frame, run, entry, i)) is not None
    ]
    return FindingsView(
        findings=tuple(_finding(frame, n, note) for n, note in enumerate(session.findings, start=1)),
        reports=tuple(
            _report(frame, n, r)
            for n, r in reversed(list(enumerate(session.reports, start=1))[-MOST_REPORTS:])
            if r.run is None or r.run not in session.runs  # the others stand in their run's entry
        ),
        older_reports=max(len(session.reports) - MOST_REPORTS, 0),
        maps=tuple(drawn[:MOST_MAPS]),
        more_maps=max(len(drawn) - MOST_MAPS, 0),
        artifacts=rows[:MOST_ARTIFACTS],
        more_artifacts=max(len(rows) - MOST_ARTIFACTS, 0),
        patches=_patches(frame),
    )


def _all_pictures(frame: Frame) -> list[tuple[str, dict[str, object]]]:
    own = [(r.run or "", r.data) for r in reversed(frame.session.reports) if isinstance(r.data.get("picture"), dict)]
    probe = frame.session.probe
    told = sorted(frame.material.pictures, key=lambda item: (item[1].get("nodeid") != probe, _is_flat(item[1])))
    return [*own, *told]


def _is_flat(entry: dict[str, object]) -> bool:
    """A map of one row shows less than one of a plane."""
    picture = entry.get("picture")
    return isinstance(picture, dict) and picture.get("rows") == 1


def _finding(frame: Frame, number: int, note: FindingNoted) -> Finding:
    return Finding(
        number,
        frame.paragraphs(note.text),
        frame.line(note.reference, 200) if note.reference else "",
        frame.line(note.expect_change, 100) if note.expect_change else "",
        frame.at(note.at),
        frame.line(note.by, 40),
    )


def _report(frame: Frame, number: int, report: ReportMade) -> ReportView:
    lines = frame.lines(report.lines[:MOST_LINES])
    if len(report.lines) > MOST_LINES:
        lines.append(f"… {count(len(report.lines) - MOST_LINES, 'more line')} in the report")
    return ReportView(
        id=f"x{number}",
        verb=frame.line(report.verb, 40),
        lines=tuple(OutputLine(line, line_css(line)) for line in lines),
        facts=tuple(_small(frame, report.data)),
        report=frame.file_link(report.report) if report.report else None,
        run=frame.run_link(report.run) if report.run else None,
        row=frame.row_link(report.hypothesis) if report.hypothesis is not None else None,
        at=frame.at(report.at),
    )


def _small(frame: Frame, data: dict[str, object]) -> list[tuple[str, str]]:
    """The facts of a report that fit on one line each; nested data stays in the report's file."""
    found = []
    for key, value in data.items():
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            found.append((frame.line(key.replace("_", " "), 40), frame.line(value, 200)))
        elif isinstance(value, bool):
            found.append((frame.line(key.replace("_", " "), 40), "yes" if value else "no"))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, (str, int, float)) for v in value):
            found.append(
                (frame.line(key.replace("_", " "), 40), frame.line(", ".join(str(v) for v in value[:12]), 200))
            )
    return found[:10]


def _artifacts(frame: Frame) -> tuple[ArtifactRow, ...]:
    session = frame.session
    rows = []
    seen = set()
    for run in session.runs.values():
        if run.name in RUN_NAMES and run.output not in seen:
            seen.add(run.output)
            rows.append(_output_row(frame, run))
    for artifact in session.artifacts:
        if artifact.path in seen:
            continue
        seen.add(artifact.path)
        source = frame.run_link(artifact.run) if artifact.run else None
        rows.append(
            ArtifactRow(
                frame.file_link(artifact.path),
                frame.line(artifact.note or "", 200),
                source,
                size(artifact.size),
                frame.say(artifact.sha256)[:12],
                frame.at(artifact.at),
            )
        )
    return tuple(rows)


def _output_row(frame: Frame, run: Run) -> ArtifactRow:
    tail = frame.material.tails.get(run.output)
    words = WHAT.get(run.name or "", "output")
    if run.members_only:
        words += ", members only"
    octets = size(tail.size) if tail and run.is_finished else ("growing" if not run.is_finished else "")
    return ArtifactRow(frame.file_link(run.output), words, frame.run_link(run.id), octets, "", frame.at(run.started_at))


def _patches(frame: Frame) -> tuple[Patch, ...]:
    approval = frame.session.approval
    approved = [a for a in frame.session.artifacts if a.note == APPROVED_CHANGE][-1:] if approval else []
    told = [(a.path, f"approved {frame.at(a.at).text}, it stays in the tree") for a in approved]
    told += [
        (revert.patch, f"{count(len(revert.files), 'file')}, reverted {frame.at(revert.at).text}")
        for revert in reversed(frame.session.reverts[-3:])
        if revert.patch is not None
    ]
    return tuple(_patch(frame, path, title) for path, title in told)


def _patch(frame: Frame, path: str, title: str) -> Patch:
    tail = frame.material.tails.get(path)
    shown = [line for line in (tail.lines if tail else ()) if not line.startswith(("diff --git", "index "))]
    while shown and not shown[-1].strip():
        shown.pop()
    lines = tuple(_patch_line(line) for line in frame.lines(shown[:MOST_PATCH_LINES], 240)) if tail else ()
    left = (tail.total - len(tail.lines) if tail and tail.total is not None else 0) + max(
        len(shown) - MOST_PATCH_LINES, 0
    )
    cut = "the file is not there" if tail is None else f"{left:,} more lines in the file" if left > 0 else ""
    return Patch(frame.file_link(path), title, lines, cut)


def _patch_line(words: str) -> OutputLine:
    css = "strong" if words.startswith(("+++", "---")) else {"+": "green", "-": "red"}.get(words[:1], "")
    return OutputLine(words, css)
