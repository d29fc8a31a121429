"""pytest's terminal text as a stream of lines: sessions, progress, failures, warnings, summary, endings.

What is kept grows with the number of tests and failures, never with the size of the text.
"""

from __future__ import annotations

import re

from debug_spyre.triage.block import Block
from debug_spyre.triage.fallback_warnings import Warned
from debug_spyre.triage.lines import without_engine
from debug_spyre.triage.nodeids import split_nodeid, without_marks
from debug_spyre.triage.progress_lines import Progress
from debug_spyre.triage.sections import (
    ERRORS,
    FAILURES,
    START,
    SUMMARY,
    WARNINGS,
    counts,
    failure_title,
    heading,
    is_name,
    phase_and_name,
)
from debug_spyre.triage.session_text import Session, SummaryLine
from debug_spyre.vocabulary.evidence import Counts

_SUMMARY = re.compile(
    r"(FAILED|ERROR|SUBFAILED|SUBFAIL|PASSED|SKIPPED|XFAIL|XPASS|RERUN|SUBPASSED|SUBSKIPPED)(.*)$", re.DOTALL
)
_LINE_STYLE = re.compile(r"(\S[^\n]{0,400}?):(\d+): (?=\S)(.*)$")
_CONFTEST = re.compile(r"(?:ImportError while loading conftest|Error (?:importing|while loading) plugin) '?([^']+)'?")
_USAGE = re.compile(r"ERROR: (?:usage: )?(.*)|(?:\S*pytest\S*|__main__\.py): error: (.*)")
_NOT_FOUND = re.compile(r"ERROR: (?:file or directory not found|not found|found no collectors|module or package)")
_BANG = re.compile(r"!+ (.+?) !+$")
_ROOT = re.compile(r"rootdir: (\S.*?)(?:, (?:config|ini)file.*)?$")


class Terminal:
    """Feed it cleaned lines with their numbers; `sessions` then holds what it saw."""

    def __init__(self) -> None:
        self.sessions = [Session(0)]
        self.warned = Warned()
        self.traceback: Block | None = None
        self.last_number = 0
        self._section = START
        self._block: Block | None = None
        self._nested = False
        self._conftest = False
        self._tracing: Block | None = None

    @property
    def session(self) -> Session:
        """The session that is being read."""
        return self.sessions[-1]

    def feed(self, number: int, line: str) -> None:
        """Take in the next line."""
        self.last_number = number
        first = line[:1]
        if first == "=" or (first.isdigit() and line.endswith(("s", ")"))) or first == "n":
            if self._mark(number, line):
                return
        elif first == "I" and line.startswith("INTERNALERROR> "):
            self._internal(number, line[15:])
            return
        if self._section in {FAILURES, ERRORS}:
            self._failures(number, line)
        elif self._section == WARNINGS:
            self.warned.feed_section(line)
        elif self._section == SUMMARY:
            self._summary(number, line)
        elif self._section == START:
            self._start(number, line)
        else:
            self._between(number, line)

    def torn(self, number: int, line: str) -> None:
        """The last line, whose end is missing: only what can't be misread is taken from it."""
        self.last_number = number
        found = counts(line)
        if found is not None and line.endswith(("=", ")", "s")):
            self._finish(found)
        elif self._section not in {FAILURES, ERRORS, WARNINGS, SUMMARY}:
            self.session.ending.feed(number, line, self._running(line))

    def _mark(self, number: int, line: str) -> bool:
        found = counts(line)
        if self._nested:
            self._nested = found is None
            return True
        kind = heading(line) if line[0] == "=" else None
        if kind is None and found is None:
            return False
        if self._block is not None and self._block.in_captured:
            if kind == START:
                self._nested = True
                return True
            if found is not None and line[0] != "=":
                self.session.maybe = found  # the counts of a run inside a test, unless nothing else follows
                return True
        self._block = None
        if found is not None:
            self._finish(found)
            return True
        if kind == START:
            if self.session.begun:
                self.sessions.append(Session(number))
            self.session.number, self.session.has_header, self.session.begun = number, True, True
        elif self.session.counts is not None and kind in {FAILURES, ERRORS, SUMMARY, WARNINGS}:
            self.sessions.append(Session(number))
        self.session.begun = True
        self._section = str(kind)
        return True

    def _finish(self, found: Counts) -> None:
        if self.session.counts is not None and self._section != START:
            self._section = "between"
        self.session.counts = found
        self.session.begun = True
        self._section = "between"

    def _between(self, number: int, line: str) -> None:
        """After a counts line, or inside a section that says nothing about failures."""
        session = self.session
        if session.counts is None:
            if line.startswith("!"):
                self._bang(number, line)
            if "FallbackWarning" in line:
                self.warned.feed(line)
            session.ending.feed(number, line, None)
            return
        session.ending.feed(number, line, None)
        if session.has_nothing and _NOT_FOUND.match(line):
            self._usage(number, line)
        if "FallbackWarning" in line:
            self.warned.feed(line)
        else:
            self.warned.feed_front(line)
        probe = Progress()
        if line and probe.feed(number, line) and (probe.outcomes or probe.running or "%]" in line):
            self.sessions.append(Session(number, begun=True, is_guessed=True))
            self._section = START
            self._start(number, line)

    def _start(self, number: int, line: str) -> None:
        if not line:
            self._conftest = False
            self._tracing = None
            return
        session = self.session
        if self._conftest and session.internal is not None:
            session.internal.feed(line)
            return
        running_before = session.progress.current
        taken = session.progress.feed(number, line)
        if session.ending.feed(number, line, session.progress.current or running_before):
            return
        if taken:
            session.begun = True
            return
        self._other_text(number, line)

    def _running(self, line: str) -> str | None:
        progress = self.session.progress
        split = split_nodeid(line) if "::" in line else None
        if split and split[1].startswith(" ") and split[0] not in progress.outcomes:
            return split[0]
        return progress.current

    def _other_text(self, number: int, line: str) -> None:
        session = self.session
        first = line[0]
        if first == "!":
            self._bang(number, line)
        elif first == "r" and (match := _ROOT.match(line)):
            session.rootdir = match[1]
        elif match := _CONFTEST.match(line):
            session.internal = session.internal or Block(title=match[1], phase="session", number=number)
            self._conftest = True
        elif (first in "Ep_" or "pytest" in line[:60]) and self._usage(number, line):
            pass
        elif "FallbackWarning" in line or self.warned.is_waiting:
            self.warned.feed(line, nodeid=session.progress.current)
        else:
            self.warned.feed_front(line)
        self._trace(number, line)

    def _usage(self, number: int, line: str) -> bool:
        match = _USAGE.match(line)
        if match is None:
            return False
        block = Block(title="pytest", phase="session", number=number)
        block.errors.append(f"UsageError: {match[1] or match[2]}")
        self.session.internal = self.session.internal or block
        return True

    def _trace(self, number: int, line: str) -> None:
        text = without_engine(line)
        if text.startswith(("Traceback (most recent call last)", "  + Exception Group Traceback")):
            self._tracing = Block(title="traceback", phase="session", number=number)
            if self.traceback is None:
                self.traceback = self._tracing
        if self._tracing is None or text.startswith("##["):
            self._tracing = None
            return
        if self._tracing.in_errors and len(self._tracing.errors) >= 12:
            self._tracing = None
            return
        self._tracing.feed(text)

    def _bang(self, number: int, line: str) -> None:
        if match := _BANG.match(line[:400]):
            self.session.interrupted = (number, match[1])
            self.session.begun = True

    def _internal(self, number: int, text: str) -> None:
        session = self.session
        if session.internal is None:
            session.internal = Block(title="INTERNALERROR", phase="session", number=number)
        session.begun = True
        session.internal.feed(text)

    def _failures(self, number: int, line: str) -> None:
        if self._nested:
            return
        captured = self._block is not None and self._block.in_captured
        if line[:1] == "_" and (title := failure_title(line)) and (not captured or is_name(title)):
            self._block = self._new_block(number, title)
            self.session.blocks.append(self._block)
            return
        if line[:1] == "!" and self._block is not None and _BANG.match(line[:400]):
            self._bang(number, line)
            return
        if self._block is None or self._block.title == "":
            self._one_liner(number, line)
            return
        self._block.feed(line)
        if "FallbackWarning:" in line and line[:1] != "E":
            self.warned.feed(line)

    def _new_block(self, number: int, title: str) -> Block:
        phase, name = phase_and_name(title, self._section)
        return Block(title=name, phase=phase, number=number)

    def _one_liner(self, number: int, line: str) -> None:
        """--tb=line: error lines and then the place with its first line; before pytest 9 the place with the message."""
        if line[:1] == "E":
            if self._block is None or self._block.frames:
                self._block = Block(title="", number=number)
            self._block.feed(line)
        elif match := _LINE_STYLE.match(line[:2000]):
            if self._block is None or self._block.frames:
                self._block = Block(title="", number=number)
                self._block.feed(f"E   {match[3]}")
            self._block.feed(f"{match[1]}:{match[2]}: in ?")
            self.session.one_liners.append(self._block)
        elif self._block is not None:
            self._block.feed(f"E   {line.strip()}")

    def _summary(self, number: int, line: str) -> None:
        match = _SUMMARY.match(line)
        if match is None:
            if line[:1] == "!":
                self._bang(number, line)
            elif self.session.summary and len(self.session.summary[-1].more) < 60:
                self.session.summary[-1].more.append(line[:2000])
            return
        word, rest = match[1], match[2]
        if rest[:1] not in {" ", "[", "("}:
            return
        self.session.summary.append(SummaryLine(word, without_marks(rest).rstrip(), number))
