"""Section 4: the experiment log, newest first, one entry a run or noted experiment; older entries are short.

Every entry says which row it tests or that it is unattributed, and where its whole output lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from debug_spyre.page.heading import result_words
from debug_spyre.page.page_context import OLDER, Frame, Link, Word, items_on_page, scope_words
from debug_spyre.page.pictures import Picture
from debug_spyre.page.queue_rows import (
    STANDING,
    TAIL_LINES,
    OutputLine,
    conclusion,
    line_css,
    output_line,
    rows_of,
    run_word,
    tail_lines,
    title,
    took,
    who,
)
from debug_spyre.page.repetition import batches, earlier, grouped, part, same_as
from debug_spyre.page.timeline import timeline_picture
from debug_spyre.queue.session_warnings import unattributed
from debug_spyre.session.events import ExperimentNoted
from debug_spyre.session.state import Run
from debug_spyre.vocabulary.local_time import Moment, duration
from debug_spyre.vocabulary.safe_text import Piece, clip, count, one_line

OPEN_ENTRIES = 2  # of these the newest have their output open
COMMAND_WIDTH, WHOLE_WIDTH, SHORT_COMMAND = 2000, 8000, 110
MOST_WARNINGS = 6
OPEN_DIGEST, MOST_ANSWERS = 5, 6
PLURAL = {"shows the fault": "show the fault", "does not show it": "do not show it"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log."""

    id: str
    seq: int
    title: str
    run: bool  # a run under the lock; else noted by hand
    rows: tuple[Link, ...]
    started: Moment
    took: str
    by: str
    status: Word
    result: str
    meta: tuple[str, ...]
    output: Link | None
    command: str
    whole: str  # the command with all its node ids, where `command` has their number only
    answers: tuple[OutputLine, ...]  # what the verb made of this run
    reports: tuple[Link, ...]  # the whole of it
    digest: tuple[OutputLine, ...]
    more_digest: tuple[OutputLine, ...]
    tail: tuple[OutputLine, ...]
    tail_label: str
    cut: str
    conclusion: tuple[Piece, ...]
    verdicts: tuple[tuple[Word, int], ...]
    warnings: tuple[str, ...]
    unattributed: bool
    by_hand: bool
    open: bool
    kind: str = ""  # the verb, for the filter
    same_as: Link | None = None  # an older run that showed each of these failures
    folded: tuple[ShortEntry, ...] = ()  # the runs of one verb's machinery, told as one entry


@dataclass(frozen=True, slots=True)
class ShortEntry:
    """An older entry on one line."""

    id: str
    seq: int
    title: str
    rows: tuple[Link, ...]
    started: Moment
    status: Word
    output: Link | None
    command: str
    conclusion: str
    unattributed: bool
    kind: str = ""
    took: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentsView:
    """The log: whole entries, then short ones."""

    entries: tuple[Entry, ...]
    older: tuple[ShortEntry, ...]
    total: int
    left_out: int
    rest: Link | None  # the file with the entries that are left out here
    runs: int
    last: Moment | None
    timeline: Picture | None
    unattributed: int


def experiments(frame: Frame) -> ExperimentsView:
    """Section 4."""
    session = frame.session
    loose = frozenset(unattributed(session))
    full, short = items_on_page(session)
    numbers = {note.seq: i for i, note in enumerate(session.experiments, start=1)}
    whole = tuple(
        _folded(frame, item, loose)
        if isinstance(item, list)
        else _run(frame, item, loose, is_open=i < OPEN_ENTRIES, before=earlier(full, item))
        if isinstance(item, Run)
        else _noted(frame, item, numbers[item.seq], is_open=i < OPEN_ENTRIES)
        for i, item in enumerate(batches(full))
    )
    older = tuple(
        _short_run(frame, item, loose) if isinstance(item, Run) else _short_note(frame, item, numbers[item.seq])
        for item in short
    )
    total = len(session.runs) + len(session.experiments)
    left_out = total - len(full) - len(older)
    return ExperimentsView(
        entries=whole,
        older=older,
        total=total,
        left_out=left_out,
        rest=frame.file_link(OLDER) if left_out else None,
        runs=len(session.runs),
        last=whole[0].started if whole else None,
        timeline=timeline_picture(frame, lambda run: run_word(run, frame.reports_of).css),
        unattributed=len(loose),
    )


def _folded(frame: Frame, runs: list[Run], loose: frozenset[str]) -> Entry:
    """One entry for the runs of one verb's machinery, newest first; each stays on a line inside it."""
    newest, oldest = runs[0], runs[-1]
    parts = Counter(map(part, runs))
    told = Counter(run_word(run, frame.reports_of).text for run in reversed(runs))
    bad = [word for run in runs if (word := run_word(run, frame.reports_of)).css != "passed"]
    first = _run(frame, newest, loose, is_open=False)
    both: list[tuple[Piece, ...]] = []
    verdicts: dict[int, Word] = {}
    for run in runs:
        words, found = conclusion(frame, run.id, rows_of(frame, run))
        both += [words] if words and words not in both else []
        verdicts |= {number: word for word, number in found}
    return replace(
        first,
        id=f"fold-{first.id}",
        title=f"{frame.say(oldest.id)} to {frame.say(newest.id)} {newest.verb}",
        rows=tuple(dict.fromkeys(frame.row_link(n) for run in runs for n in rows_of(frame, run))),
        started=frame.at(oldest.started_at),
        took=f"took {duration(sum(run.seconds or 0.0 for run in runs))}",
        status=bad[0]
        if bad
        else Word("passed", ", ".join(f"{n} {PLURAL.get(word, word) if n > 1 else word}" for word, n in told.items())),
        result=", ".join(count(parts[kind], kind) for kind in ("trial", "proof", "control") if parts[kind]),
        meta=(),
        output=None,
        command="",
        whole="",
        digest=(),
        more_digest=(),
        tail=(),
        tail_label="",
        cut="",
        answers=tuple(line for run in runs for line in _answers(frame, run)),
        reports=tuple(frame.file_link(r.report) for run in runs for r in frame.reports_of.get(run.id, []) if r.report),
        warnings=tuple(dict.fromkeys(w for run in runs for w in frame.lines(run.warnings[:MOST_WARNINGS]))),
        conclusion=tuple(p for i, words in enumerate(both) for p in ((Piece("; "), *words) if i else words)),
        verdicts=tuple((word, number) for number, word in verdicts.items()),
        folded=tuple(replace(_short_run(frame, run, loose), conclusion=part(run)) for run in runs),
    )


def _run(frame: Frame, run: Run, loose: frozenset[str], *, is_open: bool, before: Sequence[Run] = ()) -> Entry:
    numbers = rows_of(frame, run)
    words, verdicts = conclusion(frame, run.id, numbers)
    short, whole = frame.short_command(run), frame.command(run)
    digest = tuple(output_line(frame, line, said=True) for line in grouped(frame.lines(run.digest[:10])))
    like = same_as(frame, run, before)
    tail, label, cut = tail_lines(frame, frame.material.tails.get(run.output))
    meta = [scope_words(run)]
    meta += [f"exit {run.exit}"] if run.exit is not None and run.pytest_args is not None else []
    meta += [f"tree {frame.say(run.tree_digest)[:10]}"] if run.tree_digest else []
    warnings = [frame.line(w, 300) for w in run.warnings[:MOST_WARNINGS]]
    if len(run.warnings) > MOST_WARNINGS:
        warnings.append(f"{len(run.warnings) - MOST_WARNINGS} more warnings in {frame.say(run.output)}")
    warnings += [frame.line(f"the card was still held at the end: {holder}", 300) for holder in run.holders[:3]]
    if run.is_finished and not run.valid:
        warnings.insert(0, "the evidence of this run is not valid: it counts for nothing")
    return Entry(
        id=run.id if frame.knows(run.id) else f"run-{run.started_seq}",
        seq=run.finished_seq or run.started_seq,
        title=f"{frame.say(run.id)} {frame.line(title(run), 80)}",
        run=True,
        rows=tuple(frame.row_link(n) for n in numbers),
        started=frame.at(run.started_at),
        took=took(frame, run),
        by=who(frame, run.by),
        status=run_word(run, frame.reports_of),
        result=result_words(run) if run.is_finished and run.counts else "",
        meta=tuple(meta),
        output=frame.file_link(run.output),
        command=clip(short or whole, COMMAND_WIDTH),
        whole=clip(whole, WHOLE_WIDTH) if short else "",
        answers=_answers(frame, run),
        reports=tuple(frame.file_link(r.report) for r in frame.reports_of.get(run.id, []) if r.report),
        digest=() if like else digest[:OPEN_DIGEST],
        more_digest=digest if like else digest[OPEN_DIGEST:],
        same_as=like,
        kind=frame.line(run.verb, 20),
        tail=tail,
        tail_label=label,
        cut=cut,
        conclusion=words or (STANDING.get(run.name or "", ()) if run.is_finished and run.valid else ()),
        verdicts=verdicts,
        warnings=tuple(warnings),
        unattributed=run.id in loose,
        by_hand=False,
        open=is_open,
    )


def _answers(frame: Frame, run: Run) -> tuple[OutputLine, ...]:
    """The first lines of the reports that rest on this run: the answer stands where the question was asked."""
    found: list[OutputLine] = []
    for report in frame.reports_of.get(run.id, []):
        lines = frame.lines(report.lines[:MOST_ANSWERS])
        found += [OutputLine(line, "strong" if i == 0 else line_css(line)) for i, line in enumerate(lines)]
    return tuple(found[: 2 * MOST_ANSWERS])


def _noted(frame: Frame, note: ExperimentNoted, number: int, *, is_open: bool) -> Entry:
    words, verdicts = ((), ()) if note.hypothesis is None else conclusion(frame, "", [note.hypothesis])
    lines = frame.say("\n".join(note.tail)).split("\n") if note.tail else []
    shown = lines[-TAIL_LINES:]
    return Entry(
        id=f"n{number}",
        seq=note.seq,
        title=frame.line(note.text, 400),
        run=False,
        kind="note",
        rows=(frame.row_link(note.hypothesis),) if note.hypothesis is not None else (),
        started=frame.at(note.at),
        took="by hand",
        by=who(frame, note.by),
        status=Word("hand", "noted"),
        result="",
        whole="",
        meta=(),
        output=frame.file_link(note.output) if note.output else None,
        command=clip(frame.say(note.command), COMMAND_WIDTH) if note.command else "",
        answers=(),
        reports=(),
        digest=(),
        more_digest=(),
        tail=tuple(output_line(frame, line, said=True) for line in shown),
        tail_label=f"Output, last {count(len(shown), 'line')}" if shown else "",
        cut="earlier lines are in the file" if shown and note.output else "",
        conclusion=frame.prose(note.conclusion, 600) if note.conclusion else words,
        verdicts=() if note.conclusion else verdicts,
        warnings=(),
        unattributed=False,
        by_hand=True,
        open=is_open,
    )


def _short_run(frame: Frame, run: Run, loose: frozenset[str]) -> ShortEntry:
    numbers = rows_of(frame, run)
    words, _ = conclusion(frame, run.id, numbers)
    answers = _answers(frame, run)
    said = (
        "".join(p.text for p in words)
        or (answers[0].text if answers else "")
        or (frame.line(run.digest[0]) if run.digest else "")
    )
    return ShortEntry(
        id=run.id if frame.knows(run.id) else f"run-{run.started_seq}",
        seq=run.finished_seq or run.started_seq,
        title=frame.line(f"{run.id} {title(run)}", 60),
        rows=tuple(frame.row_link(n) for n in numbers[:3]),
        started=frame.at(run.started_at),
        status=run_word(run, frame.reports_of),
        output=frame.file_link(run.output),
        command=one_line(frame.short_command(run) or frame.command(run), SHORT_COMMAND),
        conclusion=one_line(said, 110),
        unattributed=run.id in loose,
        kind=frame.line(run.verb, 20),
        took=took(frame, run),
    )


def _short_note(frame: Frame, note: ExperimentNoted, number: int) -> ShortEntry:
    return ShortEntry(
        id=f"n{number}",
        seq=note.seq,
        title=frame.line(note.text, 80),
        kind="note",
        rows=(frame.row_link(note.hypothesis),) if note.hypothesis is not None else (),
        started=frame.at(note.at),
        status=Word("hand", "noted"),
        output=frame.file_link(note.output) if note.output else None,
        command=one_line(frame.say(note.command), SHORT_COMMAND) if note.command else "",
        conclusion=frame.line(note.conclusion or "", 110),
        unattributed=False,
    )
