"""The decisive part of a long text: its last *Problem* block, the backend's own last words, the RAS object that counts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from debug_spyre.triage.lines import without_engine
from debug_spyre.vocabulary.evidence import Kind

_ENGINE_DIED = re.compile(
    r"Server (?:process )?exited|[Ss]erver failed to start|Engine core (?:initialization failed|died)|EngineDeadError|EngineCore (?:encountered|failed)|Worker\w* (?:proc\w* )?(?:died|failed)"
)
_ERROR_LINE = re.compile(r"(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Unsupported|Warning|Interrupt): ")

HINTS = re.compile(
    r"(?m)^\s*(?:Hint: |Set TORCHDYNAMO_VERBOSE|For (?:more details about this graph break|even more developer context)).*$"
)
_DECISIVE = re.compile(r"^\s*\*{0,2}Problem\*{0,2}\s*:\s*(.*)")
RAS_JSON = re.compile(r"\{[^{}]*\"name\"\s*:\s*\"(RAS::[\w:]+)\"[^{}]*\}")
BENIGN_RAS = "RAS::VFMSG::UnsupportedMessageType"
_DT = re.compile(r"DtException: ?([^\n]{3,300})")
_CRITICAL = re.compile(r"(?:CRITICAL\b|\[CRITICAL\]|C\d{4} [\d:.]+ +\d+ \S+\])[ :]*(?:\[\d+/\d+\] *)?(.*)")
_OPTIONAL_LOG = re.compile(r"\S+:\S+\.\w+:\d+ ")
_LEFT_BEHIND = ("StreamInErrorState", "ErrorState")
_SHORT = 20  # a text that says less is no cause
_EMPTY = (
    "Engine core initialization failed",
    "EngineCore",
    "CalledProcessError",
    "assert",
    "AssertionError",
    "backend=",
)


def decisive(text: str, captured: Sequence[str], kind: Kind) -> str:
    """The part of a long text that says what is wrong: its *Problem* block, the backend's own last words, a RAS name."""
    if problem := problem_block(text):
        return f"{headline}; {problem}" if (headline := _headline(text)) else problem
    if kind is Kind.CRASH and "crashed while running" in text:
        return "a worker process crashed"  # the test's name is no part of the cause
    if root := engine_root(text, captured):
        return root
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")[:400]
    if kind is Kind.MISMATCH:
        return first
    beside = "\n".join(captured)
    if ras := _ras(beside, text):
        return ras
    if match := _DT.search(beside) or _DT.search(text):
        return f"DtException: {match[1].strip()}"
    if len(first) < _SHORT or first.startswith(_EMPTY):
        return critical_text(captured) or first
    return first


def critical_text(captured: Sequence[str]) -> str | None:
    """The first CRITICAL line of what was captured, without its logger's prefix."""
    match = next((m for line in captured if (m := _CRITICAL.match(line))), None)
    return (_OPTIONAL_LOG.sub("", match[1], count=1).strip()[:400] or None) if match else None


def problem_block(text: str) -> str | None:
    """What stands behind `Problem:` at the end of a long message."""
    if "Problem" not in text:
        return None
    lines = text.split("\n")
    for place in range(len(lines) - 1, -1, -1):
        if match := _DECISIVE.match(lines[place]):
            return _section(match[1], lines[place + 1 : place + 6])
    return None


def _section(first: str, after: Sequence[str]) -> str | None:
    """The lines of a section up to its end: a blank line after text, or advice on how to see more."""
    found = [first.strip()] if first.strip() else []
    for line in after:
        if (not line.strip() and found) or HINTS.match(line):
            break
        found += [line.strip()] if line.strip() else []
    return " ".join(found[:4])[:400] or None


def _headline(text: str) -> str | None:
    """A message's first line, where it says what went wrong and the sections below it say where."""
    first = text.lstrip().split("\n", 1)[0].strip()
    return first[:200] if len(first) >= _SHORT and not _DECISIVE.match(first) else None


def engine_root(text: str, captured: Sequence[str]) -> str | None:
    """The error of an engine's own process, where the test only sees that the engine died."""
    if not _ENGINE_DIED.search(text[:2000]):
        return None
    lines = [without_engine(line).strip() for line in captured]
    found = [line for line in lines if _ERROR_LINE.match(line) and not _ENGINE_DIED.search(line)]
    return found[-1][:400] if found else None


def _ras(beside: str, text: str) -> str | None:
    """The RAS object that counts: not the one that does not matter, and the first fault before the state it left."""
    found = [m for where in (text, beside) for m in RAS_JSON.finditer(where) if m[1] != BENIGN_RAS]
    found.sort(key=lambda m: m[1].endswith(_LEFT_BEHIND))
    return found[0][0][:1500] if found else None
