"""The marks that structure pytest's terminal text: section headings, failure headings, the counts line, outcomes."""

from __future__ import annotations

import re

from debug_spyre.vocabulary.evidence import Counts, Outcome

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
