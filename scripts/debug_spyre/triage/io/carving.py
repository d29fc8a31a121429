"""Carving members out into a session of their own: two journals, so a kill between them can be seen and mended.

The new session is written first and whole; then one append to its origin says who left and where to. Until then the
members are in both, and whoever looks at either session is told the command that finishes the move.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from debug_spyre.queue.session_warnings import SessionWarning, half_moved, in_both
from debug_spyre.session.events import Event, MemberRemoved, SessionLinked
from debug_spyre.session.io.workspace import Folder, first_event, load_session, session_folders
from debug_spyre.session.state import Session
from debug_spyre.triage.io.opening import Opening, open_session
from debug_spyre.vocabulary.errors import BadInputError, RefusedError
from debug_spyre.vocabulary.words import CARVED_OUT


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
