"""Lines of pytest that say what they are without the heading above them: summary lines, the first line of a failure.

People paste parts: three FAILED lines, the end of a log. A word at the front is not enough; a test or a file must follow.
"""

from __future__ import annotations

import re

from debug_spyre.triage.nodeids import split_nodeid, without_marks

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
