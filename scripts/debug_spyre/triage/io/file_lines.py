"""The lines of one file, read once and in pieces; bytes that are not UTF-8 survive as surrogate escapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from debug_spyre.triage.lines import LONGEST, clean
from debug_spyre.vocabulary.errors import BadInputError

PIECE = 1 << 20


def numbered_lines(path: Path) -> Iterator[tuple[int, str, bool]]:
    """(number, cleaned line, whether its end is there); a carriage return inside parts a line but not its number.

    Raises:
        BadInputError: the file can't be read.
    """
    for number, (raw, whole) in enumerate(raw_lines(path), start=1):
        text = raw.decode("utf-8", "surrogateescape")
        if "\r" in text:
            parts = text.rstrip("\r").split("\r")
            for part in parts[:-1]:
                if part:
                    yield number, clean(part), True
            text = parts[-1]
        yield number, clean(text), whole


def raw_lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """(bytes of a line, whether its end is there)."""
    rest = b""
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE):
                lines = (rest + piece).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    yield (line, True)
                if len(rest) > 4 * LONGEST:
                    rest = rest[: 2 * LONGEST] + rest[-2 * LONGEST :]
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}", next="check the file and repeat"
        ) from error
    if rest:
        yield (rest, False)
