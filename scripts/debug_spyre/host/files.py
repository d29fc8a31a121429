"""Files: written so that a reader never sees half of one, digested once until they change; what merely accompanies a run may fail and is told."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError

in_supervisor = False  # set by the supervisor: its stderr is supervisor.log


@contextmanager
def kept_going(what: str, notes: list[str] | None = None) -> Iterator[None]:
    """A fault in what merely accompanies a run is told, never the run's end."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        if in_supervisor:  # its stderr is supervisor.log; a person is told in one line, if at all
            traceback.print_exc()
            sys.stderr.flush()
        if notes is not None:
            notes.append(f"{what}: {error.what if isinstance(error, DebugSpyreError) else error!r}")


PRIVATE = 0o600
READABLE = 0o644
PART = ".part"  # ends the name of a file that is being written
OLD_SECONDS = 3600.0


def write_atomically(path: Path, content: str | bytes, *, mode: int = READABLE) -> None:
    """Write to a temporary file in the same folder, then rename it over `path`.

    Raises:
        EnvironmentTroubleError: the folder can't be written or the disk is full; `path` is as it was.
    """
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=PART, dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            os.fchmod(stream.fileno(), mode)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        raise EnvironmentTroubleError(
            f"cannot write {path}: {error.strerror or error}",
            next="free space or choose a writable place with DEBUG_SPYRE_LOGS=DIR",
        ) from error


def read_ends(path: Path, *, head: int = 0, tail: int = 0) -> tuple[bytes, bytes, int]:
    """The first `head` and the last `tail` bytes of a file, and its size in bytes; nothing and 0 where it can't be read."""
    try:
        with path.open("rb") as stream:
            first = stream.read(head) if head else b""
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - tail))
            return first, stream.read(tail), size
    except OSError:
        return b"", b"", 0


def sweep(folder: Path) -> None:
    """Take away what writers that were killed left half written here an hour ago or earlier."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(PART):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > OLD_SECONDS:
                        os.unlink(entry.path)


def make_folder(path: Path, *, exclusive: bool = False) -> None:
    """Create a folder and its parents.

    Raises:
        EnvironmentTroubleError: it can't be made, or `exclusive` and it exists.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=not exclusive)
    except OSError as error:
        taken = exclusive and path.is_dir()
        raise EnvironmentTroubleError(
            f"cannot make the folder {path}: {error.strerror or error}",
            next="the same call again: another made it in this second"
            if taken
            else "choose a writable place with DEBUG_SPYRE_LOGS=DIR",
        ) from error


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


CACHE = ".digests.json"  # beside the sessions


class Digests:
    """Digests of files, kept in one file beside the sessions."""

    def __init__(self, cache: Path) -> None:
        self.cache, self.new = cache, False
        self.known: dict[str, list[Any]] = {}
        with suppress(OSError, ValueError):
            known = json.loads(cache.read_text(encoding="utf-8"))
            self.known = known if isinstance(known, dict) else {}

    def of(self, place: str) -> tuple[str, int] | None:
        """(digest, change time in ns) of a regular file; None where it can't be read."""
        try:
            info = os.stat(place)
            key = [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]
            entry = self.known.get(place)
            if isinstance(entry, list) and entry[:5] == key:
                return str(entry[5]), info.st_ctime_ns
            with open(place, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        except OSError:
            return None
        self.known[place] = [*key, digest]
        self.new = True
        return digest, info.st_ctime_ns

    def keep(self) -> None:
        """Write down what was new; without the cache the next run only takes longer."""
        if self.new:
            with suppress(Exception):
                write_atomically(self.cache, json.dumps(self.known), mode=PRIVATE)
