"""The first traceback that stands in no failure: a script's, an engine's, a conftest's."""

from __future__ import annotations

from dataclasses import dataclass

from debug_spyre.triage.block import Block
from debug_spyre.triage.lines import without_engine

_LONGEST = 12


@dataclass(slots=True)
class Traces:
    """Feed it lines outside failures; `first` is the traceback that came first."""

    first: Block | None = None
    _open: Block | None = None

    def feed(self, number: int, line: str) -> None:
        """Take in a line."""
        text = without_engine(line)
        if text.startswith(("Traceback (most recent call last)", "  + Exception Group Traceback")):
            self._open = Block(title="traceback", phase="session", number=number)
            if self.first is None:
                self.first = self._open
        if self._open is None or text.startswith("##["):
            self._open = None
            return
        if self._open.in_errors and len(self._open.errors) >= _LONGEST:
            self._open = None
            return
        self._open.feed(text)

    def end(self) -> None:
        """A blank line ends a traceback."""
        self._open = None
