"""Removing old closed sessions: only those, only whole ones, never through a link and never outside the logs folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.core.errors import DebugSpyreError, EnvironmentTroubleError
from debug_spyre.core.view.moments import between
from debug_spyre.core.words import Status
from debug_spyre.edge.clock import utc_now
from debug_spyre.edge.page import size_of
from debug_spyre.edge.workspace import Folder, load_session, session_folders


@dataclass(frozen=True, slots=True)
class Old:
    """A closed session that has been silent for long."""

    folder: Folder
    status: str
    days: int
    octets: int


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
        if session.status is Status.INVESTIGATING or running or silent is None or silent < days * 86400:
            continue
        found.append(Old(folder, session.status.value, int(silent // 86400), size_of(folder)))
    return found


def remove(old: Old) -> bool:
    """Remove the session's folder and its page; False where it came back to life meanwhile.

    Raises:
        EnvironmentTroubleError: it can't be removed.
    """
    if load_session(old.folder).status is Status.INVESTIGATING:
        return False
    try:
        shutil.rmtree(old.folder.path)
        if old.folder.html.is_file() and not old.folder.html.is_symlink():
            old.folder.html.unlink()
    except OSError as error:
        raise EnvironmentTroubleError(
            f"cannot remove {old.folder.path}: {error.strerror or error}", next=f"check who owns {old.folder.path}"
        ) from error
    return True
