"""One line of a log without what wrappers and collectors put around it: time stamps, colours, pods, ranks; learned from the text.

pytest's own lines tell where the text of a line begins. What stands before them, in form, is the prefix: its numbers may
change, its words may name several processes whose lines stand among each other. Nothing is a prefix that most lines lack.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_ANCHOR = re.compile(
    r"(?:={3,} (?:test session starts|FAILURES|ERRORS|warnings summary|short test summary info|PASSES)\b"
    r"|(?<![=\w])={2,} (?:\d+ [a-z]+(?:, )?)+ in [\d.]+s"
    r"|(?<!_)_{2,} (?:ERROR (?:at \w+ of|collecting) )?[\w./:]+(?:\[[^\n]*\])? _{2,}$"
    r"|\[gw\d+\] \[ *\d+%\] (?:PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)\b"
    r"|(?<![\w=])(?:FAILED|ERROR|PASSED|SUBFAILED) (?=[^\s:]+\.py(?:::|$| - ))"
    r"|(?<![\w=])E   +(?=[A-Za-z])"
    r"|(?<!\w)platform \w+ -- Python \d|(?<!\w)rootdir: /|(?<!\w)plugins: [a-z]+-\d|(?<!\w)collect(?:ed|ing) (?:\d+ items?|\.\.\. )"
    r"|(?<!-)-{3,} Captured \w+"
    r"|(?<!\w)Ran \d+ tests? in \d|\[ +(?:RUN|OK|FAILED) +\] \w)"
)
_WORD = r"\w+(?:[./@+,-]+\w+|(?<=\d):(?=\d)\w+)*"
_TOKEN = re.compile(rf"({_WORD})|(\s+)|(.)", re.DOTALL)
_NUMERIC = re.compile(r"[\d:.,/+TZ-]+")
_CALENDAR = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)$")
_CHANNEL = re.compile(
    r"stdout|stderr|[FPOE]|\d\d[OE]|log|out|err|INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|TRACE", re.IGNORECASE
)
_CLOCK_prefixes = re.compile(r"\d{1,4}[-:/.]\d|\d{6,}|T\d\d")
LONGEST_prefixes = 300
MOST_STREAMS = 64
_SHARE_OF_ANCHORS = 0.2
_SHARE_OF_LINES = 0.6
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Prefix:
    """One learned form. `named` are the groups that name a process."""

    pattern: re.Pattern[str]
    named: tuple[int, ...] = ()

    def split(self, line: str) -> tuple[str, str] | None:
        """(the process, the line itself); None where the line lacks it."""
        match = self.pattern.match(line)
        if match is None:
            return None
        return " ".join(match[g] for g in self.named), line[match.end() :]


def learn(lines: Sequence[str]) -> tuple[tuple[Prefix, ...], ...]:
    """The prefixes of a sample of lines, a round for each that lies inside another; of a round the longest first."""
    rounds = []
    for _ in range(_ROUNDS):
        found = _one_round(lines)
        if not found:
            break
        rounds.append(found)
        lines = [_without(line, found) for line in lines]
    return tuple(rounds)


def _without(line: str, prefixes: Sequence[Prefix]) -> str:
    split = next((s for p in prefixes if (s := p.split(line)) is not None), None)
    return line if split is None else split[1]


def _one_round(lines: Sequence[str]) -> tuple[Prefix, ...]:
    by_form: dict[str, list[tuple[int, str]]] = defaultdict(list)
    every = 0
    for place, line in enumerate(lines):
        match = _ANCHOR.search(line, 0, 2000)
        if match is None or match.start() > LONGEST_prefixes:
            continue
        every += 1
        if match.start():
            by_form[_form(line[: match.start()])].append((place, line[: match.start()]))
    found = []
    for seen in by_form.values():
        if len(seen) < _SHARE_OF_ANCHORS * every:
            continue
        region = [line for line in lines[seen[0][0] : seen[-1][0] + 1] if line.strip()]
        prefix = _accepted([text for _, text in seen], region)
        if prefix is not None:
            found.append((max(len(text) for _, text in seen), prefix))
    return tuple(prefix for _, prefix in sorted(found, key=lambda f: -f[0]))


def _form(text: str) -> str:
    body = text.rstrip()
    return "".join("w" if m[1] else " " if m[2] else m[3] for m in _TOKEN.finditer(body)) + text[len(body) :]


def _accepted(texts: list[str], region: list[str]) -> Prefix | None:
    """The narrowest form that most lines of the region have."""
    best: tuple[int, re.Pattern[str]] | None = None
    for is_open in (False, True):
        pattern = re.compile(_pattern(texts, is_open=is_open))
        count = sum(bool(pattern.match(line)) for line in region)
        if best is None or count > 1.05 * best[0]:
            best = (count, pattern)
    if best is None or best[0] < _SHARE_OF_LINES * len(region):
        return None
    return Prefix(best[1], _named(best[1], region))


def _pattern(texts: list[str], *, is_open: bool) -> str:
    """A form as a pattern: numbers open, words as they stand or, in the open form, any words."""
    bodies = [text.rstrip() for text in texts]
    rows = [list(_TOKEN.finditer(body)) for body in bodies]
    parts = []
    for column in zip(*rows, strict=True):
        first = column[0]
        if first[1]:
            parts.append(f"({_slot([m[1] for m in column], is_open=is_open)})")
        else:
            parts.append(r"\s+" if first[2] else re.escape(first[3]))
    if parts and parts[0] == r"\s+":
        parts[0] = r"\s*"
    end = min((text[len(body) :] for text, body in zip(texts, bodies, strict=True)), key=len)
    return "".join(parts) + (rf"(?:{re.escape(end)}|\s*$)" if end else "")


def _slot(values: list[str], *, is_open: bool) -> str:
    if all(v.isdigit() for v in values):
        return r"\d+"
    if all(_NUMERIC.fullmatch(v) for v in values):
        return r"[\d:.,/+TZ-]*[\dZ]"
    if all(_CALENDAR.match(v) for v in values):
        return r"[A-Z][a-z]{2}"
    if len(set(values)) == 1 and not is_open:
        return re.escape(values[0])
    return _WORD


def _named(pattern: re.Pattern[str], region: list[str]) -> tuple[int, ...]:
    """The groups whose few values come back again and again: processes whose lines stand among each other."""
    rows = [m.groups() for line in region if (m := pattern.match(line))]
    named: list[int] = []
    after_month = False
    for group in range(pattern.groups):
        values = [row[group] for row in rows]
        is_day, after_month = after_month, bool(values) and all(_CALENDAR.match(v) for v in values)
        few = set(values)
        runs = 1 + sum(a != b for a, b in pairwise(values))
        if is_day or not 2 <= len(few) <= MOST_STREAMS or runs <= len(few):
            continue
        if all(_CHANNEL.fullmatch(v) or _CALENDAR.match(v) for v in few) or any(_CLOCK_prefixes.search(v) for v in few):
            continue
        if len(values) >= 3 * len(few):
            named.append(group + 1)
    return tuple(named)


def split_all(line: str, rounds: Sequence[Sequence[Prefix]]) -> tuple[str, str]:
    """(the process, the line itself) after every round."""
    stream = ""
    for prefixes in rounds:
        for prefix in prefixes:
            split = prefix.split(line)
            if split is not None:
                stream, line = f"{stream} {split[0]}".strip(), split[1]
                break
    return stream, line


def anchors(lines: Sequence[str]) -> Iterator[str]:
    """The lines that show where a line's own text begins."""
    return (line for line in lines if _ANCHOR.search(line, 0, 2000))


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
