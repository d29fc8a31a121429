"""The work before and after a run's command: provenance and digests, then evidence and its record.

Nothing here may keep a run from being recorded: what fails is said among the run's warnings.
After a supervisor's death its survivors are ended, and what its results hold is recorded as a lost run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from debug_spyre.card import holders
from debug_spyre.card.lock import INHERITED, lock_paths
from debug_spyre.host import processes
from debug_spyre.host.files import PRIVATE, kept_going, read_ends, write_atomically
from debug_spyre.runs import pytest_words
from debug_spyre.runs.io import run_folder as rf
from debug_spyre.runs.io.records import counts_of
from debug_spyre.runs.io.run_environment import After, change_words, changes_before, is_declared, look_again
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.runs.outcome import End, judge
from debug_spyre.runs.pytest_words import scope_of
from debug_spyre.session.events import ReportMade, RunFinished, RunStarted, SessionOpened
from debug_spyre.session.io.workspace import Folder
from debug_spyre.triage.ffdc import Report
from debug_spyre.triage.io.ffdc_reports import keep_reports, reports_of
from debug_spyre.vocabulary.conditions import Conditions
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Evidence, evidence_to_json
from debug_spyre.vocabulary.words import RunStatus

EDGE_BYTES = 4096
SESSION_TENSORS = 1024 * 1024 * 1024


def grace_seconds() -> float:
    """Seconds between TERM and KILL (DEBUG_SPYRE_GRACE)."""
    return _seconds("DEBUG_SPYRE_GRACE", 10.0)


def quiet_seconds() -> float:
    """Seconds without output and result after which a run is reported as quiet (DEBUG_SPYRE_QUIET)."""
    return _seconds("DEBUG_SPYRE_QUIET", 300.0)


def release_seconds() -> float:
    """Seconds that the device may take to become free after a run (DEBUG_SPYRE_RELEASE)."""
    return _seconds("DEBUG_SPYRE_RELEASE", 60.0)


def _seconds(name: str, default: float) -> float:
    """A supervisor must not die of a typing error when the run has ended already: no number counts as not set."""
    try:
        seconds = float(os.environ.get(name, ""))
    except ValueError:
        return default
    return seconds if 0 <= seconds < float("inf") else default


def is_session(events: Iterable[object]) -> bool:
    """The journal is a session's."""
    return any(isinstance(event, SessionOpened) for event in events)


def tensor_budget(folder: Path) -> int:
    """Bytes that the session may still keep in tensors."""
    used = sum(p.stat().st_size for p in folder.glob(f"{rf.RUNS}/**/*.safetensors"))
    return max(0, SESSION_TENSORS - used)


def read(run: RunFolder, job: rf.Job, notes: list[str]) -> Evidence | None:
    """Read the run's evidence, compare its kept tensors, and write evidence.json. Problems are added to `notes`."""
    output = job.output_path
    evidence: Evidence | None = None
    reports: tuple[Report, ...] = ()
    with kept_going("the first-failure reports could not be kept", notes):
        reports = reports_of(run.results)
        keep_reports(reports, run.path)
    with kept_going("the evidence could not be read", notes):
        from debug_spyre.triage.io.logs_reader import read_run

        results = run.results_there
        evidence = read_run(results, output, checkout=job.checkout, reports=reports)
    if evidence is None:
        return None
    with kept_going("the kernels could not be looked up", notes):
        from debug_spyre.triage.io.ffdc_reports import kernel_lines

        notes += kernel_lines(evidence, output, {**os.environ, **job.env})
    with kept_going("the conditions of the run could not be read", notes):
        if run.results.exists():
            evidence = replace(evidence, conditions=_conditions(run, job))
    with kept_going("the kept tensors could not be compared", notes):
        from debug_spyre.numerics.io.kept_tensors import compare_kept

        evidence = compare_kept(run.path, evidence)
    with kept_going("the evidence could not be kept", notes):
        write_atomically(run.evidence, json.dumps(evidence_to_json(evidence), ensure_ascii=False), mode=PRIVATE)
    return evidence


def _conditions(run: RunFolder, job: rf.Job) -> Conditions | None:
    from debug_spyre.host.files import CACHE
    from debug_spyre.runs.io.run_environment import conditions_of

    began = run.job_file.stat().st_mtime_ns
    return conditions_of(run.results, job.checkout, job.folder.parent / CACHE, began_ns=began)


def settle(
    run: RunFolder,
    job: rf.Job,
    started: RunStarted,
    end: End,
    *,
    seen: After,
    notes: list[str],
    holders: tuple[str, ...] = (),
) -> None:
    """Read the evidence and append RunFinished."""
    evidence = read(run, job, notes)
    folder = Folder(job.folder)
    events = folder.journal.read().events
    changed = seen.changed and not is_declared(job, events, started)
    notes += changes_before(events, started, job)
    head, tail, _ = read_ends(job.output_path, head=EDGE_BYTES, tail=EDGE_BYTES)
    ending = judge(
        end,
        evidence,
        is_pytest=job.pytest_args is not None,
        changed=changed,
        head=head.decode("utf-8", "replace"),
        tail=tail.decode("utf-8", "replace"),
        has_results=run.results.exists() and run.results.stat().st_size > 0,
    )
    if seen.changed:
        notes.insert(0, change_words(started, seen, declared=not changed))
    scope = scope_of(evidence.selected if evidence else (), pytest_words.options(job.pytest_args or ()))
    folder.journal.append_with(
        lambda now: (
            ()
            if _is_finished(now, job.run)
            else (
                RunFinished(
                    run=job.run,
                    status=ending.status.value,
                    valid=ending.valid,
                    seconds=round(end.seconds, 3),
                    exit=end.exit,
                    scope=scope.to_json(),
                    counts=counts_of(evidence),
                    failing=len({f.nodeid for f in evidence.failures}) if evidence else 0,
                    digest=_digest(evidence, notes) if _tells(job, evidence) else (),
                    evidence=f"{rf.RUNS}/{job.run}/evidence.json" if run.evidence.exists() else None,
                    tree_digest=seen.tree,
                    backend=seen.backend,
                    warnings=tuple(dict.fromkeys([*ending.warnings, *notes])),
                    holders=holders,
                    output=job.output,
                ),
                *_reports(run, job, started),
            )
        )
    )


def _reports(run: RunFolder, job: rf.Job, started: RunStarted) -> list[ReportMade]:
    """An experiment's table, where the command left one."""
    path = run.path / "series.json"
    with suppress(OSError, ValueError, KeyError):
        made = json.loads(path.read_text(encoding="utf-8"))
        return [
            ReportMade(
                verb=str(made["verb"]),
                lines=tuple(str(line) for line in made["lines"]),
                report=f"{rf.RUNS}/{job.run}/series.json",
                run=job.run,
                hypothesis=started.hypothesis,
                data=made.get("data") or {},
            )
        ]
    return []


def _digest(evidence: Evidence | None, notes: list[str]) -> tuple[str, ...]:
    if evidence is None:
        return ()
    with kept_going("the digest could not be made", notes):
        from debug_spyre.triage.digest import digest

        return digest(evidence)
    return ()


def _tells(job: rf.Job, evidence: Evidence | None) -> bool:
    """A plain command without a failure has nothing to say in pytest's words."""
    return job.pytest_args is not None or bool(evidence and (evidence.failures or evidence.fallbacks))


def _is_finished(events: Iterable[object], run: str) -> bool:
    return any(isinstance(event, RunFinished) and event.run == run for event in events)


def lost(run: RunFolder, job: rf.Job, started: RunStarted) -> None:
    """Record a run whose supervisor died, with what its results file still contains."""
    seconds = 0.0
    for path in (run.results, job.output_path):
        with suppress(OSError):
            seconds = max(seconds, path.stat().st_mtime - run.job_file.stat().st_mtime)
    notes = ["the run's supervisor was killed; this is what its results still say"]
    end = End(RunStatus.LOST, None, max(0.0, min(seconds, time.time())))
    settle(run, job, started, end, seen=look_again(job, started), notes=notes)
    with kept_going("state"):
        run.say(rf.FINISHED)


def end_orphans(cards: Sequence[str]) -> list[Path]:
    """End this user's processes on these cards whose run has no living supervisor, and record those runs as lost.

    On these cards is: started under one of their locks, or with one of the devices open. Returns the folders of their sessions.
    Everybody else's processes are left alone, and so are those of a run on another card.
    """
    ended = []
    for name, found in processes.run_folders(_on(cards)).items():
        run = RunFolder(Path(name))
        if not run.path.is_dir() or run.has_live_supervisor():
            continue
        pids = {p.pid: p.start for p in found}

        def left(pids: dict[int, int] = pids, name: str = name) -> list[processes.Process]:
            now = processes.run_folders().get(name, [])
            return [p for p in now if pids.get(p.pid, p.start) == p.start]

        processes.end(left, grace=grace_seconds())
        with kept_going("a lost run could not be recorded"):
            recover(run.owner)
        ended.append(run.owner)
    return ended


def _on(cards: Sequence[str]) -> Callable[[processes.Process, list[bytes]], bool]:
    marks = set()
    for path in lock_paths(cards):
        with suppress(OSError):
            found = path.stat(follow_symlinks=False)
            marks.add(f"{found.st_dev}:{found.st_ino}")
    holding = {process.pid for process in holders.holders(cards).processes}
    prefix = f"{INHERITED}=".encode()

    def is_on(process: processes.Process, entries: list[bytes]) -> bool:
        mine = next((e[len(prefix) :].decode("utf-8", "replace") for e in entries if e.startswith(prefix)), "")
        return process.pid in holding or any(mark.partition(":")[2] in marks for mark in mine.split(","))

    return is_on


def recover(folder: Path) -> list[str]:
    """Record the runs of this folder whose supervisor died, after their survivors are ended; returns their ids."""
    marked = []
    for run, started in _unfinished(folder):
        if run.has_live_supervisor():
            continue
        _end_survivors(run)
        lost(run, run.job(), started)
        marked.append(run.id)
    return marked


def _end_survivors(run: RunFolder) -> None:
    processes.end(lambda: processes.run_folders().get(str(run.path), []), grace=grace_seconds())


def _unfinished(folder: Path) -> Iterator[tuple[RunFolder, RunStarted]]:
    try:
        events = Folder(folder).journal.read().events
    except BadInputError:
        return
    ended = {event.run for event in events if isinstance(event, RunFinished)}
    by_id = {run.id: run for run in run_folders_of(folder)}
    for event in events:
        if isinstance(event, RunStarted) and event.run not in ended and event.run in by_id:
            with suppress(BadInputError):
                by_id[event.run].job()
                yield by_id[event.run], event
