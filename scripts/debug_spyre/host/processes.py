"""Processes as /proc shows them: who they are, whose children, and ending them without reaching a stranger.

A pid alone names nobody: it goes with its start time, so that a pid used again is never signalled.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
RUN_FOLDER = "DEBUG_SPYRE_RUN_FOLDER"
GRACE_SECONDS = 10.0
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment; `state` is the letter of /proc (D: waits in the kernel, Z: dead, not reaped)."""

    pid: int
    start: int  # clock ticks after boot
    parent: int
    state: str
    uid: int
    command: str

    def says(self) -> str:
        """For people: pid, user, command."""
        return f"pid {self.pid} ({user_name(self.uid)}{', cannot be ended now' if self.state == 'D' else ''}): {self.command}"


def user_name(uid: int) -> str:
    """The user's name, or `uid N` where there is no passwd entry."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return f"uid {uid}"


def read_process(pid: int) -> Process | None:
    """The process, or None where it is gone."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
        uid = (PROC / str(pid)).stat().st_uid
    except OSError:
        return None
    name, _, rest = stat.rpartition(b")")
    fields = rest.split()
    return Process(
        pid=pid,
        start=int(fields[19]),
        parent=int(fields[1]),
        state=fields[0].decode(),
        uid=uid,
        command=_command_of(pid) or name.partition(b"(")[2].decode("utf-8", "replace"),
    )


def all_processes() -> list[Process]:
    """Every process that /proc shows."""
    pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]
    return [process for pid in pids if (process := read_process(pid)) is not None]


def is_same(pid: int, start: int) -> bool:
    """The process of that start time still lives (a zombie does not)."""
    process = read_process(pid)
    return process is not None and process.start == start and process.state not in {"Z", "X"}


def ancestors(pid: int) -> list[int]:
    """The pid and those above it."""
    chain = [pid]
    while True:
        process = read_process(chain[-1])
        if process is None or process.parent in {0, *chain}:
            return chain
        chain.append(process.parent)


def descendants(pid: int) -> list[Process]:
    """Everything below the process; with a subreaper that is also what was forked twice or spawned away."""
    everyone = all_processes()
    below, frontier = [], {pid}
    while frontier:
        children = [p for p in everyone if p.parent in frontier]
        below += children
        frontier = {p.pid for p in children}
    return [p for p in below if p.state not in {"Z", "X"}]


def run_folders(wanted: Callable[[Process, list[bytes]], bool] = lambda _p, _e: True) -> dict[str, list[Process]]:
    """Processes of this user by the run that started them, as their environment says; this one and its parents not.

    `wanted` narrows them by process and environment entries.
    """
    own = set(ancestors(os.getpid()))
    found: dict[str, list[Process]] = {}
    marker = f"{RUN_FOLDER}=".encode()
    for process in all_processes():
        if process.uid != os.getuid() or process.pid in own or process.state in {"Z", "X"}:
            continue
        try:
            environment = (PROC / str(process.pid) / "environ").read_bytes()
        except OSError:
            continue
        entries = environment.split(b"\0")
        for entry in entries:
            if entry.startswith(marker) and wanted(process, entries):
                found.setdefault(os.fsdecode(entry[len(marker) :]), []).append(process)
    return found


def become_subreaper() -> str | None:
    """Orphans below this process become its children; returns why not, where that can't be had."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            return f"prctl: {os.strerror(ctypes.get_errno())}"
    except (OSError, AttributeError) as error:
        return str(error)
    return None


def take_name(name: str) -> None:
    """What `ps` calls this process. torch-spyre of 2025-11 leaves the card alone below a parent called python."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def send(process: Process, number: int) -> None:
    """Signal exactly this process, never one that got its pid later."""
    if is_same(process.pid, process.start):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def end(
    find: Callable[[], Iterable[Process]], *, grace: float = GRACE_SECONDS, reap: Callable[[], None] = lambda: None
) -> list[Process]:
    """TERM, grace, KILL for all that `find` names, again until none is left; returns those that can't be ended."""
    left = list(find())
    for process in left:
        send(process, signal.SIGTERM)
    deadline = time.monotonic() + grace
    pause = 0.01
    while left and time.monotonic() < deadline:
        reap()
        left = [p for p in find() if p.state not in {"Z", "X"}]
        time.sleep(pause if left else 0)
        pause = min(pause * 2, 0.2)
    deadline = time.monotonic() + 5
    while left and time.monotonic() < deadline:
        for process in left:
            send(process, signal.SIGKILL)
        time.sleep(0.05)
        reap()
        left = [p for p in find() if p.state not in {"Z", "X"}]
    return left


def _command_of(pid: int) -> str:
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words)
    return "".join(c if c.isprintable() else " " for c in text)[:160]
