"""The lock of the cards: one file a card in a place that all users and checkouts of the host share.

The kernel's lock alone decides; what stands in the file is for people. Never broken by age: a dead holder's lock is
free by itself, and a child that still owns the card holds it through the inherited descriptor.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.core.errors import CardBusyError, EnvironmentTroubleError
from debug_spyre.edge import card
from debug_spyre.edge.clock import utc_now
from debug_spyre.edge.processes import ancestors, is_same, read_process, user_name

PLACES = ("/run/lock", "/tmp", "/dev/shm")  # noqa: S108  shared by all users of the host: that is what it is for
POLL_SECONDS = 0.2
INHERITED = "DEBUG_SPYRE_LOCK_FDS"  # "fd:device:inode,..." in the environment of what runs under the lock
_OURS = "debug-spyre"
_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote itself into the lock file."""

    pid: int
    start: int
    user: str
    cwd: str
    command: str
    session: str | None
    since: str
    run: str | None = None

    def says(self) -> str:
        """For people, in one line."""
        where = f", session {self.session}" if self.session else ""
        return f"{self.user}, pid {self.pid}, since {self.since}, in {self.cwd}: {self.command}{where}"

    def to_json(self) -> dict[str, Any]:
        """The form of contracts.md, plus start time and run."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Claim:
    """What the taker of a lock says of itself."""

    command: str = ""
    cwd: str = ""
    session: str | None = None
    run: str | None = None


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
                _write_holder(descriptor, None)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        self.descriptors = ()


def lock_folder() -> Path:
    """The place of the lock files: the same answer for every user of the host, whatever each may write.

    Raises:
        EnvironmentTroubleError: there is none.
    """
    override = os.environ.get("DEBUG_SPYRE_LOCK_DIR")
    if override:
        return _own_place(Path(override))
    for place in PLACES:
        with suppress(OSError):
            found = os.stat(place)
            if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX and found.st_mode & stat.S_IWOTH:
                return Path(place)
    raise EnvironmentTroubleError(
        f"no place for the card's lock: none of {', '.join(PLACES)} is a folder that all users share",
        next="DEBUG_SPYRE_LOCK_DIR=/a/folder/that/all/users/share debug-spyre ...",
    )


def lock_path(device: str | None) -> Path:
    """The lock file of a card; without a visible card all share one."""
    if device is None:
        name = "none"
    else:
        real = os.path.realpath(device)
        readable = re.sub(r"[^A-Za-z0-9]+", "-", real).strip("-")[-40:]
        name = (
            readable if real.startswith("/dev/vfio/") else f"{readable}-{hashlib.sha256(real.encode()).hexdigest()[:8]}"
        )
    return lock_folder() / f"{_OURS}-{name}.lock"


def acquire(
    cards: Sequence[str],
    *,
    wait: float | None = None,
    claim: Claim | None = None,
    blocked: Callable[[str], None] = lambda _holder: None,
) -> Held:
    """Take the locks of all these cards, in sorted order. `wait`: None for ever, 0 not at all, else seconds.

    `blocked` is called with the holder's words each time the lock is found taken; it may raise to give up.

    Raises:
        CardBusyError: somebody holds one after that time; EnvironmentTroubleError: no lock file can be had.
    """
    paths = [lock_path(device) for device in sorted(cards)] or [lock_path(None)]
    inherited = _inherited(paths)
    if inherited is not None:
        return inherited
    deadline = None if wait is None else time.monotonic() + max(wait, 0.15)
    taken: list[int] = []
    try:
        for path in paths:
            taken.append(_take(path, deadline, wait, blocked))  # noqa: PERF401  those taken are let go on a failure
        for descriptor in taken:
            _write_holder(descriptor, _self(claim or Claim()))
    except BaseException:
        for descriptor in taken:
            os.close(descriptor)
        raise
    return Held(taken, paths)


@contextmanager
def card_lock(cards: Sequence[str] | None = None, *, wait: float | None = None, command: str = "") -> Iterator[Held]:
    """The lock as a context: taken, then let go."""
    held = acquire(card.devices() if cards is None else cards, wait=wait, claim=Claim(command))
    try:
        yield held
    finally:
        held.release()


def is_held(path: Path) -> bool | None:
    """Somebody holds this lock now; None where the file can't be looked at. Looking takes no lock away."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def read_holder(path: Path) -> Holder | None:
    """Who stands in the lock file; None where nobody does or the file is not ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _parse(os.pread(descriptor, _LIMIT, 0))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _own_place(folder: Path) -> Path:
    try:
        os.mkdir(folder, 0o1777)
        os.chmod(folder, 0o1777)  # noqa: S103  mkdir's mode went through the umask
    except FileExistsError:
        pass
    except OSError as error:
        raise EnvironmentTroubleError(
            f"no place for the card's lock: {folder} can't be made: {error.strerror}",
            next="DEBUG_SPYRE_LOCK_DIR=/a/folder/that/all/users/share debug-spyre ...",
        ) from error
    return folder


def _take(path: Path, deadline: float | None, wait: float | None, blocked: Callable[[str], None]) -> int:
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(descriptor, path):
                return descriptor
            os.close(descriptor)
            continue  # somebody removed the file while we waited: the new one counts
        except BlockingIOError:
            os.close(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        holder = read_holder(path)
        words = holder.says() if holder else "somebody who left no name"
        if deadline is not None and time.monotonic() >= deadline:
            waited = f" after {wait:g} s" if wait else ""
            raise CardBusyError(
                f"the card is busy{waited}: held by {words}",
                details=(f"  lock: {path}",),
                next="repeat the command with --wait 600, or look: debug-spyre lock",
            )
        blocked(words)
        time.sleep(POLL_SECONDS if wait is None or wait > 1 else 0.05)


def _open(path: Path) -> int:
    """Without O_CREAT first: a sticky folder forbids it on another user's file (fs.protected_regular)."""
    plain = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    for _ in range(20):
        try:
            return _regular(os.open(path, os.O_RDWR | plain), path)
        except FileNotFoundError:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | plain, 0o666)
            except FileExistsError:
                continue
            except OSError as error:
                raise _no_lock(path, error) from error
            os.fchmod(descriptor, 0o666)
            return descriptor
        except PermissionError:
            try:  # flock needs no write permission: the lock still works, only our name can't be written
                return _regular(os.open(path, os.O_RDONLY | plain), path)
            except OSError as error:
                raise _no_lock(path, error) from error
        except OSError as error:
            if error.errno == errno.EROFS:
                return _regular(os.open(path, os.O_RDONLY | plain), path)
            raise _no_lock(path, error) from error
    raise _no_lock(path, OSError(errno.EAGAIN, "it comes and goes"))


def _regular(descriptor: int, path: Path) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise _no_lock(path, OSError(errno.EINVAL, "not a plain file"))


def _no_lock(path: Path, error: OSError) -> EnvironmentTroubleError:
    what = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
    try:
        owner = f" (it belongs to {user_name(os.lstat(path).st_uid)})"
    except OSError:
        owner = ""
    return EnvironmentTroubleError(
        f"the card's lock {path} can't be used: {what}{owner}",
        next=f"remove it if nobody needs it (ls -l {path}), or set DEBUG_SPYRE_LOCK_DIR for everybody on this host",
    )


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        now = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)


def _self(claim: Claim) -> Holder:
    me = read_process(os.getpid())
    return Holder(
        pid=os.getpid(),
        start=me.start if me else 0,
        user=user_name(os.getuid()),
        cwd=claim.cwd or os.getcwd(),
        command=claim.command or (me.command if me else ""),
        session=claim.session,
        since=utc_now(),
        run=claim.run,
    )


def _write_holder(descriptor: int, holder: Holder | None) -> None:
    """Only into an empty file or over our own words: what somebody else keeps there stays."""
    with suppress(OSError):
        found = os.fstat(descriptor)
        if found.st_nlink != 1 or (found.st_size and not _is_ours(os.pread(descriptor, _LIMIT, 0))):
            return
        text = json.dumps({"tool": _OURS, **holder.to_json()}) + "\n" if holder else ""
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode("utf-8", "replace"), 0)


def _is_ours(data: bytes) -> bool:
    return data.startswith(b'{"tool": "debug-spyre"')


def _parse(data: bytes) -> Holder | None:
    if not _is_ours(data):
        return None
    try:
        found = json.loads(data)
        return Holder(**{name: found.get(name) for name in Holder.__slots__})
    except (ValueError, TypeError):
        return None


def inherited_descriptors() -> tuple[int, ...]:
    """The lock's descriptors that this process has from the call it runs under: to be passed on."""
    found = []
    for mark in filter(None, os.environ.get(INHERITED, "").split(",")):
        number, device, inode = mark.split(":")
        with suppress(OSError, ValueError):
            mine = os.fstat(int(number))
            if (str(mine.st_dev), str(mine.st_ino)) == (device, inode):
                found.append(int(number))
    return tuple(found)


def _inherited(paths: Sequence[Path]) -> Held | None:
    """The lock is held for us by the call that we run under: by its descriptors, or by an ancestor that holds it."""
    if not os.environ.get(INHERITED):
        return None
    marks = {tuple(mark.split(":")[1:]): mark.split(":")[0] for mark in os.environ[INHERITED].split(",")}
    descriptors = []
    for path in paths:
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            return None
        mark = marks.get((str(found.st_dev), str(found.st_ino)))
        if mark is None:
            return None
        if _has_descriptor(int(mark), found):
            descriptors.append(int(mark))
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
