"""One line of a log without what wrappers put around it: time stamps, byte order mark, colours, job columns.

Cleaning never joins or drops lines, so line numbers stay those of the original file.
"""

from __future__ import annotations

import re

LONGEST = 65_536  # of a longer line the middle is left out
_KEPT = LONGEST // 2

_CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_STAMP = re.compile(rf"\ufeff?(?:\[{_CLOCK}\]|{_CLOCK}(?=[ \ufeff]|$)) ?\ufeff?")
_TS_STAMP = re.compile(r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? ?")
_JOB = re.compile(rf"[^\t]{{1,200}}\t[^\t]{{1,200}}\t\ufeff?(?={_CLOCK})")
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\x07]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\-~])?"
)
_BARE_COLOUR = re.compile(r"\[(?:\d{1,2}(?:;\d{1,3})*)?m")
_ENGINE = re.compile(r"\((?:[A-Z]\w*|VLLM::\w+)(?: [\w.=-]+)* pid=\d+\) ?")
_VLLM_LOG = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[[^\]]*\] ")
_RANK = re.compile(r"\[(?:default|rank|trainer)\d+\]:\s?")
_MONTHS = frozenset("JFMASOND")


def shorten(line: str) -> str:
    """A very long line with its middle left out."""
    if len(line) <= LONGEST:
        return line
    return f"{line[:_KEPT]} ...{len(line) - 2 * _KEPT} characters left out... {line[-_KEPT:]}"


def without_escapes(line: str) -> str:
    """A line without byte order mark and colours, and of bounded length."""
    if len(line) > LONGEST:
        line = shorten(line)
    if line[:1] == "\ufeff":
        line = line[1:]
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    elif "[0m" in line:
        line = _BARE_COLOUR.sub("", line)  # the escape characters were lost on the way
    return line


def clean(line: str) -> str:
    """The line as the program printed it, without a runner's time stamp in front."""
    return without_stamp(without_escapes(line))


def without_stamp(line: str) -> str:
    """A line without a time stamp that only this line may have."""
    first = line[:1]
    if first.isdigit() or first == "[":
        line = _without_stamp(line)
    elif "\t" in line and (match := _JOB.match(line)):
        line = _without_stamp(line[match.end() :])
    elif first in _MONTHS and (match := _TS_STAMP.match(line)):
        line = line[match.end() :]
    return line.rstrip()


def without_engine(line: str) -> str:
    """A line of a vLLM process without its process and log prefixes."""
    if line[:1] == "(" and (match := _ENGINE.match(line)):
        line = line[match.end() :]
    if line[:1] in "DIWEC" and (match := _VLLM_LOG.match(line)):
        line = line[match.end() :]
    return line


def _without_stamp(line: str) -> str:
    match = _STAMP.match(line) or _RANK.match(line)
    return line[match.end() :] if match else line
