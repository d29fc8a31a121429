"""Progress of a job on stderr: in a terminal one line rewritten, elsewhere a line every 30 s."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from debug_spyre.runs.io import run_folder as rf
from debug_spyre.runs.io.run_folder import LIVE, RunFolder
from debug_spyre.runs.outcome import Progress, clock, step

REWRITE_SECONDS = 0.5
LINE_SECONDS = 30.0
PARTS = "parts"


class ResultsReader:
    """Reads what was added to a results file since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress = Progress()
        self.size = 0
        self._rest = b""
        self._digest = hashlib.sha256()
        self._live_size = 0

    def is_kept(self) -> bool:
        """What was read so far still stands in the file: it was only added to."""
        if not self.size:
            return True
        try:
            with self.path.open("rb") as stream:
                return hashlib.sha256(stream.read(self.size)).digest() == self._digest.digest()
        except OSError:
            return False

    def look(self) -> bool:
        """Take in new lines; True where there was something new."""
        news = self._look_at_series() or self._look_at_lanes()
        try:
            with self.path.open("rb") as stream:
                stream.seek(self.size)
                data = stream.read()
        except OSError:
            return news
        if not data:
            return news
        self.size += len(data)
        self._digest.update(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines if not self._live_size else ():
            self.progress = step(self.progress, line.decode("utf-8", "replace"))
        return True

    def _look_at_lanes(self) -> bool:
        """Over several cards: what all processes said so far, as it came; the results are merged from it at the end."""
        try:
            with (self.path.parent / LIVE).open("rb") as stream:
                stream.seek(self._live_size)
                data = stream.read()
        except OSError:
            return False
        whole = data[: data.rfind(b"\n") + 1]
        self._live_size += len(whole)
        for line in whole.splitlines():
            self.progress = step(self.progress, line.decode("utf-8", "replace"))
        return bool(whole)

    def _look_at_series(self) -> bool:
        """Each process of a series has a folder of its own below `parts`."""
        try:
            number = sum(1 for _ in os.scandir(self.path.parent / PARTS))
        except OSError:
            return False
        before, self.progress = self.progress.process, replace(self.progress, process=number)
        return number > before


class ProgressLine:
    """Says how far the run is."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.reader = ResultsReader(run.results)
        self.terminal = sys.stderr.isatty()
        self.began = time.monotonic()
        self.said = self.began if not self.terminal else 0.0
        self.shown = False
        self.waiting = ""
        self.warned: set[str] = set()

    def look(self) -> None:
        """Say it, when it is time."""
        now = time.monotonic()
        if now - self.said < (REWRITE_SECONDS if self.terminal else LINE_SECONDS) and not self._news():
            return
        self.said = now
        self._say(self._words(now - self.began))

    def end(self) -> None:
        """Take the rewritten line away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.shown = False

    def _news(self) -> bool:
        """The card turned out to be busy, or the run went quiet: said at once, and once."""
        state = self.run.state()
        waiting = str(state.get("holder") or "") if state.get("state") == rf.WAITING else ""
        changed = waiting != self.waiting
        self.waiting = waiting
        quiet = str(state.get("quiet") or "")
        if quiet and quiet not in self.warned:
            self.warned.add(quiet)
            self.end()
            sys.stderr.write(f"debug-spyre: {_plain(quiet)}\n")
        return changed

    def _words(self, seconds: float) -> str:
        state = self.run.state()
        if state.get("state") == rf.WAITING:
            holder = str(state.get("holder") or "")
            return f"{self.run.id}: waiting for the card, {clock(seconds)}" + (f"; held by {holder}" if holder else "")
        if state.get("state") == rf.READING:
            return f"{self.run.id}: reading what it shows"
        self.reader.look()
        if self.reader.progress.started:
            return f"{self.run.id}: {self.reader.progress.says(seconds=seconds)}"
        return f"{self.run.id}: running, {clock(seconds)}"

    def _say(self, words: str) -> None:
        words = _plain(words)
        if not self.terminal:
            sys.stderr.write(f"debug-spyre: {words}\n")
            sys.stderr.flush()
            return
        width = max(20, shutil.get_terminal_size((80, 24)).columns - 1)
        sys.stderr.write("\r\x1b[K" + (words if len(words) <= width else words[: width - 3] + "..."))
        sys.stderr.flush()
        self.shown = True


class Silent(ProgressLine):
    """Says nothing: an agent pays for each line."""

    def __init__(self) -> None:
        self.shown = False

    def look(self) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace(os.linesep, " ")
