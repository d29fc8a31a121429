"""Drawing a session's page again after a change, for callers that must go on whatever happens."""

from __future__ import annotations

from pathlib import Path

from debug_spyre.host.best_effort import kept_going
from debug_spyre.session.io.workspace import Folder


def redraw(folder: Path) -> None:
    """Draw the page of this session folder; a failure is reported and never raised. A triage folder has no page."""
    with kept_going("the page could not be rendered"):
        with Folder(folder).journal.path.open("rb") as stream:
            if b'"kind":"session_opened"' not in stream.readline():
                return
        from debug_spyre.page.io.page import render  # loading the page's code takes time

        render(Folder(folder))
