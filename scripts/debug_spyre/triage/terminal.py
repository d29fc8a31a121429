"""pytest's terminal text as a stream of lines: sessions, progress, failures, warnings, summary, endings.

No heading is needed: what a line says by itself is taken. What is kept grows with the number of tests and failures,
never with the size of the text.
"""

from __future__ import annotations

import re

from debug_spyre.triage.block import Block, Traces
from debug_spyre.triage.fallback_warnings import Warned
from debug_spyre.triage.nodeids import candidates, domain, split_nodeid
from debug_spyre.triage.plugin_forms import as_pytest, begins_results, one_result
from debug_spyre.triage.sections import (
    BAD_WORDS,
    ERRORS,
    FAILURES,
    OTHER,
    START,
    SUMMARY,
    WARNINGS,
    Progress,
    counts,
    heading,
    loose_summary,
    summary_line,
)
from debug_spyre.triage.session_text import FailureTexts, Session, SummaryLine
from debug_spyre.triage.unittest_text import UnittestText

_CONFTEST = re.compile(r"(?:ImportError while loading conftest|Error (?:importing|while loading) plugin) '?([^']+)'?")
_USAGE = re.compile(r"ERROR: (?:usage: )?(.*)|(?:\S*pytest\S*|__main__\.py): error: (.*)")
_NOT_FOUND = re.compile(r"ERROR: (?:file or directory not found|not found|found no collectors|module or package)")
_BANG = re.compile(r"!+ (.+?) !+$")
_ROOT = re.compile(r"rootdir: (\S.*?)(?:, (?:config|ini)file.*)?$")
_MARKDOWN = re.compile(r"#{1,6} \S")  # the next part of what somebody wrote around the lines
_BETWEEN = "between"  # after a counts line
_MOST_LINES = 60  # of one summary line's message


class Terminal:
    """Feed it cleaned lines with their numbers; `sessions` then holds what it saw."""

    def __init__(self, stream: str = "") -> None:
        self.stream = stream
        self.sessions = [Session(0, stream=stream)]
        self.warned = Warned()
        self.traces = Traces()
        self.last_number = 0
        self._texts = FailureTexts()
        self._unittest = UnittestText()
        self._section = START
        self._nested = False
        self._conftest = False
        self._adding = False  # counts follow, one a line
        self._held: list[tuple[int, str, str]] = []  # FAILED lines in captured output: a summary, or another run's

    @property
    def session(self) -> Session:
        """The session that is being read."""
        return self.sessions[-1]

    def _next(self, number: int, *, begun: bool = False, is_guessed: bool = False) -> None:
        self.sessions.append(Session(number, begun=begun, is_guessed=is_guessed, stream=self.stream))

    def feed(self, number: int, line: str) -> None:
        """Take in the next line."""
        self.last_number = number
        first = line[:1]
        if first == "T" or not line.isascii():
            line = as_pytest(line)
            first = line[:1]
        if (self._adding or (first in {"R", "\u256d"} and begins_results(line))) and self._add_result(number, line):
            return
        if first == "=" or (first.isdigit() and line.endswith(("s", ")"))) or first == "n":
            if self._mark(number, line):
                return
        elif first == "I" and line.startswith("INTERNALERROR> "):
            self._internal(number, line[15:])
            return
        if self._nested or (first and first in "FESPXR_" and self._loose(number, line)):
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
            self._finish(number, line)
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
        if self._texts.is_captured:
            if kind == START:
                self._nested = True
                return True
            if found is not None and line[0] != "=":
                self.session.maybe = found  # the counts of a run inside a test, unless nothing else follows
                return True
        held, self._held = self._held, []
        self._texts.block = None
        if found is not None:
            for each in held:
                self._add(*each)
            self._finish(number, line)
            return True
        if kind == START:
            self._begin(number)
        elif self.session.counts is not None and self.session.ended >= self.session.begun_at_once and kind != OTHER:
            self._next(number)
        self.session.begun = True
        self._section = str(kind)
        return True

    def _begin(self, number: int) -> None:
        session = self.session
        if session.begun and session.has_header and session.is_untouched:
            session.begun_at_once += 1  # the one before has hardly begun: they run at the same time
            return
        if session.begun:
            self._next(number)
        self.session.number, self.session.has_header, self.session.begun = number, True, True

    def _finish(self, number: int, line: str) -> None:
        found, session = counts(line), self.session
        if found is None or line in session.counts_lines:
            return
        if session.counts is not None and session.ended >= session.begun_at_once:
            self._next(number, is_guessed=True)
            session = self.session
        session.counts = found if session.counts is None else session.counts.plus(found)
        session.counts_lines.append(line)
        session.ended, session.begun = session.ended + 1, True
        self._section = _BETWEEN if session.ended >= session.begun_at_once else START

    def _add_result(self, number: int, line: str) -> bool:
        if not self._adding:
            self._mark(number, "no tests ran in 0s")
            self._adding = True
            return True
        found = one_result(line)
        if found is None or self.session.counts is None:
            self._adding = False
            return False
        self.session.counts = self.session.counts.plus(found)
        return True

    def _loose(self, number: int, line: str) -> bool:
        """A failure's heading or a summary line, whatever section it stands in."""
        if self._section in {SUMMARY, OTHER} or self._conftest:
            return False
        if line[0] == "_":
            if self._section in {FAILURES, ERRORS} or not self._may_begin():
                return False
            return self._open_text(number, line)
        found = loose_summary(line)
        if found is None:
            return False
        if not self._texts.is_captured:
            self._add(number, *found, is_loose=True)
            return True
        if found[0] in BAD_WORDS:
            self._held.append((number, *found))
            if any(domain(n) == b.title for n in candidates(found[1])[:1] for b in self.session.blocks):
                held, self._held = self._held, []
                for each in held:
                    self._add(*each, is_loose=True)
                return True
        return False

    def _may_begin(self) -> bool:
        """Failures that the counts name are still without a text."""
        session = self.session
        return session.counts is None or session.known_bad < session.counts.failed + session.counts.errors

    def _open_text(self, number: int, line: str) -> bool:
        texts = self._texts
        if not texts.titled(number, line, self.session, section=FAILURES, strict=True) and not texts.headless(
            number, line, self.session
        ):
            return False
        self.session.begun, self._section = True, FAILURES
        return True

    def _add(self, number: int, word: str, text: str, *, is_loose: bool = False) -> None:
        session = self.session
        if is_loose and any(s.word == word and s.text == text for s in session.summary[-200:]):
            return
        if word in BAD_WORDS:
            session.progress.running.pop(candidates(text)[0], None)
            if is_loose and not self._may_begin():
                self._next(number, is_guessed=True)
                session = self.session
        session.begun = True
        session.summary.append(SummaryLine(word, text, number))
        self._texts.block = None
        if self._section != _BETWEEN:
            self._section = SUMMARY

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
        if self._unittest.begins(line) or (
            line and probe.feed(number, line) and (probe.outcomes or probe.running or "%]" in line)
        ):
            self._next(number, begun=True, is_guessed=True)
            self._section = START
            self._start(number, line)
        elif self._may_begin() and line[:1] != "E":
            self._open_text(number, line)
        else:
            self._unittest.feed(number, line, session)

    def _start(self, number: int, line: str) -> None:
        if not line:
            self._conftest = False
            self.traces.end()
            return
        session = self.session
        if self._conftest and session.internal is not None:
            session.internal.feed(line)
            return
        running_before = session.progress.current
        if self._unittest.feed(number, line, session):
            if session.counts is not None:
                self._section = _BETWEEN
            return
        taken = session.progress.feed(number, line)
        if session.ending.feed(number, line, session.progress.current or running_before):
            return
        if taken:
            session.begun = True
        elif not self._open_text(number, line):
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
        self.traces.feed(number, line)

    def _usage(self, number: int, line: str) -> bool:
        match = _USAGE.match(line)
        if (
            match is None
            or (not self.session.is_untouched and not self.session.has_nothing)
            or self.session.progress.running
        ):
            return False
        block = Block(title="pytest", phase="session", number=number)
        block.errors.append(f"UsageError: {match[1] or match[2]}")
        self.session.internal = self.session.internal or block
        return True

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
        texts = self._texts
        if texts.titled(number, line, self.session, section=self._section, strict=False):
            return
        if line[:1] == "!" and texts.block is not None and _BANG.match(line[:400]):
            self._bang(number, line)
            return
        texts.feed(number, line, self.session)
        if "FallbackWarning:" in line and line[:1] != "E":
            self.warned.feed(line)

    def _summary(self, number: int, line: str) -> None:
        found = summary_line(line)
        if found is not None:
            self._add(number, *found)
        elif line[:1] == "!":
            self._bang(number, line)
        elif line[:1] == "_" and self._open_text(number, line):
            pass
        elif _MARKDOWN.match(line):
            self._section = _BETWEEN
        elif self.session.summary and len(self.session.summary[-1].more) < _MOST_LINES:
            self.session.summary[-1].more.append(line[:2000])
