"""How far a pytest run is, from the lines of its results file: a fold, line by line; a torn line counts as nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """Done and failing so far, of how many, and which test is running in which phase."""

    collected: int | None = None
    done: int = 0
    failed: int = 0
    current: str | None = None
    phase: str | None = None  # the phase that passed last
    started: bool = False
    finished: bool = False
    broken: bool = False  # the current test has failed already
    process: int = 0  # of a series: which of its processes runs; the counts are the first one's

    def says(self, *, seconds: float) -> str:
        """One line: done/collected, failing so far, elapsed, current test."""
        of = f"/{self.collected}" if self.collected is not None else ""
        what = f"{self.done}{of} done" if self.started else "starting"
        failing = f", {self.failed} failing" if self.failed else ""
        if self.process > 1:
            return f"process {self.process} of the series, {clock(seconds)} (the first: {what}{failing})"
        test = f", in {self.current}" if self.current else ""
        return f"{what}{failing}, {clock(seconds)}{test}"


def clock(seconds: float) -> str:
    """Seconds in words: 45 s, 3:20 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


def step(progress: Progress, line: str) -> Progress:
    """The progress after one more line of the results file."""
    try:
        event: dict[str, Any] = json.loads(line)
        kind = event["e"]
    except (ValueError, KeyError, TypeError):
        return progress
    if kind == "session_start":
        return replace(progress, started=True)
    if kind == "collected":
        return replace(progress, collected=len(event.get("ids") or ()))
    if kind == "start":
        return replace(progress, current=event.get("nodeid"), phase=None, broken=False)
    if kind == "report":
        return _reported(progress, event)
    if kind == "session_finish":
        return replace(progress, finished=True, current=None)
    return progress


def _reported(progress: Progress, event: dict[str, Any]) -> Progress:
    failed = event.get("outcome") == "failed"
    new = 1 if failed and not progress.broken else 0
    if event.get("phase") == "collect":
        return replace(progress, failed=progress.failed + 1)
    if event.get("phase") == "teardown":
        return replace(progress, done=progress.done + 1, failed=progress.failed + new, current=None, broken=False)
    return replace(progress, failed=progress.failed + new, phase=event.get("phase"), broken=progress.broken or failed)
