"""Where things live: the checkout, its logs folder, sessions by stem, and which session is meant."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.session.events import Event, SessionOpened
from debug_spyre.session.io import checkout as its_checkout
from debug_spyre.session.io.journal import JOURNAL, Journal
from debug_spyre.session.replay import NoSessionError, replay
from debug_spyre.session.state import Run, Session
from debug_spyre.vocabulary.errors import BadInputError, UsageError
from debug_spyre.vocabulary.evidence import Evidence, evidence_from_json

SKILL, find_checkout, logs_folder = its_checkout.SKILL, its_checkout.find_checkout, its_checkout.logs_folder
FRESH_SECONDS = 24 * 3600
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_SLUG = 60


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a journal: a session's, or a triage's before `open` takes it in."""

    path: Path

    @property
    def journal(self) -> Journal:
        """Its journal."""
        return Journal(self.path)

    @property
    def stem(self) -> str:
        """The session's stem."""
        return self.path.name

    @property
    def html(self) -> Path:
        """The session's page, beside the folder."""
        return self.path.parent / f"{self.path.name}.html"

    @property
    def markdown(self) -> Path:
        """The page's Markdown twin, inside the folder."""
        return self.path / "log.md"


def check_slug(slug: str, *, command: str = "debug-spyre open") -> str:
    """The slug if it can be part of a file name; `command` is what takes it.

    Raises:
        UsageError: it can't; a usable form is proposed.
    """
    if _SLUG.fullmatch(slug) and len(slug) <= MAX_SLUG:
        return slug
    proposal = slugify(slug) or "rmsnorm-wide-mismatch"
    raise UsageError(
        f"{slug!r} is no slug: lower-case words joined by hyphens, at most {MAX_SLUG} characters",
        next=f"{command} {proposal}",
    )


def slugify(text: str) -> str:
    """Text as a slug; empty where nothing is left of it."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words)[:MAX_SLUG].strip("-")


def session_folders(logs: Path) -> list[Folder]:
    """All sessions below `logs`, oldest stem first."""
    if not logs.is_dir():
        return []
    found = sorted(p for p in logs.iterdir() if p.name.startswith("debug-") and (p / JOURNAL).is_file())
    return [Folder(p) for p in found]


def past_sessions(logs: Path) -> list[Session]:
    """All sessions of the checkout that can be read, oldest first."""
    past = []
    for folder in session_folders(logs):
        try:
            past.append(load_session(folder))
        except BadInputError:
            continue
    return past


def load_session(folder: Folder) -> Session:
    """The session's state.

    Raises:
        BadInputError: the journal can't be read or does not begin with session_opened.
    """
    return session_of(folder, folder.journal.read().events)


def session_of(folder: Folder, events: Iterable[Event]) -> Session:
    """The state that these events of the folder's journal make.

    Raises:
        BadInputError: they make none.
    """
    try:
        return replay(events)
    except NoSessionError as error:
        raise BadInputError(f"{folder.journal.path}: {error}", next="debug-spyre status --all") from error


def first_event(folder: Folder) -> dict[str, Any]:
    """What the session was opened with, as its journal's first line holds it; empty where that can't be read."""
    try:
        with folder.journal.path.open("rb") as stream:
            first = json.loads(stream.readline())
    except (OSError, ValueError, RecursionError):
        return {}
    return first if isinstance(first, dict) and first.get("kind") == SessionOpened.kind else {}


def find_session(logs: Path, *, stem: str | None = None) -> Folder:
    """The session that is meant.

    By stem (or an unambiguous part of it), else the one that this client opened, else the only one investigating and
    touched within 24 h.

    Raises:
        UsageError: none or several fit; they are listed.
    """
    folders = session_folders(logs)
    if stem:
        exact = [f for f in folders if f.stem == stem.removesuffix(".html")]
        found = exact or [f for f in folders if stem in f.stem]
        if len(found) == 1:
            return found[0]
        raise _unclear(f"{'no session fits' if not found else 'several sessions fit'} {stem!r}", found or folders)
    client = os.environ.get("CLAUDE_CODE_SESSION_ID")
    if client:
        own = [f for f in folders if _opened_by_client(f, client)]
        if own:
            return own[-1]
    live = [f for f in folders if _is_fresh(f) and _is_investigating(f)]
    if len(live) == 1:
        return live[0]
    raise _unclear("no session is open here" if not live else "several sessions are open here", live or folders)


def open_sessions(logs: Path) -> list[Folder]:
    """Sessions that are investigating and were touched within 24 h."""
    return [f for f in session_folders(logs) if _is_fresh(f) and _is_investigating(f)]


def make_logs(logs: Path) -> None:
    """The logs folder, kept out of git wherever the skill itself is installed.

    Raises:
        EnvironmentTroubleError: it can't be made.
    """
    make_folder(logs)
    ignore = logs / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, "*\n")


def new_session_folder(logs: Path, stem: str) -> Folder:
    """Create the folder of a new session, exclusively.

    Raises:
        EnvironmentTroubleError: it exists or can't be made.
    """
    make_logs(logs)
    folder = Folder(logs / stem)
    make_folder(folder.path, exclusive=True)
    return folder


def _unclear(what: str, folders: list[Folder]) -> UsageError:
    listed = tuple(f"  {f.stem}" for f in folders[-8:])
    following = f"debug-spyre VERB --session {folders[-1].stem}" if folders else "debug-spyre investigate"
    return UsageError(what, details=listed, next=following)


def _is_fresh(folder: Folder) -> bool:
    try:
        return time.time() - folder.journal.path.stat().st_mtime < FRESH_SECONDS
    except OSError:
        return False


def _is_investigating(folder: Folder) -> bool:
    """Read from the journal's bytes: a quote inside a value is escaped, so these words are the events' own."""
    try:
        data = folder.journal.path.read_bytes()
    except OSError:
        return False
    is_session = first_event(folder) != {}
    return is_session and data.rfind(b'"kind":"session_closed"') <= data.rfind(b'"kind":"session_reopened"')


def _opened_by_client(folder: Folder, client: str) -> bool:
    return first_event(folder).get("client") == client


def load_evidence(folder: Folder, runs: Iterable[Run]) -> dict[str, Evidence]:
    """Evidence by run id; a run whose file is missing or damaged is left out, so its answer is unknown."""
    found = {}
    for run in runs:
        if run.evidence is None:
            continue
        try:
            found[run.id] = evidence_from_json(json.loads((folder.path / run.evidence).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def all_evidence(folder: Folder, session: Session) -> dict[str, Evidence]:
    """Evidence of every finished run of the session."""
    return load_evidence(folder, session.runs.values())
