"""Which run and which folder a call means: the session's, else a triage folder of its own (a run needs no session)."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.host.clock import local_stamp
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.session.io.journal import JOURNAL
from debug_spyre.session.io.workspace import (
    Folder,
    find_checkout,
    find_session,
    logs_folder,
    open_sessions,
)
from debug_spyre.vocabulary.errors import BadInputError, UsageError
from debug_spyre.vocabulary.words import Status

TRIAGE = "triage"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run goes. The folder of a run without a session is made with its first run."""

    checkout: Path
    folder: Folder
    is_session: bool

    def members(self) -> tuple[str, ...]:
        """The session's members by node id; none without a session."""
        return tuple(m.nodeid for m in self.folder.journal.now().members) if self.is_session else ()

    def has_row(self, number: int) -> bool:
        """The session has that hypothesis."""
        return self.is_session and self.folder.journal.now().hypothesis(number) is not None


def run_place(session: str | None = None) -> RunPlace:
    """The folder for a new run: the named session or triage, the current session, else a new triage folder.

    Raises:
        UsageError: several sessions are open, or none fits the name; EnvironmentTroubleError: not in a checkout.
    """
    checkout = find_checkout()
    logs = logs_folder(checkout)
    if session and (logs / TRIAGE / session / JOURNAL).is_file():
        return RunPlace(checkout, Folder(logs / TRIAGE / session), is_session=False)
    try:
        folder = find_session(logs, stem=session)
        if session or folder.journal.now().status is Status.INVESTIGATING:
            return RunPlace(checkout, folder, is_session=True)
    except UsageError:
        if session or len(open_sessions(logs)) > 1:
            raise
    return RunPlace(checkout, new_triage_folder(logs), is_session=False)


def new_triage_folder(logs: Path) -> Folder:
    """A name for a run without a session; nothing is made yet."""
    return Folder(logs / TRIAGE / f"{local_stamp()}-{secrets.token_hex(2)}")


def find_run(run: str | None, *, session: str | None = None) -> tuple[RunFolder, RunPlace]:
    """The run that is meant: of the named or current session, else of the newest triage; the newest unless named.

    Raises:
        UsageError: there is none.
    """
    checkout = find_checkout()
    places = _places(checkout, session)
    for place in places:
        # one without a job was reserved by a caller who was killed: nothing of it ever began
        found = [f for f in run_folders_of(place.folder.path) if f.job_file.is_file()]
        wanted = [f for f in found if run in (None, f.id, f.id[1:])]
        if wanted:
            live = [f for f in wanted if f.has_live_supervisor()]
            return (live or wanted)[-1], place
    raise UsageError(
        f"there is no run {run}" if run else "there is no run here yet",
        next="debug-spyre status" if session or run else "debug-spyre run --as baseline NODEID",
    )


def _places(checkout: Path, session: str | None) -> list[RunPlace]:
    logs = logs_folder(checkout)
    triages = _triages(logs)
    if session:
        named = [f for f in triages if f.stem == session]
        if named:
            return [RunPlace(checkout, named[0], is_session=False)]
        return [RunPlace(checkout, find_session(logs, stem=session), is_session=True)]
    places = []
    try:
        places.append(RunPlace(checkout, find_session(logs), is_session=True))
    except UsageError:
        if len(open_sessions(logs)) > 1:
            raise
    return places + [RunPlace(checkout, folder, is_session=False) for folder in reversed(triages)]


def _triages(logs: Path) -> list[Folder]:
    base = logs / TRIAGE
    return [Folder(p) for p in sorted(base.iterdir()) if p.is_dir()] if base.is_dir() else []


def known_ids(place: RunPlace) -> tuple[str, ...]:
    """Node ids that runs of this session or of the newest triages collected: they make a remedy exact."""
    folders = [place.folder, *reversed(_triages(logs_folder(place.checkout))[-3:])]
    found: dict[str, None] = {}
    for folder in folders:
        for run in run_folders_of(folder.path):
            found.update(dict.fromkeys(_collected(run)))
    if place.is_session:
        try:
            found.update(dict.fromkeys(place.members()))
        except BadInputError:
            return tuple(found)
    return tuple(found)


def _collected(run: RunFolder) -> list[str]:
    try:
        with run.results.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith('{"e": "collected"'):
                    return [str(nodeid) for nodeid in json.loads(line).get("ids") or ()]
    except (OSError, ValueError):
        pass
    return []
