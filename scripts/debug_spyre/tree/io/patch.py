"""The difference between two states of the working files as a patch that git can apply, proved before it is used.

Objects are made in a temporary folder; the repository and its index stay as they are.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.host.git import git, objects_of
from debug_spyre.tree.io.scan import Entry, object_id, read_bytes
from debug_spyre.vocabulary.errors import EnvironmentTroubleError

States = Mapping[bytes, Entry]


class BlobStore:
    """A folder of git objects of our own, which also sees the repository's."""

    def __init__(self, place: Path, checkout: Path, *, behind: tuple[Path, ...] = ()) -> None:
        self.place = place
        self._checkout = checkout
        make_folder(place / "info")
        alternates = [*behind, objects_of(checkout)]
        write_atomically(place / "info/alternates", b"".join(_quoted(p) + b"\n" for p in alternates))

    def keep(self, data: bytes, *, algorithm: str) -> str:
        """Store a blob; returns its id."""
        name = object_id(data, algorithm)
        target = self.place / name[:2] / name[2:]
        if not target.exists():
            make_folder(target.parent)
            write_atomically(target, zlib.compress(b"blob %d\0" % len(data) + data, 1), mode=0o600)
        return name

    def read(self, name: str) -> bytes:
        """A blob's bytes, from here or from the repository.

        Raises:
            GitFailedError: neither has it.
        """
        return self.git("cat-file", "blob", name)

    def git(self, *words: str, stdin: bytes | None = None, index: Path | None = None) -> bytes:
        """A git command that writes its objects here."""
        env = {"GIT_OBJECT_DIRECTORY": str(self.place)}
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        return git(self._checkout, *words, stdin=stdin, env=env)


@contextmanager
def scratch_store(checkout: Path, *, behind: tuple[Path, ...]) -> Iterator[BlobStore]:
    """A store that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="debug-spyre-tree-") as folder:
        yield BlobStore(Path(folder) / "objects", checkout, behind=behind)


def make_patch(checkout: Path, before: States, after: States, *, kept: Path, algorithm: str) -> bytes:
    """The patch from `before` to `after` (the files that differ, nothing else), as bytes that git applies.

    `after` is what lies in the checkout now; `kept` holds the blobs of `before`.

    Raises:
        EnvironmentTroubleError: a file changed meanwhile, or the patch does not lead from one state to the other.
    """
    with scratch_store(checkout, behind=(kept,)) as store:
        for path, entry in after.items():
            if store.keep(read_bytes(os.fsencode(checkout) + b"/" + path), algorithm=algorithm) != entry.sha:
                raise _unsteady(path)
        start, now = (_tree(store, states) for states in (before, after))
        patch = store.git(
            "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
            "--no-color", "--src-prefix=a/", "--dst-prefix=b/", start, now,
        )  # fmt: skip
        if patch and _applied(store, start, patch) != now:
            raise EnvironmentTroubleError(
                f"the patch of {len(after)} files does not lead back to them; nothing was changed",
                next=f"keep a copy of {checkout}, then debug-spyre revert --dry-run",
            )
        return patch


def _tree(store: BlobStore, states: States) -> str:
    index = store.place / "tree.index"
    index.unlink(missing_ok=True)
    lines = b"".join(b"%s %s\t%s\0" % (e.mode.encode(), str(e.sha).encode(), path) for path, e in states.items())
    store.git("update-index", "-z", "--index-info", stdin=lines, index=index)
    return store.git("write-tree", "--missing-ok", index=index).decode().strip()


def _applied(store: BlobStore, start: str, patch: bytes) -> str:
    index = store.place / "applied.index"
    index.unlink(missing_ok=True)
    store.git("read-tree", start, index=index)
    store.git("apply", "--cached", "--whitespace=nowarn", "-p1", "-", stdin=patch, index=index)
    return store.git("write-tree", "--missing-ok", index=index).decode().strip()


def _unsteady(path: bytes) -> EnvironmentTroubleError:
    name = os.fsdecode(path)
    return EnvironmentTroubleError(
        f"{name!r} changed while it was read; nothing was changed by us",
        next="end what writes there, then debug-spyre revert",
    )


def _quoted(place: Path) -> bytes:
    raw = os.fsencode(place)
    if b"\n" not in raw and not raw.startswith((b'"', b"#")):
        return raw
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
