"""The op in flight, in two small files that outlive the process: a crash or a hang then has a name.

`flight.jsonl` holds each distinct call once; `flight.now` says which of them runs, where, in which test. Both are
removed at an ordinary end.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

WIDTH = 2048


class Flight:
    """Written before each op: one line where the call is new, and one small write in place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = -1
        self.now = -1

    def begin(self, number: int, data: dict[str, Any] | None, place: dict[str, Any]) -> None:
        """The call of that number begins; `data` where it was not told before. `place`: op, site, nodeid."""
        if self.now < 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self.calls = os.open(self.folder / "flight.jsonl", flags | os.O_APPEND, 0o600)
            self.now = os.open(self.folder / "flight.now", flags, 0o600)
        if data is not None:
            os.write(self.calls, json.dumps({"number": number, "call": data}).encode() + b"\n")
        os.pwrite(self.now, json.dumps({"number": number, **place}).encode()[:WIDTH].ljust(WIDTH), 0)

    def end(self) -> None:
        """The process ends as it should."""
        for descriptor in (self.calls, self.now):
            if descriptor >= 0:
                os.close(descriptor)
        self.calls = self.now = -1
        for name in ("flight.jsonl", "flight.now"):
            with contextlib.suppress(OSError):
                os.unlink(self.folder / name)
