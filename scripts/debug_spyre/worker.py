"""The entry point of a supervisor process: the job of `runs`, with the page that follows it."""

from __future__ import annotations

from collections.abc import Sequence

from debug_spyre.page.io.redraw import redraw
from debug_spyre.runs.io import supervisor


def main(words: Sequence[str]) -> None:
    """Supervise one job. `words`: the run's folder, and the descriptor that holds the lock on its job.json."""
    supervisor.main(words, redraw)


def investigate(words: Sequence[str]) -> int:
    """The command of an investigation's job. `words`: the request's file."""
    from debug_spyre.investigate.io import driver

    return driver.main(words, redraw)
