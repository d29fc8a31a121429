"""Opening a session: the folder is made exclusively, the tree is kept as it is now, the matrix run is taken in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_spyre.host import clock, fingerprint
from debug_spyre.host.files import PRIVATE, sha256_of, write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.queue.session_warnings import SessionWarning, half_moved, in_both
from debug_spyre.session.events import ArtifactSaved, Event, MemberRemoved, SessionLinked, SessionOpened
from debug_spyre.session.io.workspace import Folder, first_event, load_session, new_session_folder, session_folders
from debug_spyre.session.replay import member_to
from debug_spyre.session.state import Member, Session
from debug_spyre.tree.io import snapshot as tree
from debug_spyre.triage.io.triages import take_in
from debug_spyre.vocabulary.errors import BadInputError, DebugSpyreError, RefusedError
from debug_spyre.vocabulary.words import CARVED_OUT


@dataclass(frozen=True, slots=True)
class Opening:
    """All that a new session begins with."""

    slug: str
    symptom: str
    members: tuple[Member, ...]
    probe: str | None
    cluster: dict[str, Any] | None = None
    matrix: tuple[str, ...] | None = None
    source: str | None = None
    runs_from: Folder | None = None  # a triage, or the session that this one is carved out of
    runs_named: str | None = None
    tree: dict[str, Any] | None = None  # of a carved-out session: its origin's start, before any experiment
    linked_from: str | None = None
    logs_read: tuple[Path, ...] = field(default=())


def open_session(checkout: Path, logs: Path, opening: Opening) -> Folder:
    """Create the session; returns its folder.

    Raises:
        EnvironmentTroubleError: the folder can't be made or the tree can't be kept; nothing half-made stays.
    """
    folder = new_session_folder(logs, f"debug-{clock.local_stamp()}-{opening.slug}")
    try:
        events = _first_events(checkout, folder, opening)
        folder.journal.append_with(lambda _: events)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    return folder


def _first_events(checkout: Path, folder: Folder, opening: Opening) -> list[Event]:
    opened = SessionOpened(
        stem=folder.stem,
        slug=opening.slug,
        symptom=opening.symptom,
        members=tuple(member_to(m) for m in opening.members),
        checkout=str(checkout),
        probe=opening.probe,
        cluster=opening.cluster,
        matrix=opening.matrix,
        source=opening.source,
        tree=opening.tree or tree.snapshot(checkout, folder.path),
        backend=_backend(checkout),
        linked_from=opening.linked_from,
        client=None if opening.linked_from else os.environ.get("CLAUDE_CODE_SESSION_ID"),  # work goes on in the origin
        local_time=clock.local_time(),
    )
    events: list[Event] = [opened]
    if opening.runs_from:
        events += take_in(opening.runs_from, folder, named=opening.runs_named)
    logs = [file for path in opening.logs_read for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    events += [_keep_log(path, folder) for path in logs if path.is_file()]
    return events


def _backend(checkout: Path) -> str | None:
    """Fingerprint of the torch-spyre that the checkout's Python has; None where none can be found."""
    try:
        packages = choose(checkout).packages
    except DebugSpyreError:
        return None
    return fingerprint.backend_fingerprint(packages) if packages else None


def _keep_log(path: Path, folder: Folder) -> Event:
    target = folder.path / f"source-{path.name}"
    number = 2
    while target.exists():  # two logs of one name come from two folders
        target = folder.path / f"source-{number}-{path.name}"
        number += 1
    write_atomically(target, path.read_bytes(), mode=PRIVATE)
    return ArtifactSaved(
        path=target.name,
        sha256=sha256_of(target),
        size=target.stat().st_size,
        note="the log that the cluster was read from; it never counts for the gate",
    )


def carve_out(checkout: Path, origin: Folder, plan: Opening, *, reason: str) -> Folder:
    """Open the session of the plan, then say in its origin that the members left for it.

    Raises:
        RefusedError: another call moved one of them meanwhile; the new session is taken away again.
    """
    other = open_session(checkout, origin.path.parent, plan)
    try:
        depart(origin, other.stem, [m.nodeid for m in plan.members], reason=reason)
    except RefusedError:
        shutil.rmtree(other.path, ignore_errors=True)
        raise
    return other


def depart(origin: Folder, stem: str, nodeids: Sequence[str], *, reason: str) -> None:
    """Say in `origin` that these left for `stem`; the link, which comes last, says that the move is complete.

    Raises:
        RefusedError: one of them is no member any more.
    """

    def events(session: Session) -> Iterable[Event]:
        if (CARVED_OUT, stem) in session.links:
            return  # another call has just finished it
        gone = set(nodeids) - {m.nodeid for m in session.members}
        if gone:
            raise RefusedError(f"{min(gone)} left this cluster meanwhile", next="debug-spyre cluster list")
        yield from (MemberRemoved(nodeid=nodeid, reason=reason, moved_to=stem) for nodeid in nodeids)
        yield SessionLinked(stem=stem, relation=CARVED_OUT)

    origin.journal.record(lambda session: tuple(events(session)))


def half_moves(folder: Folder, session: Session) -> tuple[SessionWarning, ...]:
    """Moves out of this session, and the one that made it, that were cut off between the two journals."""
    pairs = [(session, other) for _, other in begun(folder, session)]
    if session.linked_from:
        origin = _read(Folder(folder.path.parent / session.linked_from))
        pairs += [(origin, session)] if origin else []
    return tuple(concern for pair in pairs if (concern := half_moved(*pair)))


def begun(folder: Folder, session: Session) -> list[tuple[Folder, Session]]:
    """Sessions that were carved out of this one and share members with it: their moves are not finished."""
    found = []
    for other in session_folders(folder.path.parent):
        if first_event(other).get("linked_from") == session.stem:
            carved = _read(other)
            if carved is not None and in_both(session, carved):
                found.append((other, carved))
    return found


def _read(folder: Folder) -> Session | None:
    try:
        return load_session(folder)
    except BadInputError:
        return None
