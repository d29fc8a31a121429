"""pytest's progress lines: which test started, which one has an outcome; verbose, short, quiet and xdist forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from debug_spyre.triage.nodeids import split_nodeid, without_marks
from debug_spyre.triage.sections import LETTERS, WORDS
from debug_spyre.vocabulary.evidence import Outcome

_WORDS = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN|SUBPASSED|SUBFAILED|SUBSKIPPED"
_OUTCOME = re.compile(rf" *({_WORDS})(?=[ \[(]|$)")
_XDIST = re.compile(rf"\[gw\d+\] \[ *\d+%\] ({_WORDS})\S* (.+)$")
_FILE = re.compile(r"(\S[^:]{0,300}?\.(?:py|txt|md|rst|yaml|yml)) ([.FEsxXRu,-]+)(?: *\[ *\d+%\]| *\[\d+/\d+\])?$")
_DOTS = re.compile(r"([.FEsxXRu,-]+)(?: *\[ *\d+%\]| *\[ *\d+/\d+\])?$")
_OPEN_FILE = re.compile(r"(\S[^:]{0,300}?\.py) ([.FEsxXRu,-]*)(?=\S|$)")
_COLLECTED = re.compile(
    r"(?:collecting ... )?collected (\d{1,9}) items?(?: / (\d+) errors?)?(?:.*?(?<!\d)(\d{1,9}) selected)?"
)
_WORKERS = re.compile(r"\d+ workers? \[(\d{1,9}) items?\]|gw\d+ \[(\d{1,9})\]")


@dataclass(slots=True)
class Progress:
    """Started and finished tests of one session, in order."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    reruns: dict[str, int] = field(default_factory=dict)
    letters: dict[Outcome, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    collected: int | None = None
    is_parallel: bool = False
    last_file: str | None = None

    def feed(self, number: int, line: str) -> bool:
        """Take in a line; True when it was a progress line."""
        first = line[:1]
        if first == "[" and (match := _XDIST.match(line[:4200])):
            self.is_parallel = True
            split = split_nodeid(without_marks(match[2]))
            if split:
                self._finish(split[0], match[1])
            return True
        if first == "c" and (match := _COLLECTED.match(line)):
            self.collected = int(match[3] or match[1])
            return True
        if "::" in line[:600] and (split := split_nodeid(line)) and _is_id(split[0]):
            self._line(number, split[0], split[1])
            return True
        if first in ".FEsxXRu,-" and (match := _DOTS.match(line[:300])) and not match[1].startswith("--"):
            self._count(match[1])
            return True
        if ".py " in line[:400] and (match := _FILE.match(line[:700]) or _OPEN_FILE.match(line[:700])):
            self._count(match[2])
            self.last_file = match[1]
            if match[1] not in self.files[-3:] and len(self.files) < 10_000:
                self.files.append(match[1])
            return match.re is _FILE
        if (first == "g" or first.isdigit()) and (match := _WORKERS.match(line)):
            self.is_parallel = True
            self.collected = int(match[1] or match[2])
            return True
        word = _OUTCOME.match(line[:200])
        if word and len(self.running) == 1:
            self._finish(next(iter(self.running)), word[1])
            return True
        return False

    def _line(self, number: int, nodeid: str, rest: str) -> None:
        word = _OUTCOME.match(rest)
        if word is None and rest.rstrip() and (late := re.search(rf" ({_WORDS}) +\[ *\d+%\]$", rest)):
            word = late
        if word is None:
            if nodeid not in self.outcomes or not rest.strip():
                self.running[nodeid] = number
            return
        self._finish(nodeid, word[1])

    def _finish(self, nodeid: str, word: str) -> None:
        if word.startswith("SUB"):
            return
        self.running.pop(nodeid, None)
        if word == "RERUN":
            self.reruns[nodeid] = self.reruns.get(nodeid, 0) + 1
            return
        outcome = WORDS[word]
        if self.outcomes.get(nodeid) is Outcome.FAILED and outcome is Outcome.ERROR:
            return
        self.outcomes[nodeid] = outcome

    def _count(self, letters: str) -> None:
        for letter in set(letters):
            if letter in LETTERS:
                self.letters[LETTERS[letter]] = self.letters.get(LETTERS[letter], 0) + letters.count(letter)

    @property
    def current(self) -> str | None:
        """The test that was started last and has no outcome."""
        return next(reversed(self.running), None)


def _is_id(text: str) -> bool:
    path = text.split("::", 1)[0]
    return " " not in path and (path.endswith((".py", ".yaml", ".yml", ".txt", ".md", ".rst")) or "/" in path)
