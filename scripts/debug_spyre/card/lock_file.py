"""The lock file of a card: where it lies, how it is opened safely, and what it says of its holder (for people only)."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.clock import utc_now
from debug_spyre.host.processes import is_same, read_process, user_name
from debug_spyre.vocabulary.errors import EnvironmentTroubleError

PLACES = ("/run/lock", "/tmp", "/dev/shm")  # noqa: S108  shared by all users of the host: that is what it is for
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
        gone = "" if is_same(self.pid, self.start) else " (not alive here; what it started may hold it)"
        words = f"{self.user}, pid {self.pid}{gone}, since {self.since}, in {self.cwd}: {self.command}{where}"
        return "".join(c if c.isprintable() else " " for c in words)

    def to_json(self) -> dict[str, Any]:
        """The form of contracts.md, plus start time and run."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class HolderInfo:
    """What the taker of a lock says of itself."""

    command: str = ""
    cwd: str = ""
    session: str | None = None
    run: str | None = None


def lock_folder() -> Path:
    """The folder of the lock files: the same for every user of the host.

    Raises:
        EnvironmentTroubleError: no suitable folder exists.
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


def is_held(path: Path) -> bool | None:
    """Tell whether somebody holds this lock now; None if the file can't be read. Asking never takes the lock."""
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
    """The holder that the lock file names; None if it names nobody or the file is not ours."""
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


def open_file(path: Path) -> int:
    """Open it, made if it is missing. Without O_CREAT first: a sticky folder forbids it on another user's file (fs.protected_regular)."""
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
        details=(
            "  somebody put it where the lock was or is to be; who took the lock before that still holds the card through the old file",
        ),
        next=f"ask its owner (ls -ld {path}), who puts it right when no run is under way (debug-spyre lock); nobody else touches it",
    )


def is_still(descriptor: int, path: Path) -> bool:
    """Tell whether the path still leads to the file that was opened."""
    try:
        now = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)


def holder_of(claim: HolderInfo) -> Holder:
    """The text that the lock file contains while this process holds it."""
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


def write_holder(descriptor: int, holder: Holder | None) -> None:
    """Write the holder into the file if it is empty or contains our own text; other content stays."""
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
