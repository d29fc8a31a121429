"""The queue's rules: its order, when a row may start, and what a verdict needs.

One row is in progress at a time, none before there is a baseline, and no verdict without something that was done.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from debug_spyre.session import events as ev
from debug_spyre.session.state import Hypothesis, Session
from debug_spyre.vocabulary.errors import RefusedError, UsageError
from debug_spyre.vocabulary.words import BASELINE, HypothesisStatus, Status

TEST_CLASSES = ("probe", "code-change", "full-run")
CONFIDENCES = ("high", "medium", "low")
CHEAP_SECONDS = 60.0
FULL_RUN_SECONDS = 180.0  # what a full run takes; a probe that takes as long waits like one
FEW_ROWS = 3
MOST_LINES = 10
LINE_WIDTH = 300


def stage(test_class: str, confidence: str, cost: float | None) -> int:
    """0: confident and within a minute; 1: other probes; 2: code changes, full runs, and what takes as long as one."""
    if test_class != "probe" or (cost or 0.0) > FULL_RUN_SECONDS:
        return 2
    return 0 if confidence == CONFIDENCES[0] and (cost or 0.0) <= CHEAP_SECONDS else 1


def rank(row: Hypothesis) -> tuple[int, int, bool, float, int]:
    """Sort key: by stage, then confidence, then support in the evidence, then cost (unknown: a minute)."""
    confidence = CONFIDENCES.index(row.confidence) if row.confidence in CONFIDENCES else 1
    cost = CHEAP_SECONDS if row.cost_seconds is None else row.cost_seconds
    return stage(row.test_class, row.confidence, row.cost_seconds), confidence, not row.reason, cost, row.number


def in_order(rows: Iterable[Hypothesis]) -> list[Hypothesis]:
    """The row in progress, the queued ones by rank, then the concluded ones, newest last."""
    stages = {HypothesisStatus.IN_PROGRESS: 0, HypothesisStatus.QUEUED: 1}
    return sorted(
        rows, key=lambda row: (stages.get(row.status, 2), rank(row) if not row.is_concluded else (row.number,))
    )


def nothing_explains(session: Session) -> bool:
    """Every row is tested and none was confirmed: the next tier of experiments is due."""
    rows = session.hypotheses
    return (
        bool(rows)
        and all(h.is_concluded for h in rows)
        and not any(h.status is HypothesisStatus.CONFIRMED for h in rows)
    )


def check_open(session: Session) -> None:
    """The session is being worked on.

    Raises:
        RefusedError: it is closed.
    """
    if session.status is not Status.INVESTIGATING:
        raise RefusedError(
            f"session {session.stem} is {session.status}", next=f"debug-spyre reopen REASON --session {session.stem}"
        )


def row_of(session: Session, number: int) -> Hypothesis:
    """The row with that number.

    Raises:
        UsageError: there is none.
    """
    row = session.hypothesis(number)
    if row is None:
        have = f"rows 1 to {len(session.hypotheses)}" if session.hypotheses else "no rows"
        raise UsageError(f"there is no row {number}: the queue has {have}", next="debug-spyre hypothesis list")
    return row


def next_number(session: Session) -> int:
    """The number that a new row gets."""
    return max((h.number for h in session.hypotheses), default=0) + 1


def check_new(session: Session, text: str) -> None:
    """The text is not in the queue already.

    Raises:
        RefusedError: an open row says the same.
    """
    same = next((h for h in session.hypotheses if not h.is_concluded and _plain(h.text) == _plain(text)), None)
    if same is not None:
        raise RefusedError(f"row {same.number} says that already", next="debug-spyre hypothesis list")


def check_start(session: Session, row: Hypothesis) -> None:
    """The row may be tested now.

    Raises:
        RefusedError: there is no baseline, another row is in progress, or this one is concluded.
    """
    check_open(session)
    if not any(run.is_finished and run.valid for run in session.named_runs(BASELINE)):
        probe = shlex.quote(session.probe) if session.probe else "NODEID"
        raise RefusedError(
            "no hypothesis is tested before there is a baseline of the probe",
            next=f"debug-spyre run --as baseline {probe}",
        )
    busy = session.in_progress
    if busy is not None and busy.number != row.number:
        raise RefusedError(
            f"row {busy.number} is in progress: {busy.text[:80]}",
            next=f"debug-spyre hypothesis conclude {busy.number} VERDICT SENTENCE",
        )
    if busy is not None or row.status not in {HypothesisStatus.QUEUED, HypothesisStatus.INCONCLUSIVE}:
        following = "conclude" if busy is not None else "add"
        raise RefusedError(f"row {row.number} is {row.status}", next=f"debug-spyre hypothesis {following} --help")


def experiments_since_start(session: Session, row: Hypothesis) -> tuple[tuple[str, ...], bool]:
    """(finished valid runs that test this row, whether anything at all was done) since the row was started."""
    ended = [run for run in session.runs.values() if (run.finished_seq or 0) > row.started_seq]
    ended.sort(key=lambda run: run.finished_seq or 0)
    runs = tuple(run.id for run in ended if run.valid and run.hypothesis in {None, row.number})
    noted = [(e.seq, e.hypothesis) for e in session.experiments] + [(e.seq, e.hypothesis) for e in session.reports]
    by_hand = any(seq > row.started_seq and number in {None, row.number} for seq, number in noted)
    return runs, bool(runs) or by_hand


def check_conclude(
    session: Session, row: Hypothesis, named: Sequence[str], *, instead: bool = False
) -> tuple[str, ...]:
    """The runs that show the verdict: those named, whenever they were made, else those since the row was started.

    `instead`: a person or agent takes the former verdict back; then the run that shows the new one must be named.

    Raises:
        RefusedError: the row is concluded, or no run is named and nothing was done since; UsageError: a run that is none.
    """
    check_open(session)
    if row.is_concluded and row.status is not HypothesisStatus.INCONCLUSIVE and not instead:
        following = f"if that was wrong: debug-spyre hypothesis conclude {row.number} VERDICT SENTENCE --run rN --instead REASON"
        raise RefusedError(f"row {row.number} is {row.status} already", next=following)
    if row.status is not HypothesisStatus.IN_PROGRESS and not named:
        raise RefusedError(
            f"row {row.number} is {row.status} and no run is named",
            next=f"debug-spyre hypothesis start {row.number}, or cite the run that shows it: --run rN",
        )
    runs, anything = experiments_since_start(session, row)
    for name in named:
        run = session.runs.get(name)
        if run is None or not run.is_finished:
            raise UsageError(
                f"{name} is no finished run of this session",
                next=f"debug-spyre wait {name}" if run else "debug-spyre status",
            )
        if not run.valid:
            raise RefusedError(f"{name} proves nothing: the environment changed under it", next="repeat that run")
    if not anything and not named:
        raise RefusedError(
            f"nothing was run since row {row.number} was started, so there is nothing to conclude",
            next=row.command or row.test,
        )
    return tuple(dict.fromkeys(named)) or runs


def concluding(
    row: Hypothesis,
    verdict: str,
    sentence: str,
    runs: Sequence[str],
    excerpt: Sequence[str] = (),
    *,
    instead: str | None = None,
) -> list[ev.Event]:
    """The events of a verdict; a row that an earlier run answers begins with the run that shows it.

    `instead` is why the former verdict was wrong: the new sentence tells both.
    """
    if instead and row.is_concluded:
        sentence = f"{sentence} (before: {row.status}, {row.outcome}; taken back: {instead})"
    shown = f"shown by {', '.join(runs)}"
    begun = (
        [] if row.status is HypothesisStatus.IN_PROGRESS else [ev.HypothesisStarted(number=row.number, command=shown)]
    )
    end = ev.HypothesisConcluded(
        number=row.number, verdict=verdict, sentence=sentence, excerpt=tuple(excerpt), runs=tuple(runs)
    )
    return [*begun, end]


def check_excerpt(lines: Sequence[str]) -> tuple[str, ...]:
    """At most ten lines, each of a length that a page can bear.

    Raises:
        UsageError: more.
    """
    if len(lines) > MOST_LINES:
        raise UsageError(
            f"an excerpt has at most {MOST_LINES} lines, not {len(lines)}",
            next="debug-spyre hypothesis conclude N VERDICT SENTENCE --run R --lines A-B",
        )
    return tuple(line[:LINE_WIDTH] for line in lines)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
