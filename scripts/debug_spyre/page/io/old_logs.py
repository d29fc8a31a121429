"""Removing what is old below the logs folder: closed sessions, triages and probes of limits, only whole folders.

Never through a link, never outside of the logs folder, never what an open session refers to or a run still writes.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.card.lock_file import is_held
from debug_spyre.host.clock import utc_now
from debug_spyre.page.io.page import size_of
from debug_spyre.runs.io.run_folder import RUNS, run_folders_of
from debug_spyre.session.io.workspace import Folder, load_session, session_folders
from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError
from debug_spyre.vocabulary.local_time import between
from debug_spyre.vocabulary.words import Status

TRIAGE, LIMITS = "triage", "limits"
DAY = 86400
_TRIAGE_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")  # as triage gives it: another folder there is somebody's own


@dataclass(frozen=True, slots=True)
class Old:
    """A closed session that has been silent for long."""

    folder: Folder
    status: str
    days: int
    octets: int


@dataclass(frozen=True, slots=True)
class OldRuns:
    """A folder of runs that belong to no session, none of them new: a triage, or the probes of limits."""

    path: Path
    days: int
    octets: int

    @property
    def name(self) -> str:
        """Its path below the logs folder."""
        return f"{TRIAGE}/{self.path.name}" if self.path.parent.name == TRIAGE else self.path.name


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be; `octets`: what the disk gets back by it."""

    sessions: tuple[Old, ...]
    runs: tuple[OldRuns, ...]
    octets: int


def prune(logs: Path, *, days: float, dry_run: bool) -> Pruned:
    """Remove what is older; what came back to life meanwhile stays.

    Raises:
        EnvironmentTroubleError: something can't be removed, or it is not known what an open session refers to.
    """
    sessions = [(old, _files(old.folder.path, old.folder.html)) for old in old_sessions(logs, days=days)]
    runs = [(old, _files(old.path)) for old in old_runs(logs, days=days)]
    if not dry_run:
        sessions = [(old, files) for old, files in sessions if _remove_session(old)]
        runs = [(old, files) for old, files in runs if _remove_runs(old)]
    octets = _freed(file for _, files in (*sessions, *runs) for file in files)
    return Pruned(tuple(old for old, _ in sessions), tuple(old for old, _ in runs), octets)


def old_sessions(logs: Path, *, days: float) -> list[Old]:
    """Closed sessions whose last event is older; what can't be read is left alone."""
    found = []
    for folder in session_folders(logs):
        if folder.path.is_symlink():
            continue
        try:
            session = load_session(folder)
        except DebugSpyreError:
            continue
        silent = between(session.updated_at, utc_now())
        running = any(not run.is_finished for run in session.runs.values())
        if session.status is Status.INVESTIGATING or running or silent is None or silent < days * DAY:
            continue
        found.append(Old(folder, session.status.value, int(silent // DAY), size_of(folder)))
    return found


def old_runs(logs: Path, *, days: float) -> list[OldRuns]:
    """Triages and probes of limits in which no file is younger, no run goes on, and which no open session names.

    A session that was opened on a triage has its files by name of its own; while it is open its origin stays too.
    """
    base = logs / TRIAGE
    places = sorted(p for p in base.iterdir() if _TRIAGE_NAME.fullmatch(p.name)) if base.is_dir() else []
    places = [] if base.is_symlink() else places
    if (logs / LIMITS / RUNS).is_dir():
        places.append(logs / LIMITS)
    named = _open_journals(logs) if places else b""
    found = []
    for path in places:
        if path.is_symlink() or not path.is_dir() or _goes_on(path):
            continue
        seen = _files(path)
        silent = time.time() - max((s.st_mtime for s in seen), default=path.stat().st_mtime)
        if silent < days * DAY or (path.parent == base and path.name.encode() in named):
            continue
        found.append(OldRuns(path, int(silent // DAY), sum(s.st_size for s in seen)))
    return found


def _open_journals(logs: Path) -> bytes:
    """What the sessions say that are open, or can't be read and may be."""
    said = []
    for folder in session_folders(logs):
        try:
            if load_session(folder).status is not Status.INVESTIGATING:
                continue
        except DebugSpyreError:
            pass
        try:
            said.append(folder.journal.path.read_bytes())
        except OSError as error:
            raise EnvironmentTroubleError(
                f"cannot read {folder.journal.path}: {error.strerror}, so it is not known which triages it refers to",
                next=f"check who owns {folder.path}",
            ) from error
    return b"\n".join(said)


def _goes_on(path: Path) -> bool:
    """A run in it is minded by a supervisor, or nobody can say."""
    return any(is_held(run.job_file) is not False for run in run_folders_of(path))


def _files(*paths: Path) -> list[os.stat_result]:
    """The files below, a hard link as often as it lies there."""
    found = []
    for path in (p for top in paths for p in (top, *top.rglob("*"))):
        try:
            seen = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode):
            found.append(seen)
    return found


def _freed(files: Iterable[os.stat_result]) -> int:
    """Bytes that the disk gets back: those of a file with several names only where all of them go."""
    names: Counter[tuple[int, int]] = Counter()
    octets = 0
    for seen in files:
        names[seen.st_dev, seen.st_ino] += 1
        if names[seen.st_dev, seen.st_ino] == seen.st_nlink:
            octets += seen.st_size
    return octets


def _remove_session(old: Old) -> bool:
    """Remove the session's folder and its page; False where it came back to life meanwhile.

    Raises:
        EnvironmentTroubleError: it can't be removed.
    """
    if load_session(old.folder).status is Status.INVESTIGATING:
        return False
    _remove_folder(old.folder.path)
    try:
        if old.folder.html.is_file() and not old.folder.html.is_symlink():
            old.folder.html.unlink()
    except OSError as error:
        raise _trouble(old.folder.html, error) from error
    return True


def _remove_runs(old: OldRuns) -> bool:
    """Remove that folder; False where a run began in it meanwhile.

    Raises:
        EnvironmentTroubleError: it can't be removed.
    """
    if _goes_on(old.path):
        return False
    _remove_folder(old.path)
    return True


def _remove_folder(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise _trouble(path, error) from error


def _trouble(path: Path, error: OSError) -> EnvironmentTroubleError:
    return EnvironmentTroubleError(
        f"cannot remove {path}: {error.strerror or error}", next=f"check who owns {path}, then debug-spyre prune again"
    )
