"""Putting the checkout's files back to the snapshot: the patch first, then file by file, resumable after a kill.

A half-way operation of git or a moved HEAD refuses before anything is touched.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.files import write_atomically
from debug_spyre.host.git import git, half_way, head_of, index_entries
from debug_spyre.tree.changes import mask_patch
from debug_spyre.tree.io.patch import BlobStore
from debug_spyre.tree.io.scan import EXECUTABLE, LINK, TEMPORARY, Entry, digest_of, read_bytes, scan
from debug_spyre.tree.io.snapshot import START, Change, Start, changes_since, load_start, patch_of, printable
from debug_spyre.tree.io.test_code import split
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, RefusedError
from debug_spyre.vocabulary.masking import secret_values

PENDING = "revert-pending.json"


@dataclass(frozen=True, slots=True)
class Reverted:
    """What was put back (or would be, `dry`), what was left as it is and why, and the digests before and after."""

    changes: tuple[Change, ...]
    left: tuple[tuple[Change, str], ...]
    patch: Path | None
    patched: str
    digest: str
    masked: tuple[str, ...] = ()  # files whose secrets the patch does not hold: it does not lead back to the same bytes
    dry: bool = False
    resumed: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths, printable."""
        return tuple(printable(c.name) for c in self.changes)


def revert(
    checkout: Path,
    tree: dict[str, Any],
    folder: Path,
    *,
    dry_run: bool = False,
    head_moved: bool = False,
    keep: Collection[str] = (),
) -> Reverted:
    """Put the session's own changes back to what was at `open`; the patch is saved in `folder` before the first is touched.

    Files that a person or another program made, and those in `keep`, are left as they are. Call `finish` once the revert is in the journal.

    Raises:
        RefusedError: git is half-way through an operation, or HEAD is another commit than at `open`.
        EnvironmentTroubleError: a file can't be written; a repeated call goes on from there.
    """
    start = load_start(tree, folder)
    with _one_at_a_time(start):
        _refuse_half_way(checkout, start, head_moved=head_moved)
        parts = split(checkout, start, changes_since(checkout, start), keep=[os.fsencode(name) for name in keep])
        changes, before = parts.own, digest_of(scan(checkout, algorithm=start.algorithm))
        if dry_run:
            return Reverted(changes, parts.left, None, before, before, dry=True)
        pending = _pending(folder, changes)
        if pending is None:
            patch = mask_patch(patch_of(checkout, start, changes), values=secret_values(os.environ))
            _keep_whole(checkout, start, changes, patch.masked)
            pending = _remember(folder, changes, save_patch(folder, patch.text), before, patch.masked)
        _put_back(checkout, start, changes, index=head_of(checkout) == start.head)
        after = digest_of(scan(checkout, algorithm=start.algorithm))
        _check(checkout, start, after, expected=tree.get("digest"), head_moved=head_moved, left=parts.left)
        everything = tuple(_from_json(item) for item in pending["changes"])
        patch_path = folder / pending["patch"] if pending["patch"] else None
        return Reverted(
            everything, parts.left, patch_path, pending["patched"], after, masked=tuple(pending.get("masked", ())),
            resumed=len(changes) < len(everything),
        )  # fmt: skip


def _keep_whole(checkout: Path, start: Start, changes: tuple[Change, ...], names: tuple[str, ...]) -> None:
    """Files whose secrets the patch does not hold are kept whole among the snapshot's objects, which nobody hands over."""
    store = BlobStore(start.objects, checkout)
    for change in changes:
        if change.name in names and change.after is not None:
            store.keep(read_bytes(os.fsencode(checkout) + b"/" + change.path), algorithm=start.algorithm)


def finish(folder: Path) -> None:
    """The revert is in the journal: forget that it was under way."""
    (folder / PENDING).unlink(missing_ok=True)


def _refuse_half_way(checkout: Path, start: Start, *, head_moved: bool) -> None:
    state = half_way(checkout)
    if state is not None and state != start.half_way:
        raise RefusedError(
            f"git is in the middle of {state}; nothing was changed",
            next="end or abort it in git, then debug-spyre revert",
        )
    head = head_of(checkout)
    if head != start.head and not head_moved:
        was, now = (str(name or "no commit")[:10] for name in (start.head, head))
        raise RefusedError(
            f"HEAD was {was} at open and is {now} now; putting the files back would write over that; nothing was changed",
            next=f"debug-spyre revert --head-moved puts the files back all the same; a person may rather switch back to {was}",
        )


def _pending(folder: Path, changes: tuple[Change, ...]) -> dict[str, Any] | None:
    """The record of a revert that was killed, if what is left to do belongs to it."""
    try:
        data: dict[str, Any] = json.loads((folder / PENDING).read_text(encoding="utf-8"))
        known = {change.path: change for change in map(_from_json, data["changes"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if any(known.get(change.path) != change for change in changes):
        return None
    return data


def _remember(
    folder: Path, changes: tuple[Change, ...], patch: Path | None, before: str, masked: tuple[str, ...]
) -> dict[str, Any]:
    data = {
        "masked": list(masked),
        "patch": patch.name if patch else None,
        "patched": before,
        "changes": [_to_json(change) for change in changes],
    }
    write_atomically(folder / PENDING, json.dumps(data), mode=0o600)
    return data


def _to_json(change: Change) -> list[Any]:
    def entry(found: Entry | None) -> list[Any] | None:
        return None if found is None else [found.mode, found.sha, found.size]

    return [change.name, entry(change.before), entry(change.after)]


def _from_json(item: list[Any]) -> Change:
    name, before, after = item
    return Change(os.fsencode(name), Entry(*before) if before else None, Entry(*after) if after else None)


def save_patch(folder: Path, patch: bytes) -> Path | None:
    """Keep a patch in the session's folder under a free name; None where it is empty."""
    if not patch:
        return None
    number = 1
    while (target := folder / (f"fix-{number}.patch" if number > 1 else "fix.patch")).exists():
        if target.read_bytes() == patch:
            return target
        number += 1
    write_atomically(target, patch, mode=0o600)
    return target


def _put_back(checkout: Path, start: Start, changes: tuple[Change, ...], *, index: bool) -> None:
    store = BlobStore(start.objects, checkout)
    contents = {c.path: store.read(c.before.sha) for c in changes if c.before and c.before.sha}
    for change in (c for c in changes if c.before is None):
        _remove(checkout, change.path)
    _sweep({os.path.dirname(os.fsencode(checkout) + b"/" + path) for path in contents})
    for change in changes:
        if change.before is not None:
            _write(checkout, change.path, change.before, contents[change.path])
    if index:
        _put_index_back(checkout, start, changes)


def _remove(checkout: Path, path: bytes) -> None:
    root = os.fsencode(checkout)
    place = root + b"/" + path
    try:
        os.unlink(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot(path, error) from error
    folder = os.path.dirname(place)
    while folder != root:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _sweep(folders: set[bytes]) -> None:
    """Take away what reverts of processes that are gone left half written."""
    for folder in folders:
        with suppress(OSError):
            for name in os.listdir(folder):
                pid = name.removeprefix(TEMPORARY).split(b"-", 1)[0]
                if name.startswith(TEMPORARY) and pid.isdigit() and not os.path.exists(b"/proc/" + pid):
                    os.unlink(folder + b"/" + name)


def _write(checkout: Path, path: bytes, entry: Entry, data: bytes) -> None:
    place = os.fsencode(checkout) + b"/" + path
    folder = os.path.dirname(place)
    temporary = None
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=b"%s%d-" % (TEMPORARY, os.getpid()), dir=folder)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data if entry.mode != LINK else b"")
            os.fchmod(stream.fileno(), _permissions(place, executable=entry.mode == EXECUTABLE))
        if entry.mode == LINK:
            os.unlink(temporary)
            os.symlink(data, temporary)
        if os.path.isdir(place) and not os.path.islink(place):
            os.rmdir(place)
        os.replace(temporary, place)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        raise _cannot(path, error) from error


def _permissions(place: bytes, *, executable: bool) -> int:
    mask = os.umask(0)
    os.umask(mask)
    mode = 0o666 & ~mask
    with suppress(OSError):
        info = os.lstat(place)
        if stat.S_ISREG(info.st_mode):
            mode = stat.S_IMODE(info.st_mode) & 0o666
    return mode | ((mode & 0o444) >> 2) if executable else mode


def _put_index_back(checkout: Path, start: Start, changes: tuple[Change, ...]) -> None:
    """The index entries of the files that were put back, as they were at `open`; no other entry is touched."""
    now, lines = index_entries(checkout), []
    for change in changes:
        was, is_now = start.index.get(change.path), now.get(change.path)
        if was == is_now:
            continue
        mode, name = was or ("0", "0" * (64 if start.algorithm == "sha256" else 40))
        lines.append(b"%s %s\t%s\0" % (mode.encode(), name.encode(), change.path))
    if lines:
        git(checkout, "update-index", "-z", "--index-info", stdin=b"".join(lines))


def _check(
    checkout: Path,
    start: Start,
    after: str,
    *,
    expected: str | None,
    head_moved: bool,
    left: Sequence[tuple[Change, str]],
) -> None:
    others = {change.path for change, _ in left}
    differing = [change for change in changes_since(checkout, start) if change.path not in others]
    if not differing and (after == expected or head_moved or others):
        return
    named = (
        f"{len(differing)} files still differ, {differing[0].name!r} first"
        if differing
        else f"digest {after}, not {expected}"
    )
    raise EnvironmentTroubleError(
        f"the tree is not yet as it was at open: {named}; the patch is saved",
        next="end what writes there, then debug-spyre revert",
    )


def _cannot(path: bytes, error: OSError) -> EnvironmentTroubleError:
    return EnvironmentTroubleError(
        f"cannot put back {os.fsdecode(path)!r}: {error.strerror or error}; the patch is saved, the rest is as it was",
        next="make it writable, then debug-spyre revert goes on from there",
    )


@contextmanager
def _one_at_a_time(start: Start) -> Iterator[None]:
    with (start.place / START).open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RefusedError(
                "another revert of this session is under way", next="wait for it, then debug-spyre revert"
            ) from error
        yield
