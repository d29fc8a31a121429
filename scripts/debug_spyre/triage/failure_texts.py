"""pytest's failures, line by line: which text a line belongs to; a text whose heading was cut off is read too."""

from __future__ import annotations

import re

from debug_spyre.triage.block import Block
from debug_spyre.triage.loose_lines import opens_failure
from debug_spyre.triage.sections import failure_title, is_name, phase_and_name
from debug_spyre.triage.session_text import Session

_LINE_STYLE = re.compile(r"(\S[^\n]{0,400}?):(\d+): (?=\S)(.*)$")
_ENTERED = re.compile(r"\.py:\d{1,9}: in (test\w*)$")
_LIKE_A_TEST = re.compile(r"ERROR (?:at |collecting )|(?i:test)|\.py$")


class FailureTexts:
    """The block that is being read; blocks go into the session."""

    def __init__(self) -> None:
        self.block: Block | None = None
        self._last_blank = False

    @property
    def is_captured(self) -> bool:
        """What comes next is a test's own output."""
        return self.block is not None and self.block.in_captured

    def titled(self, number: int, line: str, session: Session, *, section: str, strict: bool) -> bool:
        """A failure's heading; `strict` where no FAILURES stands above it: the name must be that of a test."""
        if line[:1] != "_":
            return False
        title = failure_title(line)
        if title is None or ((strict or self.is_captured) and not is_name(title)):
            return False
        if strict and not _LIKE_A_TEST.search(title):
            return False
        phase, name = phase_and_name(title, section)
        self.block = Block(title=name, phase=phase, number=number)
        session.blocks.append(self.block)
        return True

    def headless(self, number: int, line: str, session: Session) -> bool:
        """The first line of a failure's text whose heading is not there."""
        if not opens_failure(line):
            return False
        self.block = Block(title="", number=number, is_headless=True)
        session.blocks.append(self.block)
        self.block.feed(line)
        return True

    def feed(self, number: int, line: str, session: Session) -> None:
        """A line of the section that is no heading."""
        after_blank, self._last_blank = self._last_blank, not line
        if self.block is None or (self.block.title == "" and not self.block.is_headless):
            self._one_liner(number, line, session)
        elif not (self._is_another(line, after_blank=after_blank) and self.headless(number, line, session)):
            self.block.feed(line)

    def _is_another(self, line: str, *, after_blank: bool) -> bool:
        """The line may begin the text of another failure, whose heading was cut off."""
        block = self.block
        if block is None or line[:1] == "E":
            return False
        if block.in_captured:
            return after_blank
        entered = _ENTERED.search(line[:500]) if block.in_errors and not block.native else None
        return entered is not None and entered[1] not in block.title

    def _one_liner(self, number: int, line: str, session: Session) -> None:
        """--tb=line: error lines and then the place with its first line; before pytest 9 the place with the message."""
        if line[:1] == "E":
            if self.block is None or self.block.frames:
                self.block = Block(title="", number=number)
            self.block.feed(line)
        elif match := _LINE_STYLE.match(line[:2000]):
            if self.block is None or self.block.frames:
                self.block = Block(title="", number=number)
                self.block.feed(f"E   {match[3]}")
            self.block.feed(f"{match[1]}:{match[2]}: in ?")
            session.one_liners.append(self.block)
        elif self.block is not None:
            self.block.feed(f"E   {line.strip()}")
