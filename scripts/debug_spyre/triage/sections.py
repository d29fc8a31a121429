"""The lines by which pytest's terminal text is read: headings, counts, progress, and lines that say what they are without a heading."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from debug_spyre.triage.nodeids import split_nodeid, without_marks
from debug_spyre.vocabulary.evidence import Counts, Outcome

SUMMARY_WORDS = (
    "FAILED", "ERROR", "SUBFAILED", "SUBFAIL", "PASSED", "SKIPPED", "XFAIL", "XPASS", "RERUN", "SUBPASSED", "SUBSKIPPED",
)  # fmt: skip
BAD_WORDS = frozenset({"FAILED", "ERROR", "SUBFAILED", "SUBFAIL"})
_SUMMARY = re.compile(rf"({'|'.join(SUMMARY_WORDS)})(?=[ \[(])(.*)$", re.DOTALL)
_FILE_ONLY = re.compile(r"\S+\.py(?:$| - \S)")
_SKIPS = re.compile(r" \[\d+\] \S+\.py:\d+: ")
_PERCENT_ONLY = re.compile(r"\[ *\d+%\]$")
_TEST_FRAME = re.compile(r"(?:\S*/)?(?:test_[^/\s:]*|[^/\s:]*_test)\.py:\d{1,9}: in \w+$")
_ERROR_LINE = re.compile(
    r"E   +(?:assert |(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Warning|Failed|Unsupported|Timeout|Exit)\b)"
)


def summary_line(line: str) -> tuple[str, str] | None:
    """(word, `nodeid[ - message]`) of a line that can stand in a short summary."""
    match = _SUMMARY.match(line)
    return (match[1], without_marks(match[2]).rstrip()) if match else None


def loose_summary(line: str) -> tuple[str, str] | None:
    """The same where no heading says that this is a summary: a test or a file must be named."""
    if line[:1] not in "FESPXR" or not line.startswith(SUMMARY_WORDS):
        return None
    found = summary_line(line)
    if found is None:
        return None
    word, text = found
    if word == "SKIPPED":
        return found if _SKIPS.match(line[7:]) else None
    split = split_nodeid(text)
    if split and "/" not in split[0].partition("::")[0] and ".py" not in split[0].partition("::")[0]:
        split = None
    if split and (" " in split[0].partition("::")[0] or _PERCENT_ONLY.search(text)):
        return None
    if split and (not split[1].strip() or split[1].startswith((" - ", " ("))):
        return found
    return found if word == "ERROR" and _FILE_ONLY.match(text) else None


def opens_failure(line: str) -> bool:
    """A frame in a test, or an error line, as a failure's text has them."""
    if line[:1] == "E":
        return bool(_ERROR_LINE.match(line[:300]))
    return ".py:" in line[:400] and bool(_TEST_FRAME.match(line[:500]))


_HEADING = re.compile(r"(=+) (.+?) (=+)$")
_TITLE = re.compile(r"_+ (.+?) _+$")
_ONE = re.compile(
    r"(\d+) (failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests (?:passed|failed|skipped))\b"
)
_COUNTS = re.compile(
    r"=* ?((?:\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests (?:passed|failed|skipped))(?:, )?)+"
    r"|no tests ran|no tests collected.*?|\d+(?:/\d+)? tests? collected.*?) in [\d.]+s(?: \([^)]*\))?(?:, .{0,80})? ?=*$"
)
WORDS = {
    "PASSED": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.XFAILED,
    "XPASS": Outcome.XPASSED,
}
LETTERS = {
    ".": Outcome.PASSED,
    "F": Outcome.FAILED,
    "E": Outcome.ERROR,
    "s": Outcome.SKIPPED,
    "x": Outcome.XFAILED,
    "X": Outcome.XPASSED,
}
START, FAILURES, ERRORS, WARNINGS, SUMMARY, OTHER = "start", "failures", "errors", "warnings", "summary", "other"
_KNOWN = {
    "test session starts": START,
    "FAILURES": FAILURES,
    "ERRORS": ERRORS,
    "warnings summary": WARNINGS,
    "warnings summary (final)": WARNINGS,
    "short test summary info": SUMMARY,
    "PASSES": OTHER,
    "XFAILURES": OTHER,
    "XPASSES": OTHER,
    "rerun test summary info": OTHER,
    "tests coverage": OTHER,
}


def heading(line: str) -> str | None:
    """Which section the line begins, None where it is no heading."""
    match = _HEADING.match(line[:400])
    if match is None:
        return None
    title = match[2].strip("= ")
    known = _KNOWN.get(title)
    if known:
        return known
    if title.startswith(("slowest ", "coverage:", "Captured")):
        return OTHER
    return None


def failure_title(line: str) -> str | None:
    """The name in a failure's heading."""
    match = _TITLE.match(line[:4200])
    if match is None:
        return None
    title = match[1].strip()
    return None if not title.strip("_ ") else title


def is_name(title: str) -> bool:
    """The heading's text can be a test's name or a file's: captured output may draw lines too."""
    if title.startswith("ERROR "):
        return True
    base = title.partition("[")[0].split(" (")[0].rstrip()
    return " " not in base and bool(re.search(r"\w", base))


def counts(line: str) -> Counts | None:
    """The counts of a session's last line."""
    if " in " not in line or not line.endswith(("s", ")", "=")):
        return None
    match = _COUNTS.match(line[:600])
    if match is None:
        return None
    numbers = {
        word.rstrip("s") if word in {"errors", "warnings"} else word: int(n) for n, word in _ONE.findall(match[1])
    }
    return Counts(
        passed=numbers.get("passed", 0),
        failed=numbers.get("failed", 0),
        errors=numbers.get("error", 0),
        skipped=numbers.get("skipped", 0),
        xfailed=numbers.get("xfailed", 0),
        xpassed=numbers.get("xpassed", 0),
    )


def phase_and_name(title: str, section: str) -> tuple[str, str]:
    """("setup", "TestX.test_y[p]") from a failure's heading."""
    for prefix, phase in (
        ("ERROR at setup of ", "setup"),
        ("ERROR at teardown of ", "teardown"),
        ("ERROR collecting ", "collect"),
    ):
        if title.startswith(prefix):
            return phase, title[len(prefix) :]
    return ("setup" if section == ERRORS else "call"), title


_WORDS = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN|SUBPASSED|SUBFAILED|SUBSKIPPED"
_OUTCOME = re.compile(rf" *({_WORDS})(?=[ \[(]|$)")
_XDIST = re.compile(rf"\[gw\d+\] \[ *\d+%\] ({_WORDS})\S* (.+)$")
_FILE = re.compile(r"(\S[^:]{0,300}?\.(?:py|txt|md|rst|yaml|yml)) ([.FEsxXRu,-]+)(?: *\[ *\d+%\]| *\[\d+/\d+\])?$")
_DOTS = re.compile(r"([.FEsxXRu,-]+)(?: *\[ *\d+%\]| *\[ *\d+/\d+\])?$")
_OPEN_FILE = re.compile(  # what a test prints, or a dying process, may follow its letters at once
    r"(\S[^:]{0,300}?\.py) (?:([.FEsxXRu,-]*?)(?=Fatal Python|Windows fatal|[^.FEsxXRu,a-z-]|$)|(?=\S))"
)
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
            self._count(match[2] or "")
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
