"""The lines of one file, read once and in pieces; bytes that are not UTF-8 survive as surrogate escapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from debug_spyre.triage.carriers import Carrier, carrier_of
from debug_spyre.triage.lines import LONGEST, clean, without_escapes, without_stamp
from debug_spyre.triage.wrapped import Unwrapper
from debug_spyre.vocabulary.errors import BadInputError

PIECE = 1 << 20
_SAMPLE = 1 << 17
_PLACES = 6


def numbered_lines(path: Path) -> Iterator[tuple[int, str, str, bool]]:
    """(number, the process that speaks, the line itself, whether its end is there).

    A carriage return inside parts a line but not its number; of a line that a terminal broke the first piece gives it.

    Raises:
        BadInputError: the file can't be read.
    """
    carrier = carrier_of(sample_of(path))
    lines = _carried(path, carrier)
    return _unwrapped(lines, carrier.width) if carrier.width else lines


def _unwrapped(lines: Iterator[tuple[int, str, str, bool]], width: int) -> Iterator[tuple[int, str, str, bool]]:
    unwrappers: dict[str, Unwrapper] = {}
    is_torn = False
    for number, stream, line, whole in lines:
        is_torn = not whole
        if stream not in unwrappers:
            unwrappers[stream] = Unwrapper(width)
        if done := unwrappers[stream].feed(number, line):
            yield done[0], stream, done[1], True
    for stream, unwrapper in unwrappers.items():
        if done := unwrapper.end():
            yield done[0], stream, done[1], not is_torn


def _carried(path: Path, carrier: Carrier) -> Iterator[tuple[int, str, str, bool]]:
    waiting: dict[str, str] = {}
    for number, (raw, whole) in enumerate(raw_lines(path), start=1):
        shown = raw.decode("utf-8", "surrogateescape")
        if carrier.counted and carrier.is_number(shown):
            continue
        text, ends = carrier.unpacked(shown)
        stream, line = carrier.stripped(without_escapes(text))
        if not ends and whole:
            waiting[stream] = waiting.get(stream, "") + line
            continue
        if waiting:
            line = waiting.pop(stream, "") + line
        if "\r" in line:
            parts = line.rstrip("\r").split("\r")
            for part in parts[:-1]:
                if part:
                    yield number, stream, clean(part), True
            line = parts[-1]
        yield number, stream, without_stamp(line), whole


def sample_of(path: Path) -> list[str]:
    """Whole lines from the beginning, the end and places between: enough to learn what carries the text."""
    size = path.stat().st_size
    places = [0] if size <= 2 * _SAMPLE else [size * n // _PLACES for n in range(_PLACES)] + [size - _SAMPLE]
    lines: list[str] = []
    with path.open("rb") as stream:
        for place in places:
            stream.seek(place)
            piece = stream.read(2 * _SAMPLE if len(places) == 1 else _SAMPLE)
            found = piece.decode("utf-8", "surrogateescape").split("\n")
            lines += found[1 if place else 0 :]
    return lines


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
