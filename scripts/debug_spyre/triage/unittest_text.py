"""The output of unittest and absl: progress lines, ERROR and FAIL blocks, `Ran N tests`, OK or FAILED.

A test is named as it is printed, `module.Class.test`; the counts are those of its own last lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from debug_spyre.triage.block import Block
from debug_spyre.triage.session_text import Session
from debug_spyre.vocabulary.evidence import Counts, Outcome

_RULE = re.compile(r"={40,}$")
_THIN = re.compile(r"-{40,}$")
_HEADER = re.compile(r"(ERROR|FAIL|UNEXPECTED SUCCESS)(?: \[[\d.]+s\])?: (\S.*)$")
_NAMED = re.compile(r"([\w<>.]+) \(([\w.<>]+)\)(.*)$")
_PROGRESS = re.compile(r"\s{0,8}(\w+) \(([\w.]+)\)(?: .{0,300}?)? \.\.\. ?(.*)$")
_OUTCOME = re.compile(
    r"(ok|FAIL|ERROR|skip(?:ped)?\b.*|expected failure|unexpected success)(?:,? \(?[\d.]+ ?s(?:ec)?\)?)?$"
)
_ABSL = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+)(?: \(.*\))?(?:,? .*)?$")
_RAN = re.compile(r"Ran (\d{1,9}) tests? in [\d.]+ ?s")
_END = re.compile(r"(OK|FAILED)(?: \(([\w =,]+)\))?$|NO TESTS RAN\b")
_TOTAL = re.compile(r"([a-z ]+?) ?= ?(\d+)", re.IGNORECASE)
_NOT_LOADED = re.compile(r"_FailedTest|ModuleImportFailure")
_OUTCOMES = {
    "ok": Outcome.PASSED,
    "OK": Outcome.PASSED,
    "FAIL": Outcome.FAILED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "expected failure": Outcome.XFAILED,
    "unexpected success": Outcome.XPASSED,
}


@dataclass(slots=True)
class UnittestText:
    """Feed it lines outside pytest's failures; what it takes goes into the session."""

    block: Block | None = None
    ran: int | None = None
    _armed: bool = False
    _heads: list[str] = field(default_factory=list)  # the lines of a block's head
    _waiting: str | None = None  # a test whose outcome stands on a later line

    def begins(self, line: str) -> bool:
        """The line can only belong to a run that has not ended."""
        return bool(self._armed and _HEADER.match(line)) or (line[:1] == "[" and bool(_ABSL.match(line[:500])))

    def feed(self, number: int, line: str, session: Session) -> bool:
        """Take in a line; True where it belongs to unittest's text."""
        first = line[:1]
        if first == "=" and _RULE.match(line):
            self._armed, self.block = True, None
            return False
        if self._armed:
            self._armed = False
            if match := _HEADER.match(line):
                self._open(number, match[2], session, is_error=match[1] == "ERROR")
                return True
        if self.ran is not None and line:
            return self._end(line, session)
        if first == "R" and (match := _RAN.match(line)):
            self.ran, self.block, session.begun = int(match[1]), None, True
            return True
        if self.block is not None:
            return self._text(line)
        return self._progress(number, line, session)

    def _open(self, number: int, text: str, session: Session, *, is_error: bool) -> None:
        match = _NAMED.match(text)
        name = _dotted(match[1], match[2]) if match else text.strip()
        phase = "call"
        if match and match[1] in {"setUpClass", "setUpModule", "tearDownClass", "tearDownModule"}:
            phase = "setup" if match[1].startswith("setUp") else "teardown"
        elif _NOT_LOADED.search(text):
            phase = "collect"
        name = next((n for n in (name.partition(".")[2],) if n in session.progress.outcomes), name)  # as absl names it
        self.block = Block(title=name, phase=phase, number=number, nodeid=name)
        self._heads = []
        session.blocks.append(self.block)
        session.begun = True
        if phase == "call":
            session.progress.running.pop(name, None)
            session.progress.outcomes[name] = Outcome.ERROR if is_error else Outcome.FAILED

    def _text(self, line: str) -> bool:
        block = self.block
        assert block is not None
        if _THIN.match(line):
            if block.errors:
                self.block = None
            return True
        if line in {"Stdout:", "Stderr:"}:
            block.in_captured = True
            return True
        block.feed(line)
        return True

    def _progress(self, number: int, line: str, session: Session) -> bool:
        progress = session.progress
        if line[:1] == "[" and (match := _ABSL.match(line[:500])):
            session.begun = True
            if match[1] == "RUN":
                progress.running[match[2]] = number
            else:
                progress.running.pop(match[2], None)
                progress.outcomes[match[2]] = _OUTCOMES[match[1]]
            return True
        if " ... " in line[:600] or line.endswith(" ..."):
            if match := _PROGRESS.match(line[:600]):
                session.begun = True
                self._started(number, _dotted(match[1], match[2]), match[3], session)
                return True
        elif self._waiting and (match := _OUTCOME.match(line[:300])):
            self._finish(self._waiting, match[1], session)
            return True
        return False

    def _started(self, number: int, name: str, rest: str, session: Session) -> None:
        if match := _OUTCOME.match(rest):
            self._finish(name, match[1], session)
        else:
            session.progress.running[name] = number
            self._waiting = name

    def _finish(self, name: str, word: str, session: Session) -> None:
        self._waiting = None
        session.progress.running.pop(name, None)
        session.progress.outcomes[name] = _OUTCOMES.get(word, Outcome.SKIPPED)

    def _end(self, line: str, session: Session) -> bool:
        match = _END.match(line)
        if match is None:
            return False
        said = {name.strip().lower().rstrip("s"): int(n) for name, n in _TOTAL.findall(match[2] or "")}
        bad = {b.nodeid for b in session.blocks if b.phase in {"call", "collect"}}
        failed, errors = said.get("failure", 0), said.get("error", 0)
        skipped, xfailed = said.get("skipped", said.get("skip", 0)), said.get("expected failure", 0)
        xpassed = said.get("unexpected successe", 0)
        wrong = len(bad) if bad else failed + errors
        passed = max(0, (self.ran or 0) - wrong - skipped - xfailed - xpassed)
        session.counts = Counts(passed, failed, errors, skipped, xfailed, xpassed)
        self.ran, self._waiting, session.ended = None, None, session.ended + 1
        return True


def _dotted(test: str, place: str) -> str:
    """`test_x (mod.Class)` and, since Python 3.11, `test_x (mod.Class.test_x)` name one test."""
    if _NOT_LOADED.search(place):
        return test
    return place if place.endswith(f".{test}") or place == test else f"{place}.{test}"
