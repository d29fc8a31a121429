"""The Python stacks of a run that hangs, written before it is ended.

The recorder registers a signal in the test process and keeps the file open in which the stacks go. A process that has that
file open takes the signal; no other process is sent one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

FILE = "stacks.txt"
SIGNAL = signal.SIGUSR1
SECONDS = 3.0  # for one process; one that holds the interpreter's lock in native code answers as well: the handler is C


def dump(run: Path, output: Path) -> bool:
    """Ask every process of the run for its stacks and append them to its output; False where none gave any.

    One process is asked at a time: the handler writes a line in several pieces, and two writers would mix theirs.
    """
    path = run / FILE
    before = _size(path)
    for pid in list(_listeners(path)):
        with suppress(OSError):
            size = _size(path)
            os.kill(pid, SIGNAL)
            _wait_until_written(path, size)
    if _size(path) == before:
        return False
    with suppress(OSError), path.open("rb") as stream, output.open("ab") as end:
        stream.seek(before)
        end.write(b"\ndebug-spyre: stacks before the run was ended\n" + stream.read(200_000))
        return True
    return False


def _wait_until_written(path: Path, before: int) -> None:
    """Until the file is longer than `before` bytes and kept its size for two looks, or the time for one process is over."""
    told = before
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.1)
        last, told = told, _size(path)
        if told > before and told == last:
            return


def _listeners(path: Path) -> Iterator[int]:
    with suppress(OSError):
        wanted = os.stat(path)
        for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
            with suppress(OSError):
                if any(_is(f"/proc/{pid}/fd/{fd}", wanted) for fd in os.listdir(f"/proc/{pid}/fd")):
                    yield pid


def _is(path: str, wanted: os.stat_result) -> bool:
    with suppress(OSError):
        seen = os.stat(path)
        return (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino)
    return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
