"""After a supervisor's death: its survivors are ended, and what its results hold is recorded as a lost run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from debug_spyre.card import holders
from debug_spyre.card.lock import INHERITED, lock_paths
from debug_spyre.host import processes
from debug_spyre.host.best_effort import kept_going
from debug_spyre.runs.io import finish_run
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.session.events import RunFinished, RunStarted
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.errors import BadInputError


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

        processes.end(left, grace=finish_run.grace_seconds())
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
        finish_run.lost(run, run.job(), started)
        marked.append(run.id)
    return marked


def _end_survivors(run: RunFolder) -> None:
    processes.end(lambda: processes.run_folders().get(str(run.path), []), grace=finish_run.grace_seconds())


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
