"""Drawing a session's page again after a change, for callers that must go on whatever happens."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from debug_spyre.host.files import kept_going
from debug_spyre.session.io.workspace import Folder

SCRIPTS = Path(__file__).resolve().parents[3]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
    "from debug_spyre.page.io.redraw import draw_in_turn; draw_in_turn(Path(sys.argv[2]))"
)


def draw_later(folder: Path) -> None:
    """Draw the page in a process of its own, after the answer; of several that wait for a drawing one stays."""
    words = [sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), str(folder)]
    with kept_going("the page could not be rendered"):
        subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def draw_in_turn(folder: Path) -> None:
    """Wait for the drawing that is under way, unless somebody waits already: that one will see our event too."""
    with (folder / ".draw-next").open("w") as waiting, (folder / ".draw").open("w") as drawing:
        try:
            fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        fcntl.flock(drawing, fcntl.LOCK_EX)
        fcntl.flock(waiting, fcntl.LOCK_UN)
        redraw(folder)
        Folder(folder).journal.keep_state()


def redraw(folder: Path) -> None:
    """Draw the page of this session folder; a failure is reported and never raised. A triage folder has no page."""
    with kept_going("the page could not be rendered"):
        with Folder(folder).journal.path.open("rb") as stream:
            if b'"kind":"session_opened"' not in stream.readline():
                return
        from debug_spyre.page.io.page import render  # loading the page's code takes time

        render(Folder(folder))
