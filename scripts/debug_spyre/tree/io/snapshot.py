"""The state of the checkout's files: a digest, a kept snapshot at `open`, the patch since, and the way back to it.

The way back leads to the snapshot, the user's own uncommitted work included, never to HEAD. Everything that is
overwritten or removed lies in the saved patch first. The user's index and HEAD are read; only the index entries of
files that are put back are put back too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.host.git import GitFailedError, branch_of, git, half_way, head_of, index_entries, lines_of
from debug_spyre.tree.io.patch import BlobStore, make_patch
from debug_spyre.tree.io.scan import Entry, digest_of, object_format, read_bytes, scan
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

STORE = "tree"
START = "start.json"
SHOWN_PATHS = 50


@dataclass(frozen=True, slots=True)
class Change:
    """One file that is not as it was at `open`."""

    path: bytes
    before: Entry | None
    after: Entry | None

    @property
    def name(self) -> str:
        """The path as text."""
        return os.fsdecode(self.path)

    @property
    def what(self) -> str:
        """edited, created or deleted."""
        if self.before is None:
            return "created"
        return "edited" if self.after is not None else "deleted"


@dataclass(frozen=True, slots=True)
class Start:
    """The kept snapshot: files and index as they were at `open`."""

    place: Path
    algorithm: str
    head: str | None
    half_way: str | None
    files: dict[bytes, Entry]
    index: dict[bytes, tuple[str, str]]
    skipped: tuple[bytes, ...]

    @property
    def objects(self) -> Path:
        """Where the bytes lie that the repository does not have."""
        return self.place / "objects"


def tree_digest(checkout: Path) -> str | None:
    """The state that tests can see, as one short name; None where git can't answer."""
    try:
        return digest_of(scan(checkout))
    except GitFailedError:
        return None


def snapshot(checkout: Path, into: Path) -> dict[str, Any]:
    """Keep the checkout as it is now in `into`/tree; returns what `session_opened` records of it.

    Without a working git there is no snapshot: the digest is None and `trouble` says why.
    """
    try:
        return _snapshot(checkout, into / STORE)
    except GitFailedError as error:
        return {"digest": None, "trouble": error.what}


def _snapshot(checkout: Path, place: Path) -> dict[str, Any]:
    make_folder(place)
    algorithm = object_format(checkout)
    found = scan(checkout, algorithm=algorithm)
    index, head = index_entries(checkout), head_of(checkout)
    committed = _committed(checkout, head)
    store = BlobStore(place / "objects", checkout)
    for path, entry in found.files.items():
        if entry.sha is not None and committed.get(path) != entry.sha:
            store.keep(read_bytes(os.fsencode(checkout) + b"/" + path), algorithm=algorithm)
    state = half_way(checkout)
    kept = {
        "schema": 1,
        "algorithm": algorithm,
        "head": head,
        "half_way": state,
        "files": {os.fsdecode(p): [e.mode, e.sha, e.size] for p, e in found.files.items()},
        "index": {os.fsdecode(p): list(e) for p, e in index.items()},
        "skipped": [os.fsdecode(p) for p in found.skipped],
    }
    write_atomically(place / START, json.dumps(kept), mode=0o600)
    dirty = sorted(os.fsdecode(p) for p, e in found.files.items() if committed.get(p) != e.sha)
    dirty += sorted(os.fsdecode(p) for p in found.tracked - found.files.keys())
    return {
        "head": head,
        "branch": branch_of(checkout),
        "digest": digest_of(found),
        "store": str(place),
        "files": len(found.files),
        "dirty": [printable(name) for name in dirty[:SHOWN_PATHS]],
        "dirty_count": len(dirty),
        "skipped": [printable(os.fsdecode(p)) for p in found.skipped[:SHOWN_PATHS]],
        "half_way": state,
    }


def _committed(checkout: Path, head: str | None) -> dict[bytes, str]:
    if head is None:
        return {}
    entries = (entry.split(b"\t", 1) for entry in lines_of(git(checkout, "ls-tree", "-r", "-z", head)))
    return {path: about.split(b" ")[2].decode() for about, path in entries}


def load_start(tree: Mapping[str, Any], folder: Path | None = None) -> Start:
    """The snapshot that `open` kept.

    Raises:
        BadInputError: there is none, or it can't be read.
    """
    place = folder / STORE if folder is not None else None
    if place is None or not (place / START).exists():  # a carved-out session shares its origin's snapshot
        place = Path(tree.get("store") or place or "/nonexistent")
    try:
        data = json.loads((place / START).read_text(encoding="utf-8"))
        return Start(
            place=place,
            algorithm=data["algorithm"],
            head=data["head"],
            half_way=data.get("half_way"),
            files={os.fsencode(p): Entry(*values) for p, values in data["files"].items()},
            index={os.fsencode(p): (mode, name) for p, (mode, name) in data["index"].items()},
            skipped=tuple(os.fsencode(p) for p in data.get("skipped", ())),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = tree.get("trouble") or f"{place / START}: {getattr(error, 'strerror', None) or error!r}"
        raise BadInputError(
            f"there is no snapshot of the tree to compare with or go back to: {why}",
            next="look at git diff and undo the experiment by hand",
        ) from error


def changes_since(checkout: Path, start: Start) -> tuple[Change, ...]:
    """Files that differ from the snapshot now, in order of their names.

    A file that the rules of `open` ignore is no change, even where an edited .gitignore no longer ignores it.
    """
    now = scan(checkout, also=start.files, algorithm=start.algorithm)
    skipped = set(start.skipped) | set(now.skipped)
    paths = sorted((now.files.keys() | start.files.keys()) - skipped)
    changes = [
        Change(path, start.files.get(path), now.files.get(path))
        for path in paths
        if start.files.get(path) != now.files.get(path)
    ]
    hidden = _ignored_at_open(checkout, start, changes)
    return tuple(c for c in changes if c.path not in hidden)


def edited_files(checkout: Path, tree: Mapping[str, Any], folder: Path | None = None) -> tuple[Change, ...]:
    """The files that the session changed so far.

    Raises:
        BadInputError: there is no snapshot; EnvironmentTroubleError: git can't answer.
    """
    return changes_since(checkout, load_start(tree, folder))


def patch_of(checkout: Path, start: Start, changes: tuple[Change, ...]) -> bytes:
    """The patch that these changes are."""
    unreadable = [c.name for c in changes if (c.after and c.after.sha is None) or (c.before and c.before.sha is None)]
    if unreadable:
        raise EnvironmentTroubleError(
            f"{len(unreadable)} changed files can't be read: {unreadable[0]!r}",
            next="make them readable, then debug-spyre revert",
        )
    before = {c.path: c.before for c in changes if c.before}
    after = {c.path: c.after for c in changes if c.after}
    if not before and not after:
        return b""
    return make_patch(checkout, before, after, kept=start.objects, algorithm=start.algorithm)


def _ignored_at_open(checkout: Path, start: Start, changes: list[Change]) -> set[bytes]:
    """Created paths that the .gitignore files of the snapshot ignore: asked in a folder that holds only those."""
    created = [c.path for c in changes if c.before is None]
    if not created or not any(os.path.basename(c.path) == b".gitignore" for c in changes):
        return set()
    import tempfile

    store = BlobStore(start.objects, checkout)
    with tempfile.TemporaryDirectory(prefix="debug-spyre-ignore-") as folder:
        for path, entry in start.files.items():
            if os.path.basename(path) == b".gitignore" and entry.sha:
                place = Path(folder) / os.fsdecode(path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(store.read(entry.sha))
        answer = git(
            checkout, "check-ignore", "--no-index", "-z", "--stdin",
            stdin=b"".join(path + b"\0" for path in created), env={"GIT_WORK_TREE": folder}, allowed=(0, 1),
        )  # fmt: skip
    return set(lines_of(answer))


def printable(name: str) -> str:
    """A file name that any terminal and any JSON can bear."""
    return name.encode("utf-8", "backslashreplace").decode()
