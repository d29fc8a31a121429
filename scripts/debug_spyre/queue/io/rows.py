"""Rows under the journal's lock: started, run and concluded in one call; and the situation from which a starter set is proposed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import Any

from debug_spyre.queue import queue_rules
from debug_spyre.queue.seeds import Situation
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder, load_evidence
from debug_spyre.session.state import Run, Session
from debug_spyre.vocabulary.errors import RefusedError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX, HypothesisStatus


def situation(folder: Folder, session: Session) -> Situation:
    """Baseline and matrix of the session.

    Raises:
        RefusedError: neither was kept.
    """
    alone = session.last_run(BASELINE)
    wide = session.last_run(FULL_MATRIX)
    kept = load_evidence(folder, [run for run in (alone, wide) if run])
    first = kept.get(alone.id) if alone else None
    second = kept.get(wide.id) if wide else None
    evidence = first or second
    if evidence is None:
        raise RefusedError(
            "there is no evidence yet to propose from",
            next=f"debug-spyre run --as baseline {shlex.quote(session.probe or 'NODEID')}",
        )
    members = tuple(m.nodeid for m in session.members)
    probe = session.probe or (members[0] if members else "NODEID")
    return Situation(
        evidence=evidence,
        probe=probe,
        members=members,
        cluster=session.cluster or {},
        matrix=second,
        tensors=_tensors(folder, alone, probe),
        **_cost(probe, (alone, first), (wide, second)),
    )


def _tensors(folder: Folder, run: Run | None, probe: str) -> tuple[tuple[str, str], ...]:
    """The probe's kept tensors, as `compare` takes them: FILE:KEY of what the card gave and of the reference."""
    if run is None:
        return ()
    place = folder.path / "runs" / run.id
    found: list[tuple[str, str]] = []
    try:
        with (place / "results.jsonl").open("rb") as stream:
            lines = [json.loads(line) for line in stream if b'"tensors"' in line]
    except (OSError, ValueError):
        return ()
    for line in lines:
        if isinstance(line, dict) and line.get("e") == "tensors" and line.get("nodeid") == probe:
            for pair in line.get("pairs") or ():
                file = place / str(pair.get("file"))
                found.append((f"{file}:{pair.get('actual')}", f"{file}:{pair.get('expected')}"))
    return tuple(found)


def _cost(probe: str, *measured: tuple[Run | None, Evidence | None]) -> dict[str, Any]:
    """What the probe takes, and a session besides: from the first run that says it."""
    for run, evidence in measured:
        if run is None or evidence is None or run.seconds is None:
            continue
        took = {test.nodeid: test.seconds or 0.0 for test in evidence.tests}
        if probe in took:
            return {"seconds": took[probe], "startup": max(run.seconds - sum(took.values()), 0.0)}
    return {}


def begin_row(folder: Folder, number: int, command: str, *, must: bool) -> None:
    """Put a queued row in progress before its run begins; one that may not start now is left as it is, unless it `must`.

    Raises:
        RefusedError: it must, and there is no baseline, or another row is in progress.
    """

    def make(session: Session) -> Iterable[ev.Event]:
        row = session.hypothesis(number)
        if row is None or row.status is HypothesisStatus.IN_PROGRESS:
            return []
        try:
            queue_rules.check_start(session, row)
        except RefusedError:
            if must:
                raise
            return []
        return [ev.HypothesisStarted(number=number, command=command)]

    folder.journal.record(make)


def end_row(folder: Folder, number: int, said: tuple[str, str], run: str) -> None:
    """The verdict that was foretold for how the run ended."""

    def make(session: Session) -> Iterable[ev.Event]:
        row = queue_rules.row_of(session, number)
        runs = queue_rules.check_conclude(session, row, [run])
        digest = session.runs[run].digest[: queue_rules.MOST_LINES]
        return queue_rules.concluding(row, *said, runs, queue_rules.check_excerpt(digest))

    folder.journal.record(make)
