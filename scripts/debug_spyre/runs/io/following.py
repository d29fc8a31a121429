"""Following a job that says its own steps: new lines of its output are passed on, for people, until it ends or time is up."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from debug_spyre.runs.io.jobs import follow
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.runs.io.run_folder import RunFolder
from debug_spyre.vocabulary.errors import BadInputError


def follow_steps(
    run: RunFolder, *, limit: float | None, shows: Callable[[str], bool] = lambda _line: True
) -> RunRecord:
    """The run's record at its end, or after `limit` seconds. `shows` says which lines of the output are passed on."""
    began, shown = time.monotonic(), 0
    quiet = bool(os.environ.get("CLAUDECODE"))
    while run.has_live_supervisor() and (limit is None or time.monotonic() - began < limit):
        time.sleep(0.1)
        shown = shown if quiet else _pass_on(run, shown, shows)
    if run.has_live_supervisor():
        return follow(run, foreground=0.0)
    if not quiet:
        _pass_on(run, shown, shows)
    return follow(run)


def _pass_on(run: RunFolder, shown: int, shows: Callable[[str], bool]) -> int:
    """New whole lines of the job's output, on stderr."""
    try:
        with run.job().output_path.open("rb") as stream:
            stream.seek(shown)
            text = stream.read()
    except (OSError, BadInputError):
        return shown
    whole = text[: text.rfind(b"\n") + 1]
    for line in whole.decode("utf-8", "replace").splitlines():
        if shows(line):
            sys.stderr.write(f"debug-spyre: {line}\n")
    return shown + len(whole)


def last_lines(record: RunRecord, count: int) -> list[str]:
    """The last lines of the output that are not empty."""
    try:
        lines = record.output.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line[:200] for line in lines if line.strip()][-count:]
