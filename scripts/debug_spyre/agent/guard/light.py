"""Paths, files and JSON by the interpreter's own calls: importing os and json would double the guard's start-up, measured."""

from __future__ import annotations

import posix
from _json import encode_basestring_ascii, make_encoder, make_scanner

DIRECTORY, FILE, LINK = 0o040000, 0o100000, 0o120000


def variable(name: str) -> str:
    """An environment variable, empty where it is not set."""
    return posix.environ.get(name.encode(), b"").decode("utf-8", "surrogateescape")


def kind(path: str, *, follow: bool = True) -> int:
    """DIRECTORY, FILE, LINK or another kind; 0 where nothing is there."""
    try:
        return (posix.stat(path) if follow else posix.lstat(path)).st_mode & 0o170000
    except (OSError, ValueError):
        return 0


def join(folder: str, *parts: str) -> str:
    """The parts below the folder; one that begins at the root stands for itself, `~` for the home folder."""
    for part in parts:
        if part == "~" or part.startswith("~/"):
            part = variable("HOME") + part[1:]
        folder = part if part.startswith("/") or not folder else f"{folder.rstrip('/')}/{part}"
    return folder


def parent(path: str) -> str:
    """The folder that it lies in."""
    return path.rstrip("/").rpartition("/")[0] or "/"


def name(path: str) -> str:
    """The last part of it."""
    return path.rpartition("/")[2]


def real(path: str) -> str:
    """The absolute path without links and dots; parts that do not exist stay as they are."""
    todo = join(posix.getcwd(), path).split("/")[::-1]
    found, links = "", 0
    while todo:
        part = todo.pop()
        if part == "..":
            found = found.rpartition("/")[0]
        elif part not in ("", "."):
            here = f"{found}/{part}"
            if links < 40 and kind(here, follow=False) == LINK:
                links += 1
                target = posix.readlink(here)
                found = "" if target.startswith("/") else found
                todo += target.split("/")[::-1]
            else:
                found = here
    return found or "/"


def listed(folder: str) -> list[str]:
    """The names in a folder; none where it can't be read."""
    try:
        return sorted(posix.listdir(folder)) if folder else []
    except OSError:
        return []


def tail_of(path: str, size: int = 400_000) -> bytes:
    """The last part of a file, empty where it can't be read."""
    try:
        with open(path, "rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - size))
            return stream.read()
    except OSError:
        return b""


class _Strict:
    """How the C scanner of JSON reads."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def parse_json(text: str) -> object:
    """The value in the text. Raises ValueError: it is no JSON."""
    text = text.strip(" \t\r\n")  # what JSON calls white space
    try:
        value, end = make_scanner(_Strict)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError):  # nothing there; 3.9 to 3.12 look for a module that is not loaded
        end = -1
    if end != len(text):
        raise ValueError(f"no JSON: {text[:80]}")
    return value


def to_json(value: object) -> str:
    """What the hooks answer, texts escaped to ASCII."""
    encoder = make_encoder(None, str, encode_basestring_ascii, None, ": ", ", ", False, False, True)
    return "".join(encoder(value, 0))
