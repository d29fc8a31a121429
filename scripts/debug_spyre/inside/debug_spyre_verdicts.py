"""The ledger of a shadowed run: each distinct call with its verdict, and which tests met a wrong or refused one.

`ledger.jsonl`, one JSON line each, flushed, so that a crash loses nothing: a call line where a verdict is new for a call,
a test line where a test meets a call that is wrong or refused for the first time. Counts follow at the end.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

EACH_OP = 6  # suspects whose values are kept, per op
MOST = 40


class Verdicts:
    """Written by the shadow, read by `investigate`."""

    def __init__(self, folder: Path, *, keeps_values: bool) -> None:
        self.path, self.keeps_values = folder / "ledger.jsonl", keeps_values
        self.suspects = folder / "suspects"
        self.counts: dict[tuple[int, str], int] = {}
        self.met: set[tuple[str | None, int]] = set()
        self.kept: dict[tuple[str, str], str] = {}
        self.saved = 0
        self.stream: Any = None

    def _write(self, line: dict[str, Any]) -> None:
        if self.stream is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            self.stream = os.fdopen(descriptor, "w", encoding="utf-8")
        self.stream.write(json.dumps(line) + "\n")
        self.stream.flush()

    def judged(
        self, number: int, call: dict[str, Any], verdict: str, out: list[dict[str, Any]], place: dict[str, Any]
    ) -> None:
        """One call of the card: right, wrong or refused. `place`: op, site, nodeid, and what was seen."""
        key = number, verdict
        if key not in self.counts:
            self._write({"n": number, "verdict": verdict, "call": call, "out": out, "site": place["site"]})
        self.counts[key] = self.counts.get(key, 0) + 1
        if verdict != "right" and (place["nodeid"], number) not in self.met:
            self.met.add((place["nodeid"], number))
            self._write(
                {"n": number, "verdict": verdict, **place, "suspect": self.kept.get((place["op"], place["site"]))}
            )

    def place_for(self, op: str, site: str) -> Path | None:
        """Where the values of this wrong call go; None where they are not kept."""
        same = sum(1 for known, _ in self.kept if known == op)
        if not self.keeps_values or (op, site) in self.kept or same >= EACH_OP or self.saved >= MOST:
            return None
        self.saved += 1
        self.kept[op, site] = str(self.saved)
        return self.suspects / str(self.saved)

    def end(self) -> None:
        """How often each verdict was given."""
        for (number, verdict), count in self.counts.items():
            self._write({"n": number, "verdict": verdict, "count": count})
        if self.stream is not None:
            self.stream.close()
            self.stream = None
