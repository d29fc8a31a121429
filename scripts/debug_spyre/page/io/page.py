"""Writing the log: HTML beside the session's folder and its Markdown twin inside, from the journal and the files it names.

Two renders of one journal give the same bytes; a reader sees the old page or the new one, never half of one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_spyre.host.files import sweep, write_atomically
from debug_spyre.host.templates import render_template, templates_folder
from debug_spyre.session.events import SessionOpened
from debug_spyre.session.io import seals
from debug_spyre.session.io.workspace import Folder, load_evidence, session_folders, session_of
from debug_spyre.session.state import Run, Session
from debug_spyre.vocabulary.errors import DebugSpyreError
from debug_spyre.vocabulary.words import APPROVED_CHANGE, BASELINE, RUN_NAMES

if TYPE_CHECKING:
    from debug_spyre.examine.dossier import Dossier
    from debug_spyre.page.log import LogView
    from debug_spyre.page.page_context import Material, Tail
    from debug_spyre.page.sessions import Listed

# the view is imported where it is used: verbs that render nothing start faster without it
INDEX = "index.html"
DOSSIER = "dossier.json"
TAIL_BYTES, COUNTED_BYTES, TAIL_LINES = 16_384, 2_000_000, 40
MOST_TAILS, MOST_PICTURES, MOST_COMPARISON_BYTES = 48, 6, 8_000_000
INDEX_SECONDS = 60.0
NOISE = re.compile(r"(?:DEBUG|INFO)\s+torch\.__trace\b")  # torch's structured trace, as pytest captures it
PATIENCE = 10.0  # seconds to wait for another renderer; a stopped one must not stop everybody


def render(folder: Folder) -> Path:
    """Write the session's page and its twin; returns the page's absolute path. A folder without session is left alone.

    Raises:
        BadInputError: the journal is damaged; EnvironmentTroubleError: the page can't be written.
    """
    from debug_spyre.page.log import log_view, older
    from debug_spyre.page.markdown_twin import markdown
    from debug_spyre.page.page_context import OLDER, Frame

    page = folder.html.absolute()
    with _one_at_a_time(folder.path):
        material = _material(folder)
        if material is None:
            return page
        frame = Frame(material)
        view, rest = log_view(frame), older(frame)
        if rest is not None:
            write_atomically(folder.path / OLDER, render_template("older.html.j2", older=rest))
        write_atomically(folder.markdown, markdown(view))
        write_atomically(page, render_template("log.html.j2", log=view))
    _keep_index(folder, view)
    return page


def _keep_index(folder: Folder, view: LogView) -> None:
    """The list follows: at once where a session began or ended, else once a minute. Its fault is never the page's."""
    logs, index = folder.path.parent, folder.path.parent / INDEX
    with suppress(DebugSpyreError, OSError):
        is_young = not view.queue.rows and view.experiments.total <= 1
        if (
            is_young
            or not view.investigating
            or not index.exists()
            or time.time() - index.stat().st_mtime > INDEX_SECONDS
        ):
            sweep(folder.path)
            render_index(logs)


def render_index(logs: Path) -> Path:
    """Write the list of all sessions; returns its absolute path."""
    from debug_spyre.page.sessions import index_view

    sweep(logs)
    page = (logs / INDEX).absolute()
    with _one_at_a_time(logs):
        listed = [_listed(folder) for folder in session_folders(logs)]
        write_atomically(page, render_template("index.html.j2", index=index_view(listed)))
    return page


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Renderers take turns, so that the page of an older journal never replaces that of a newer one."""
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _wait_for(descriptor)
    except OSError:
        pass  # no such folder, or a file system without locks: the reader's error follows
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _wait_for(descriptor: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                return
            time.sleep(0.02)


def _material(folder: Folder) -> Material | None:
    from debug_spyre.page.page_context import Material
    from debug_spyre.vocabulary.masking import secret_values

    reading = folder.journal.read()
    if not any(isinstance(event, SessionOpened) for event in reading.events[:1]):
        return None
    session = session_of(folder, reading.events)
    runs = [run for run in session.runs.values() if run.is_finished and run.valid]
    return Material(
        session=session,
        evidence=load_evidence(folder, _telling(session, runs)),
        tails=_tails(folder, session),
        pictures=_pictures(folder, session, runs),
        dossier=_dossier(folder),
        events=len(reading.events),
        torn=reading.torn is not None,
        trouble=seals.trouble(folder.path),
        secrets=secret_values(os.environ),
    )


def _dossier(folder: Folder) -> Dossier | None:
    """What the newest investigation found for this session; None where there is none or it can't be read."""
    from debug_spyre.examine.dossier import dossier_from

    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return dossier_from(json.loads((folder.path / DOSSIER).read_text(encoding="utf-8")))
    return None


def _telling(session: Session, runs: list[Run]) -> list[Run]:
    """The runs whose whole evidence the page shows: of each name and scope the newest, and the newest on the first tree."""
    start = session.tree.get("digest")
    named = [run for run in runs if run.name in RUN_NAMES]
    newest = {(run.name, run.members_only, ""): run for run in named}
    newest |= {(run.name, run.members_only, "start"): run for run in named if start and run.tree_digest == start}
    baselines = [run for run in named if run.name == BASELINE]
    return list({run.id: run for run in [*newest.values(), *baselines[-2:]]}.values())


def _tails(folder: Folder, session: Session) -> dict[str, Tail]:
    """The ends of the newest outputs, of the named runs' outputs and of the patches."""
    runs = sorted(session.runs.values(), key=lambda run: run.started_seq)
    wanted = [run.output for run in runs[-MOST_TAILS:]]
    wanted += [run.output for run in runs if run.name in RUN_NAMES][-MOST_TAILS:]
    found = {}
    for path in dict.fromkeys(wanted):
        tail = _tail(folder.path, path)
        if tail is not None:
            found[path] = tail
    patches = [revert.patch for revert in session.reverts[-3:] if revert.patch]
    patches += [kept.path for kept in session.artifacts if kept.note == APPROVED_CHANGE][-1:]
    for path in patches:
        if (tail := _tail(folder.path, path, whole=True)) is not None:
            found[path] = tail
    return found


def _tail(folder: Path, path: str, *, whole: bool = False) -> Tail | None:
    """The last lines of a file of the folder; None where there is none. `whole`: the first lines instead."""
    from debug_spyre.page.page_context import Tail

    if not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
        return None
    try:
        descriptor = os.open(folder / path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            total = None
            if size <= COUNTED_BYTES:
                stream.seek(0)
                data = stream.read(COUNTED_BYTES)
                total = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
                data = data if whole else data[-TAIL_BYTES:]
            else:
                stream.seek(0 if whole else size - TAIL_BYTES)
                data = stream.read(TAIL_BYTES)
    except OSError:
        return None
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if whole:
        return Tail(tuple(lines[:400]), total, size)
    if size > TAIL_BYTES and len(lines) > 1:
        lines = lines[1:]  # its beginning is cut off, and with it what says that a value is secret
    told = [line for line in lines if not NOISE.match(line)]
    return Tail(tuple(told[-TAIL_LINES:]), total, size, noise=len(lines) - len(told))


def _pictures(folder: Folder, session: Session, runs: list[Run]) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Entries with a picture from the newest runs' comparisons files; the matrix has those of other clusters too."""
    members = {member.nodeid for member in session.members} | {"None"}
    found: list[tuple[str, dict[str, Any]]] = []
    for run in reversed(runs[-200:]):
        entries = _comparisons(folder.path / "runs" / run.id / "comparisons.json")
        drawn = [e for e in entries if isinstance(e, dict) and isinstance(e.get("picture"), dict)]
        found += [(run.id, e) for e in drawn if str(e.get("nodeid")) in members]
        if len(found) >= MOST_PICTURES:
            break
    return tuple(found[:MOST_PICTURES])


def _comparisons(path: Path) -> list[Any]:
    try:
        if path.stat().st_size > MOST_COMPARISON_BYTES:
            return []
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    if isinstance(data, dict):
        data = next(
            (v for k, v in data.items() if k in {"comparisons", "pairs", "results"} and isinstance(v, list)), [data]
        )
    return data if isinstance(data, list) else []


def _listed(folder: Folder) -> Listed:
    from debug_spyre.page.sessions import Listed
    from debug_spyre.vocabulary.masking import secret_values

    size = size_of(folder)
    page = folder.html.is_file()
    try:
        session = folder.journal.now()
    except DebugSpyreError as error:
        return Listed(folder.stem, None, size, page, trouble=error.what)
    return Listed(folder.stem, session, size, page, secrets=secret_values(os.environ))


def size_of(folder: Folder) -> int:
    """Bytes of a session's folder and page."""
    total = 0
    for path in (*folder.path.rglob("*"), folder.html):
        try:
            if not path.is_symlink() and path.is_file():
                total += path.stat().st_size
        except OSError:
            continue
    return total


__all__ = ["render", "render_index", "size_of", "templates_folder"]
