"""The record of a run, read back from its folder's journal and evidence: the same for `run`, `wait` and the other verbs."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from debug_spyre.host.files import read_ends
from debug_spyre.runs.io.progress_line import ResultsReader
from debug_spyre.runs.io.run_folder import RunFolder
from debug_spyre.runs.outcome import NO_PYTEST, Progress
from debug_spyre.session.events import Event, RunFinished, RunStarted, SessionOpened
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.errors import BadInputError, Exit
from debug_spyre.vocabulary.evidence import Evidence, evidence_from_json, failure_to_json, fallback_to_json
from debug_spyre.vocabulary.words import RunStatus

TAIL_BYTES, TAIL_LINES = 16384, 60
_OWN = {
    RunStatus.TIMEOUT: Exit.TIMEOUT,
    RunStatus.STALLED: Exit.STALLED,
    RunStatus.ORPHANS: Exit.STILL_HELD,
    RunStatus.INVALID: Exit.INVALID,
    RunStatus.RUNNING: Exit.RUNNING,
    RunStatus.BUSY: Exit.BUSY,
}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as its caller sees it; `evidence` is None where nothing could be read."""

    id: str
    status: RunStatus
    exit: int | None
    seconds: float
    valid: bool
    evidence: Evidence | None
    output: Path
    results: Path | None
    folder: Path
    scope: dict[str, Any]
    counts: dict[str, int] | None
    warnings: tuple[str, ...]
    digest: tuple[str, ...]
    name: str | None = None
    hypothesis: int | None = None
    session: str | None = None
    log: Path | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    holders: tuple[str, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    progress: Progress | None = None  # of a run that still goes on
    table: tuple[str, ...] = ()  # of an experiment: its lines in words
    tail: tuple[str, ...] = ()  # of a plain command: the last lines that it printed, secrets masked

    def exit_status(self) -> int:
        """The command's own status, or ours where the run itself went wrong (design: one table)."""
        if self.status in _OWN:
            return int(_OWN[self.status])
        if self.status is RunStatus.INTERRUPTED:
            return Exit.SIGNALLED + 2
        if self.status is RunStatus.LOST or self.exit is None:
            return Exit.SIGNALLED + 9
        if any(warning.startswith(NO_PYTEST) for warning in self.warnings):
            return int(Exit.ENVIRONMENT)
        return Exit.SIGNALLED - self.exit if self.exit < 0 else self.exit

    def to_json(self) -> dict[str, Any]:
        """The form of contracts.md."""
        seen = self.evidence
        return {
            "run": self.id,
            "session": self.session,
            "hypothesis": self.hypothesis,
            "name": self.name,
            "log": str(self.log) if self.log else None,
            "status": self.status.value,
            "valid": self.valid,
            "exit": self.exit,
            "seconds": round(self.seconds, 3),
            "scope": {**self.scope, "selected": list(seen.selected) if seen else []},
            "counts": self.counts,
            "output": str(self.output),
            "results": str(self.results) if self.results else None,
            "failures": [failure_to_json(f) for f in seen.failures] if seen else [],
            "fallbacks": [fallback_to_json(f) for f in seen.fallbacks] if seen else [],
            "provenance": self.provenance,
            "warnings": list(self.warnings),
            "digest": list(self.digest),
            "holders": list(self.holders),
            "progress": self._progress(),
            "table": list(self.table),
            "tail": list(self.tail),
        }

    def _progress(self) -> dict[str, Any] | None:
        if self.progress is None:
            return None
        now = self.progress
        words = now.says(seconds=self.seconds) if now.started else None
        return {
            "done": now.done,
            "failed": now.failed,
            "collected": now.collected,
            "current": now.current,
            "text": words,
        }


def load_record(run: RunFolder) -> RunRecord:
    """The run as far as it is known now.

    Raises:
        BadInputError: there is no such run.
    """
    job = run.job()
    events: tuple[Event, ...] = ()
    with suppress(BadInputError):
        events = Folder(run.owner).journal.read().events
    started = next((e for e in events if isinstance(e, RunStarted) and e.run == run.id), None)
    ended = next((e for e in reversed(events) if isinstance(e, RunFinished) and e.run == run.id), None)
    reader = ResultsReader(run.results)
    if started and not ended:
        reader.look()
    session = next((e.stem for e in events if isinstance(e, SessionOpened)), None)
    return RunRecord(
        id=run.id,
        status=RunStatus(ended.status)
        if ended
        else (RunStatus.RUNNING if run.has_live_supervisor() else RunStatus.LOST),
        exit=ended.exit if ended else None,
        seconds=ended.seconds if ended else _seconds_since(started),
        valid=ended.valid if ended else False,
        evidence=read_evidence(run) if ended else None,
        output=run.owner / job.output,
        results=run.results if job.pytest_args is not None else None,
        folder=run.path,
        scope=ended.scope if ended else {"digest": None, "collected": None, "options": []},
        counts=ended.counts if ended else None,
        warnings=ended.warnings if ended else (),
        digest=ended.digest if ended else (),
        name=job.name,
        hypothesis=started.hypothesis if started else job.hypothesis,
        session=session,
        log=Folder(run.owner).html if session else None,
        provenance=started.provenance if started else {},
        holders=ended.holders if ended else (),
        state=run.state(),
        progress=reader.progress if started and not ended else None,
        table=_table(run) if ended else (),
        tail=_tail(run.owner / job.output) if ended and job.verb == "exec" else (),
    )


def _tail(output: Path) -> tuple[str, ...]:
    """The last lines of an output, and that others came before them.

    A line whose beginning is not at hand is left out, for it may be a secret's end.
    """
    from debug_spyre.vocabulary.masking import mask, secret_values

    _, tail, size = read_ends(output, tail=TAIL_BYTES)
    lines = tail.decode("utf-8", "replace").splitlines()
    whole = lines if size <= TAIL_BYTES else lines[1:]
    masked = mask("\n".join(line.rstrip() for line in whole), secret_values(os.environ))
    shown = [line for line in masked.splitlines() if line]
    is_cut = size > TAIL_BYTES or len(shown) > TAIL_LINES
    return (*(("(cut: earlier lines are in the output's file)",) if is_cut else ()), *shown[-TAIL_LINES:])


def _table(run: RunFolder) -> tuple[str, ...]:
    try:
        made = json.loads((run.path / "series.json").read_text(encoding="utf-8"))
        return tuple(str(line) for line in made["lines"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def _seconds_since(started: RunStarted | None) -> float:
    if started is None:
        return 0.0
    with suppress(ValueError):
        began = datetime.fromisoformat(started.at)
        return max(0.0, (datetime.now(UTC) - began).total_seconds())
    return 0.0


def read_evidence(run: RunFolder) -> Evidence | None:
    """The evidence that was kept; None where there is none or it is damaged."""
    try:
        return evidence_from_json(json.loads(run.evidence.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def counts_of(evidence: Evidence | None) -> dict[str, int] | None:
    """The counts as the journal keeps them."""
    return asdict(evidence.counts) if evidence and evidence.counts else None
