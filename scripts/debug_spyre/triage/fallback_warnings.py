"""FallbackWarnings and uv's install lines, wherever they are printed: warnings section, stderr, an engine's log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from debug_spyre.triage.lines import without_engine
from debug_spyre.triage.nodeids import split_nodeid
from debug_spyre.vocabulary.evidence import Fallback

_FALLBACK = re.compile(r"(.{1,600}?):(\d+): (?:[\w.]*\.)?FallbackWarning: ?(.*)$")
FALLBACK_TEXT = re.compile(r"(.{1,300}?) is falling back to (\w+)")
_MANY = re.compile(r"(.{1,600}?): (\d+) warnings?$")
_UV = re.compile(r"\s*(?:(Uninstalled|Installed) (\d+) packages? in |[-+~] (torch-spyre\b\S*))")
_UV_BUILD = re.compile(r"\s*(?:Building|Built) (torch-spyre\b.*)")


@dataclass(slots=True)
class Warned:
    """What was warned about so far."""

    fallbacks: dict[tuple[str, str | None, int | None], dict[str, None]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    uninstalled: bool = False
    built: str | None = None
    _tests: list[str] = field(default_factory=list)
    _open: bool = False
    _pending: tuple[str, int] | None = None

    def feed_section(self, line: str) -> None:
        """A line of pytest's warnings section: test ids, then the warning they share."""
        if not line:
            self._tests, self._open, self._pending = [], False, None
            return
        if line[0] not in " \t":
            if self._open:
                self._tests, self._open = [], False
            if match := _MANY.match(line[:700]):
                self._tests.append(f"{match[1]}: {match[2]} warnings")
            elif not line.startswith("-- Docs"):
                self._tests.append(line[:4096])
            return
        self._open = True
        self.feed(line.strip(), tests=self._tests)

    def feed(self, line: str, *, tests: list[str] | None = None, nodeid: str | None = None) -> None:
        """Any line that may be a fallback's warning."""
        if self._pending is not None:
            (file, number), self._pending = self._pending, None
            if match := FALLBACK_TEXT.match(line.strip()):
                self._add(match[1], file, number, tests, nodeid)
                return
        if "FallbackWarning:" not in line:
            return
        match = _FALLBACK.match(without_engine(line.strip())[:1500])
        if match is None:
            return
        file = match[1].strip().removeprefix("W ")
        if not match[3].strip():
            self._pending = (file, int(match[2]))
        elif op := FALLBACK_TEXT.match(match[3]):
            self._add(op[1], file, int(match[2]), tests, nodeid)

    def _add(self, op: str, file: str, line: int, tests: list[str] | None, nodeid: str | None) -> None:
        into = self.fallbacks.setdefault((op.strip(), file, line), {})
        for test in tests or ():
            split = split_nodeid(test)
            into[split[0] if split and not split[1].strip() else test] = None
        if nodeid:
            into[nodeid] = None

    def feed_front(self, line: str) -> None:
        """A line before or between sessions: uv says what it installs."""
        if match := _UV_BUILD.match(line):
            self.built = match[1].strip()
        elif match := _UV.match(line):
            if match[1] == "Uninstalled":
                self.uninstalled = True
            elif match[1] == "Installed" and self.uninstalled:
                what = f" ({self.built})" if self.built else ""
                self.note(
                    f"uv replaced an installed package{what} before the run: a local torch-spyre build may have been undone"
                )

    @property
    def is_waiting(self) -> bool:
        """A warning's text is expected on the next line."""
        return self._pending is not None

    def note(self, text: str) -> None:
        """A warning for people, once."""
        if text not in self.notes:
            self.notes.append(text)

    def result(self) -> tuple[Fallback, ...]:
        """The fallbacks in the order in which they were seen."""
        return tuple(Fallback(op, file, line, tuple(tests)) for (op, file, line), tests in self.fallbacks.items())
