"""The lines that pytest-sugar, pytest-pretty and pytest-rich print instead of pytest's own lines, as the lines that pytest would have printed."""

from __future__ import annotations

import re

from debug_spyre.triage.sections import counts
from debug_spyre.vocabulary.evidence import Counts

_TITLE = re.compile(r"\u2015{2,} (.+?) \u2015{2,}$")
_STARTS = re.compile(r"Test session starts \(platform: ")
_TEST = re.compile(r" ?(\S+::.*?) ([\u2713\u2a2fsxXER]) +(\d{1,3})% [\u2588-\u258f ]*$")
_OUTCOMES = {
    "\u2713": "PASSED", "\u2a2f": "FAILED", "s": "SKIPPED", "x": "XFAIL", "X": "XPASS", "E": "ERROR", "R": "RERUN",
}  # fmt: skip
_BOX = re.compile(r"\u256d\u2500+ (\S+::.*?) \u2500+\u256e$")
_BOXED = re.compile(r"\u2502 (?:(\S+\.py:\d+) in (\w+)|E ?(.*?)) *\u2502$")
_RESULTS = re.compile(r"Results \([\d.]+\w*\):$|\u256d\u2500+ Summary \u2500+\u256e$")
_ONE_RESULT = re.compile(r"(?:\s{5,}|\u2502\s+)(\d+) +((?:Total )?[A-Za-z]+)(?: *(?:\([\d.]+%\))? *\u2502)?$")
_DETAIL = re.compile(r"\s{5,}- ")


def as_pytest(line: str) -> str:
    """The line as pytest itself would have written it; most lines stay as they are."""
    if line[:1] == "\u2015" and (match := _TITLE.match(line)):
        return f"____ {match[1]} ____"
    if line[:1] == "T" and _STARTS.match(line):
        return "==== test session starts ===="
    if line[:1] == "\u256d" and (match := _BOX.match(line[:4200])):
        return f"____ {match[1]} ____"
    if line[:1] == "\u2502" and (match := _BOXED.match(line[:4200])):
        return f"{match[1]}: in {match[2]}" if match[1] else f"E   {match[3]}"
    if "::" in line and (match := _TEST.match(line[:4200])):
        return f"{match[1]} {_OUTCOMES[match[2]]} [{match[3]:>3}%]"
    return line


def begins_results(line: str) -> bool:
    """The heading of a list of counts, one a line."""
    return bool(_RESULTS.match(line))


def one_result(line: str) -> Counts | None:
    """The counts of one line of that list; none of a test that it names; None where the list has ended."""
    if match := _ONE_RESULT.match(line):
        return counts(f"{match[1]} {match[2].lower()} in 0s") or Counts()
    return Counts() if _DETAIL.match(line) else None
