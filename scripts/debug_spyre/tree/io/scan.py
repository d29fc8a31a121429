"""The working files, byte for byte: no filter, no line-end conversion, symbolic links as links.

A path is never followed through a link, and nothing but regular files and links is opened.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.host.git import git, index_entries, untracked
from debug_spyre.session.io.workspace import SKILL, logs_folder

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
MOST_BYTES = 64 * 1024 * 1024  # a larger untracked file (weights, dumps) is neither kept nor put back
_MADE_BY_TOOLS = {b"__pycache__", b".pytest_cache", b".hypothesis", b".mypy_cache", b".ruff_cache", b".venv", b"venv"}
_OF_THE_CLIENT = (b".claude/", b".bob/")
TEMPORARY = b".debug-spyre-"  # what a revert that was killed may leave beside the file that it wrote
_CODE = (b".py", b".pyi", b".toml", b".ini", b".cfg", b".cpp", b".h", b".hpp")


@dataclass(frozen=True, slots=True)
class Entry:
    """One working file: git's mode, the id that git gives these bytes, their number. `sha` None: can't be read."""

    mode: str
    sha: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Scan:
    """All files that belong to the checkout's state; `skipped` are those too large to keep."""

    files: dict[bytes, Entry]
    tracked: frozenset[bytes]
    skipped: tuple[bytes, ...] = ()


def scan(checkout: Path, *, also: Iterable[bytes] = (), algorithm: str | None = None) -> Scan:
    """Look at tracked and untracked files, and at the paths in `also` whether git lists them or not."""
    algorithm = algorithm or object_format(checkout)
    own = _own_folders(checkout)
    index = index_entries(checkout)
    tracked = frozenset(p for p, (mode, _) in index.items() if mode != SUBMODULE and not p.startswith(own))
    others = [p for p in untracked(checkout) if _is_the_users(p, own)]
    links = _Links(checkout)
    files, skipped = {}, []
    for path in sorted({*tracked, *others, *also}):
        limit = None if path in tracked else MOST_BYTES
        entry = None if links.hide(path) else look_at(checkout, path, algorithm=algorithm, limit=limit)
        if entry is None:
            continue
        if entry.size > MOST_BYTES and entry.sha is None:
            skipped.append(path)
        else:
            files[path] = entry
    return Scan(files, tracked, tuple(skipped))


def covered_files(checkout: Path) -> frozenset[bytes]:
    """The paths that `digest_of` covers, by their names alone."""
    own = _own_folders(checkout)
    tracked = frozenset(
        p for p, (mode, _) in index_entries(checkout).items() if mode != SUBMODULE and not p.startswith(own)
    )
    roots = source_folders(tracked)
    others = (p for p in untracked(checkout) if _is_the_users(p, own) and is_under_source(p, roots))
    return tracked | frozenset(others)


def object_format(checkout: Path) -> str:
    """The hash that this repository names objects by: sha1 or sha256."""
    answer = git(checkout, "rev-parse", "--show-object-format", allowed=(0, 128, 129)).decode().strip()
    return answer if answer in {"sha1", "sha256"} else "sha1"


def look_at(checkout: Path, path: bytes, *, algorithm: str, limit: int | None = None) -> Entry | None:
    """One file's entry; None where it is absent or neither a regular file nor a link."""
    place = os.fsencode(checkout) + b"/" + path
    try:
        info = os.lstat(place)
    except OSError:
        return None
    if stat.S_ISLNK(info.st_mode):
        target = os.readlink(place)
        return Entry(LINK, object_id(target, algorithm), len(target))
    if not stat.S_ISREG(info.st_mode):
        return None
    mode = EXECUTABLE if info.st_mode & stat.S_IXUSR else FILE
    if limit is not None and info.st_size > limit:
        return Entry(mode, None, info.st_size)
    try:
        data = read_bytes(place)
    except OSError:
        return Entry(mode, None, 0)
    return Entry(mode, object_id(data, algorithm), len(data))


def read_bytes(place: bytes | Path) -> bytes:
    """A regular file's bytes, or a link's target; a link is not followed."""
    with suppress(OSError):
        return os.readlink(os.fsencode(place))
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def object_id(data: bytes, algorithm: str) -> str:
    """The id that git gives a blob of these bytes."""
    digest = hashlib.new(algorithm, b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def digest_of(found: Scan) -> str:
    """One short name for the state that tests can see: tracked files, and untracked ones under source and tests."""
    roots = source_folders(found.tracked)
    total = hashlib.sha256()
    for path, entry in sorted(found.files.items()):
        if path in found.tracked or is_under_source(path, roots):
            total.update(b"%s %s %s\0" % (entry.mode.encode(), (entry.sha or "?").encode(), path))
    return total.hexdigest()[:16]


def source_folders(tracked: Iterable[bytes]) -> set[bytes]:
    """The top folders that hold tracked files."""
    return {path.split(b"/", 1)[0] for path in tracked if b"/" in path}


def is_under_source(path: bytes, roots: set[bytes]) -> bool:
    """Tests can see this file: it lies under source or tests, or is code."""
    top = path.split(b"/", 1)[0]
    return (top in roots and b"/" in path) or path.endswith(_CODE)


def _own_folders(checkout: Path) -> tuple[bytes, ...]:
    found = [os.fsencode(SKILL / "logs") + b"/"]
    with suppress(ValueError):
        found.append(os.fsencode(logs_folder(checkout).relative_to(checkout)) + b"/")
    return tuple(found)


def _is_the_users(path: bytes, own: tuple[bytes, ...]) -> bool:
    if path.endswith(b"/") or path.startswith((*_OF_THE_CLIENT, *own)) or os.path.basename(path).startswith(TEMPORARY):
        return False
    return not _MADE_BY_TOOLS & set(path.split(b"/")) and not path.endswith((b".pyc", b".pyo"))


class _Links:
    """Which folders of the checkout are links; each is looked at once."""

    def __init__(self, checkout: Path) -> None:
        self._root = os.fsencode(checkout)
        self._known: dict[bytes, bool] = {b"": False}

    def hide(self, path: bytes) -> bool:
        """The path lies behind a link, so it is not the checkout's."""
        folder = os.path.dirname(path)
        if folder not in self._known:
            self._known[folder] = self.hide(folder) or os.path.islink(self._root + b"/" + folder)
        return self._known[folder]
