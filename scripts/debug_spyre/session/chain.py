"""The chain of a journal: each line carries the digest of the line before, digests of the files it names, and its own.

A line as it was written can't be edited, removed or moved without a break here. Lines of older versions have no seal;
they are read and called unchained.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SEAL = re.compile(rb',"prev":"([0-9a-f]{16}|)","sum":"([0-9a-f]{16})"\}\Z')


@dataclass(frozen=True, slots=True)
class Chain:
    """What the lines say of themselves: how many have no seal, and where the chain breaks (line number from 1), if it does."""

    lines: int
    unchained: int = 0
    broken: int | None = None
    why: str = ""

    def says(self) -> str | None:
        """Where it breaks, in words; None where it does not."""
        return (
            None
            if self.broken is None
            else f"the journal was changed after it was written: line {self.broken} {self.why}"
        )


def digest(data: bytes) -> str:
    """Sixteen hex digits of SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def sealed(line: str, previous: bytes | None, files: Mapping[str, str]) -> str:
    """The event's line with the digests of its files, of the line before and of itself."""
    told = json.dumps(dict(files), separators=(",", ":"))
    body = line[:-1] + (f',"digests":{told}' if files else "")
    body += f',"prev":"{digest(previous) if previous is not None else ""}"'
    return f'{body},"sum":"{digest(body.encode("utf-8"))}"}}'


def check(lines: Sequence[bytes], head: tuple[int, str] | None) -> Chain:
    """Follow the chain over all whole lines. `head`: number and digest of the last line, as last written beside the journal."""
    unchained, previous = 0, None
    for number, line in enumerate(lines, start=1):
        seal = _SEAL.search(line)
        if seal is None:
            if unchained < number - 1:
                return Chain(len(lines), unchained, number, "has no seal")
            unchained = number
        elif digest(line[: seal.start(2) - len(b',"sum":"')]) != seal[2].decode():
            return Chain(len(lines), unchained, number, "is not what was written")
        elif seal[1].decode() != (digest(previous) if previous is not None else ""):
            return Chain(len(lines), unchained, number, "does not follow the line before it")
        previous = line
    if unchained == len(lines):
        return Chain(len(lines), unchained)
    if head is None:
        return Chain(len(lines), unchained, len(lines), "is the last one, and journal.head, which says so, is missing")
    number, told = head
    if number > len(lines):
        return Chain(len(lines), unchained, len(lines) + 1, f"and later ones up to {number} are missing")
    if number < 1 or digest(lines[number - 1]) != told:
        return Chain(len(lines), unchained, max(number, 1), "is not the one that journal.head names")
    return Chain(len(lines), unchained)
