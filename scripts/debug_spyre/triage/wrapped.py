"""Lines that a terminal broke at its width: the width learned from the text, the pieces joined again.

Only a line that is exactly as wide as the terminal goes on in the next one, unless it is whole in itself. A capture drops the
blanks at the end of a piece, so a piece may lack one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_NARROWEST, _WIDEST = 40, 400
_FEWEST = 2
_LONGER = 0.02  # the share of lines, of people's prose around a capture, that may be longer than the terminal is wide
_WHOLE = re.compile(r"\[ *\d+%\]$|\.\.\.$|[=_!]{3,}$|-{3,}$")
_PERCENT = re.compile(r"\s+\[ *\d+%\]$")
_BEGINS = re.compile(
    r"E  |E$|\s{2}|[=_\-!>]{2,}|> |(?:FAILED|ERROR|PASSED|SKIPPED|XFAIL|XPASS|RERUN) |\S+\.py[: ]|\S+::|\[gw\d|$|Traceback"
)
_CERTAINLY_BEGINS = re.compile(
    r"E   |[=_\-]{3,} |(?:FAILED|ERROR|PASSED|SKIPPED) \S+(?:\.py|::)|\S+\.py:\d+: |\S+\.py::\S+ |$"
)
_RULER = re.compile(r"([=_\-!])\1{2,} .*? \1+$")


def width_of(lines: Sequence[str]) -> int:
    """The width at which these lines were broken; 0 where they were not."""
    lengths = Counter(map(len, lines))
    halves = {len(a) for a, b in pairwise(lines) if _is_half_ruler(a, b, len(a))}
    longer = 0
    for width in sorted(lengths, reverse=True):
        if longer > _LONGER * len(lines):
            return 0
        longer += lengths[width]
        is_likely = width in halves or longer == lengths[width]
        if _NARROWEST <= width <= _WIDEST and is_likely and _is_width(lines, width):
            return width
    return 0


def _is_width(lines: Sequence[str], width: int) -> bool:
    broken = whole = 0
    for line, after in pairwise(lines):
        if _is_half_ruler(line, after, width):
            broken += 1
        elif len(line) == width and not _WHOLE.search(line):
            begins = _BEGINS.match(after) and not _PERCENT.match(after)
            whole, broken = whole + bool(begins), broken + (not begins)
    return broken >= _FEWEST and broken > whole


def _is_half_ruler(line: str, after: str, width: int) -> bool:
    """A heading whose rest stands on the next line."""
    mark = line[:1]
    if not mark or mark not in "=_-!" or not width - 2 <= len(line) <= width or not after.endswith(mark):
        return False
    if after == mark * len(after) and line[:3] == mark * 3:
        return " " in line
    return not _RULER.match(line) and bool(_RULER.match(line.ljust(width) + after))


class Unwrapper:
    """Feed it the lines of one process; it gives whole lines with the number of their first piece."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._kept: tuple[int, str] | None = None
        self._piece = ""  # the last piece of what is kept

    def feed(self, number: int, line: str) -> tuple[int, str] | None:
        """Take in a line; gives what came before it, where that is whole now."""
        if self._kept is not None and self._goes_on(line):
            lost = self.width - len(self._piece)
            self._kept, self._piece = (self._kept[0], f"{self._kept[1]}{' ' * lost}{line}"), line
            return None
        done, self._kept, self._piece = self._kept, (number, line), line
        return done

    def _goes_on(self, line: str) -> bool:
        piece, width = self._piece, self.width
        if width - 2 <= len(piece) <= width and _is_half_ruler(piece, line, width):
            return True
        if len(piece) == width:
            return not _WHOLE.search(piece) and not _CERTAINLY_BEGINS.match(line)
        return len(piece) == width - 1 and not _WHOLE.search(piece) and not _BEGINS.match(line)

    def end(self) -> tuple[int, str] | None:
        """The last line."""
        done, self._kept = self._kept, None
        return done
