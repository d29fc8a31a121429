"""The lock of the cards: one file a card in a place that all users and checkouts of the host share.

The kernel's lock alone decides; what stands in the file is for people. Never broken by age: a dead holder's lock is
free by itself, and a child that still owns the card holds it through the inherited descriptor.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from debug_spyre.card import holders
from debug_spyre.card.lock_file import (
    Holder,
    HolderInfo,
    holder_of,
    is_held,
    is_still,
    lock_path,
    open_file,
    read_holder,
    write_holder,
)
from debug_spyre.host.processes import ancestors, is_same
from debug_spyre.vocabulary.errors import CardBusyError

__all__ = [
    "Held",
    "Holder",
    "HolderInfo",
    "acquire",
    "card_lock",
    "inherited_descriptors",
    "is_held",
    "lock_path",
    "lock_paths",
    "read_holder",
]
POLL_SECONDS = 0.2
INHERITED = "DEBUG_SPYRE_LOCK_FDS"  # "fd:device:inode,..." in the environment of what runs under the lock


class Held:
    """The locks of some cards while they are held; `descriptors` go to the child."""

    def __init__(self, descriptors: Sequence[int], paths: Sequence[Path], *, nested: bool = False) -> None:
        self.descriptors = tuple(descriptors)
        self.paths = tuple(paths)
        self.nested = nested

    def environment(self) -> dict[str, str]:
        """What tells a nested call that the lock is held for it."""
        if self.nested:
            return {}
        marks = []
        for descriptor in self.descriptors:
            found = os.fstat(descriptor)
            marks.append(f"{descriptor}:{found.st_dev}:{found.st_ino}")
        return {INHERITED: ",".join(marks)}

    def release(self) -> None:
        """Let go, for all processes that have the descriptors: the card was seen free."""
        if self.nested:
            return
        for descriptor in self.descriptors:
            with suppress(OSError):
                write_holder(descriptor, None)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        self.descriptors = ()


def lock_paths(cards: Sequence[str]) -> list[Path]:
    """The lock files of these cards, sorted; without a visible card there is one common file."""
    return [lock_path(device) for device in sorted(cards)] or [lock_path(None)]


def acquire(
    cards: Sequence[str],
    *,
    wait: float | None = None,
    claim: HolderInfo | None = None,
    blocked: Callable[[str], None] = lambda _holder: None,
) -> Held:
    """Take the locks of all these cards, in sorted order. `wait`: None for ever, 0 not at all, else seconds.

    `blocked` is called with the holder's words each time the lock is found taken; it may raise to give up.

    Raises:
        CardBusyError: somebody holds one after that time; EnvironmentTroubleError: no lock file can be had.
    """
    paths = lock_paths(cards)
    inherited = _inherited(paths)
    if inherited is not None:
        return inherited
    deadline = None if wait is None else time.monotonic() + max(wait, 0.15)
    taken: list[int] = []
    try:
        for path in paths:
            taken.append(_take(path, deadline, wait, blocked))  # noqa: PERF401  those taken are let go on a failure
        for descriptor in taken:
            write_holder(descriptor, holder_of(claim or HolderInfo()))
    except BaseException:
        for descriptor in taken:
            os.close(descriptor)
        raise
    return Held(taken, paths)


@contextmanager
def card_lock(cards: Sequence[str] | None = None, *, wait: float | None = None, command: str = "") -> Iterator[Held]:
    """The lock as a context: taken, then let go."""
    held = acquire(holders.devices() if cards is None else cards, wait=wait, claim=HolderInfo(command))
    try:
        yield held
    finally:
        held.release()


def _take(path: Path, deadline: float | None, wait: float | None, blocked: Callable[[str], None]) -> int:
    while True:
        descriptor = open_file(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = is_still(descriptor, path)
            old = holders.holder_of_removed(path) if is_ours else None
            if is_ours and old is None:
                return descriptor
            os.close(descriptor)
            if old is None:
                continue  # somebody removed the file while we waited: the new one counts
        except BlockingIOError:
            os.close(descriptor)
            old = None
        except OSError:
            os.close(descriptor)
            raise
        holder = read_holder(path)
        words = holder.says() if holder else "unknown holder"
        if old is not None:
            words = f"{old.says()}, through a lock file that was removed or replaced while it was held"
        if deadline is not None and time.monotonic() >= deadline:
            waited = f" after {wait:g} s" if wait else ""
            raise CardBusyError(
                f"the card is busy{waited}: held by {words}",
                details=(f"  lock: {path}",),
                next="repeat the command with --wait 600, or look: debug-spyre lock",
            )
        blocked(words)
        time.sleep(POLL_SECONDS if wait is None or wait > 1 else 0.05)


def lock_of(cards: Sequence[str]) -> tuple[tuple[int, ...], dict[str, str]]:
    """For a process on some of the cards that we run under: the descriptors of their locks alone, and what tells it so."""
    descriptors, marks = [], []
    for path in lock_paths(cards):
        with suppress(OSError):
            found = os.stat(path, follow_symlinks=False)
            mark = _marks().get((str(found.st_dev), str(found.st_ino)))
            if mark is not None:
                descriptors.append(mark)
                marks.append(f"{mark}:{found.st_dev}:{found.st_ino}")
    return tuple(descriptors), {INHERITED: ",".join(marks)}


def inherited_descriptors() -> tuple[int, ...]:
    """Descriptors of the lock that this process inherited; pass them on to child processes."""
    found = []
    for (device, inode), number in _marks().items():
        with suppress(OSError):
            mine = os.fstat(number)
            if (str(mine.st_dev), str(mine.st_ino)) == (device, inode):
                found.append(number)
    return tuple(found)


def _marks() -> dict[tuple[str, str], int]:
    """(device, inode) -> descriptor, as the call that we run under left them; what is no mark is none."""
    found = {}
    for mark in os.environ.get(INHERITED, "").split(","):
        number, _, file = mark.partition(":")
        device, _, inode = file.partition(":")
        if number.isdecimal() and inode:
            found[device, inode] = int(number)
    return found


def _inherited(paths: Sequence[Path]) -> Held | None:
    """The lock is held for us by the call that we run under: by its descriptors, or by an ancestor that holds it."""
    marks = _marks()
    if not marks:
        return None
    descriptors = []
    for path in paths:
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            return None
        mark = marks.get((str(found.st_dev), str(found.st_ino)))
        if mark is None:
            return None
        if _has_descriptor(mark, found):
            descriptors.append(mark)
        elif not _is_held_above(path):
            return None
    return Held(descriptors, paths, nested=True)


def _has_descriptor(descriptor: int, found: os.stat_result) -> bool:
    """Our own descriptor is of that file and its lock is ours: locking again succeeds only then."""
    try:
        mine = os.fstat(descriptor)
        if (mine.st_dev, mine.st_ino) != (found.st_dev, found.st_ino):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_held_above(path: Path) -> bool:
    holder = read_holder(path)
    return (
        holder is not None
        and is_held(path) is True
        and is_same(holder.pid, holder.start)
        and holder.pid in ancestors(os.getpid())
    )
