"""Digests of files, cached over device, inode, size and times: a file is read once, until it changes."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from debug_spyre.host.files import PRIVATE, write_atomically

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
