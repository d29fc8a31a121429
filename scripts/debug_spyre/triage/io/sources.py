"""Any log that people name, as plain files of UTF-8 (pipes, archives, packed files, folders), and their lines, read once.

Nothing endless is read to no end: a device that gives data is refused, a pipe has a limit.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import quopri
import re
import stat
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from debug_spyre.triage.carriers import Carrier, carrier_of
from debug_spyre.triage.junit import log_entries
from debug_spyre.triage.lines import LONGEST, clean, without_escapes, without_stamp
from debug_spyre.triage.wrapped import Unwrapper
from debug_spyre.vocabulary.errors import BadInputError

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


PIECE = 1 << 20
LIMIT = 1 << 30  # bytes of one pipe or of all that an archive holds
_PACKED: tuple[tuple[bytes, Any], ...] = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", lzma.open), (b"BZh", bz2.open))
_BROKEN = (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, RuntimeError, NotImplementedError)
_LOG_SUFFIXES = frozenset(
    {
        "",
        *[
            ".txt",
            ".log",
            ".out",
            ".err",
            ".xml",
            ".json",
            ".jsonl",
            ".ndjson",
            ".gz",
            ".xz",
            ".bz2",
            ".zip",
            ".tar",
            ".tgz",
        ],
    }
)
_DOCUMENT = 1 << 26  # bytes of one JSON document that is read as a whole
_BLANKS = b"\xef\xbb\xbf \t\r\n"
_QUOTED_PRINTABLE = re.compile(rb"(?i)content-transfer-encoding: *quoted-printable|(?:=3D){20,}[^\n]{0,60}=\r?\n")
_TAR_MAGIC = slice(257, 262)
_JOB_LOG = re.compile(r"-?\d+_(.+)\.txt$")  # the whole job in the archive of a GitHub run; its steps lie in a folder


@dataclass(frozen=True, slots=True)
class Source:
    """One text: the name to show and a regular file that holds it. `is_part` of an archive or a folder."""

    name: str
    path: Path
    is_part: bool = False


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[Source]]:
    """The sources behind the names that were given; copies are gone afterwards.

    Raises:
        BadInputError: one can't be read, is damaged or does not end.
    """
    with tempfile.TemporaryDirectory(prefix="debug-spyre-logs-") as folder:
        unpacker = _Unpacker(Path(folder))
        yield [source for path in paths for source in unpacker.sources(path)]


@dataclass(slots=True)
class _Unpacker:
    folder: Path
    copies: int = 0

    def sources(self, path: Path) -> list[Source]:
        try:
            mode = path.stat().st_mode if str(path) != "-" else stat.S_IFIFO
        except OSError as error:
            raise _unreadable(path, error.strerror or error) from error
        if stat.S_ISDIR(mode):
            inside = sorted(p for p in path.rglob("*") if p.is_file() and _may_be_log(p.relative_to(path)))
            return [s for p in inside for s in self._of_file(p, str(p), is_part=True)]
        if stat.S_ISREG(mode):
            return self._of_file(path, str(path))
        try:
            return self._of_file(self._from_pipe(path, mode), "standard input" if str(path) == "-" else str(path))
        except OSError as error:
            raise _unreadable(path, error.strerror or error) from error

    def _from_pipe(self, path: Path, mode: int) -> Path:
        with sys.stdin.buffer if str(path) == "-" else path.open("rb") as stream:
            if stat.S_ISCHR(mode) and not stream.isatty() and stream.read(1):
                raise BadInputError(f"{path} is a device, not a log", next="debug-spyre triage --from FILE")
            return self._copy(stream, str(path))

    def _of_file(self, path: Path, name: str, *, is_part: bool = False, depth: int = 0) -> list[Source]:
        try:
            with path.open("rb") as stream:
                head = stream.read(4096)
        except OSError as error:
            raise _unreadable(path, error.strerror or error) from error
        try:
            if depth < 3 and head.startswith(b"PK\x03\x04"):
                return self._of_zip(path, name, depth)
            if depth < 3 and head[_TAR_MAGIC] == b"ustar":
                return self._of_tar(path, name, depth)
            for magic, opener in _PACKED:
                if depth < 3 and head.startswith(magic):
                    with opener(path, "rb") as stream:
                        plain = self._copy(stream, name)
                    return self._of_file(plain, name, is_part=is_part, depth=depth + 1)
        except _BROKEN as error:
            raise BadInputError(f"cannot unpack {name}: {error}", next="check the file and repeat") from error
        if encoding := _utf16(head):
            path = self._transcoded(path, encoding)
        elif _QUOTED_PRINTABLE.search(head):
            path = self._from_mail(path)
        elif head.lstrip(_BLANKS)[:1] in {b"[", b"{"} and path.stat().st_size <= _DOCUMENT:
            path = self._from_document(path) or path
        return [Source(name, path, is_part)]

    def _of_zip(self, path: Path, name: str, depth: int) -> list[Source]:
        found = []
        with zipfile.ZipFile(path) as archive:
            names = [i.filename for i in archive.infolist() if not i.is_dir()]
            for member in _without_steps(sorted(names, key=_natural)):
                with archive.open(member) as stream:
                    copy = self._copy(stream, f"{name}!{member}")
                found += self._of_file(copy, f"{name}!{member}", is_part=True, depth=depth + 1)
        return found

    def _of_tar(self, path: Path, name: str, depth: int) -> list[Source]:
        found = []
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is not None:
                    copy = self._copy(stream, f"{name}!{member.name}")
                    found += self._of_file(copy, f"{name}!{member.name}", is_part=True, depth=depth + 1)
        return found

    def _copy(self, stream: IO[bytes], name: str) -> Path:
        target, size = self._new(), 0
        with target.open("wb") as out:
            while piece := stream.read(PIECE):
                size += len(piece)
                if size > LIMIT:
                    raise BadInputError(
                        f"{name} gave more than {LIMIT >> 20} MB and has not ended",
                        next="save the part with the tests to a file, then debug-spyre triage --from FILE",
                    )
                out.write(piece)
        return target

    def _new(self) -> Path:
        self.copies += 1
        return self.folder / str(self.copies)

    def _from_mail(self, path: Path) -> Path:
        target = self._new()
        with path.open("rb") as stream, target.open("wb") as out:
            quopri.decode(stream, out)
        return target

    def _from_document(self, path: Path) -> Path | None:
        """One JSON document that lists log entries, as lines of JSON."""
        entries = log_entries(path.read_bytes())
        if entries is None:
            return None
        target = self._new()
        with target.open("w", encoding="utf-8", errors="surrogateescape") as out:
            out.writelines(entry if isinstance(entry, str) else json.dumps(entry) + "\n" for entry in entries)
        return target

    def _transcoded(self, path: Path, encoding: str) -> Path:
        target = self._new()
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        with path.open("rb") as stream, target.open("w", encoding="utf-8", newline="") as out:
            while piece := stream.read(PIECE):
                out.write(decoder.decode(piece).encode("utf-8", "replace").decode())
        return target


def _utf16(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    half = len(head) // 2
    if half > 20 and head[1::2].count(0) > 0.7 * half and head[::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if half > 20 and head[::2].count(0) > 0.7 * half and head[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return None


def _without_steps(names: list[str]) -> list[str]:
    """Without the steps of a job whose whole log is there too."""
    jobs = {match[1] for name in names if "/" not in name and (match := _JOB_LOG.match(name))}
    return [name for name in names if name.partition("/")[0] not in jobs or "/" not in name]


def _may_be_log(path: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.parts)
    return not hidden and (path.suffix.lower() in _LOG_SUFFIXES or path.suffix[1:].isdigit())


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _unreadable(path: Path, why: object) -> BadInputError:
    return BadInputError(f"cannot read {path}: {why}", next="debug-spyre triage --from FILE, with a file that exists")
