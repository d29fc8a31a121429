"""The append-only journal of one folder: one event a line, one write under a file lock, fsynced.

A torn last line (a crash while writing) was never acknowledged: it is dropped and said so.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from debug_spyre.host.clock import actor, utc_now
from debug_spyre.session.chain import sealed
from debug_spyre.session.events import Event, EventFormatError, from_line, to_line
from debug_spyre.session.io import checkpoint
from debug_spyre.session.io.seals import files_of, write_head
from debug_spyre.session.replay import Draft, NoSessionError
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

JOURNAL = "journal.jsonl"
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a journal holds; `torn` is the text of a dropped last line."""

    events: tuple[Event, ...]
    torn: str | None = None


class Journal:
    """A folder's journal. Several writers are normal: sequence numbers are given under the lock."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL

    def read(self) -> Reading:
        """All events in order.

        Raises:
            BadInputError: there is no journal, or a line before the last is no event.
        """
        return _parse(self.path, self._bytes())

    def append(self, event: E) -> E:
        """Add one event; returns it with its number, time and actor. It is on disk when this returns.

        Only the last line is parsed, so the cost does not grow with the journal.
        """
        with self._locked() as held:
            begin = held.data.rfind(b"\n", 0, max(held.whole - 1, 0)) + 1
            if not all(map(_looks_whole, held.data[:begin].splitlines())):
                begin = 0  # all is parsed, so that a damaged line is named
            return self._write(held, held.events(begin), (event,))[0]  # type: ignore[return-value]

    def append_with(self, make: Callable[[tuple[Event, ...]], Iterable[Event]]) -> tuple[Event, ...]:
        """Under the lock: show `make` what the journal holds, add the events that it returns.

        This is how a check and its record stay one step where the check wants all events.

        Raises:
            BadInputError: the journal is damaged; EnvironmentTroubleError: it can't be written.
        """
        with self._locked() as held:
            events = held.events(0)
            return self._write(held, events, make(events))

    def record(self, make: Callable[[Session], Iterable[Event]]) -> Session:
        """Under the lock: show `make` the session's state, add the events that it returns; the state afterwards.

        Only lines are parsed that came after the kept state (see checkpoint), so the cost hardly grows with the journal.

        Raises:
            BadInputError: the journal is damaged or makes no session; EnvironmentTroubleError: it can't be written.
        """
        with self._locked() as held:
            draft, begin = checkpoint.load(self.path.parent, held.data[: held.whole]) or (Draft(), 0)
            events = held.events(begin)
            with self._named():
                for event in events:
                    draft.add(event)
                last = events[-1].seq if events else draft.head.get("last_seq", 0)
                for event in self._write(held, last, make(draft.session())):
                    draft.add(event)
            return draft.session()

    def now(self) -> Session:
        """The session's state, read as `record` reads it, without the lock.

        Raises:
            BadInputError: the journal is damaged or makes no session.
        """
        draft, _, _ = self._drafted()
        with self._named():
            return draft.session()

    def keep_state(self) -> None:
        """Keep the state of a long journal beside it, for `record`; a journal that makes no session has none."""
        with suppress(BadInputError):
            draft, data, known = self._drafted()
            checkpoint.keep(self.path.parent, draft, data, known=known)

    def _drafted(self) -> tuple[Draft, bytes, int]:
        """The state as a draft, the whole lines that it stands for, and how many bytes of them were known before."""
        data = self._bytes()
        data = data[: data.rfind(b"\n") + 1]
        draft, known = checkpoint.load(self.path.parent, data) or (Draft(), 0)
        with self._named():
            for event in _parse(self.path, data[known:], first=data.count(b"\n", 0, known)).events:
                draft.add(event)
        return draft, data, known

    def _bytes(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise BadInputError(
                f"cannot read {self.path}: {error.strerror or error}",
                next="debug-spyre status --all lists the sessions that can be read",
            ) from error

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Events that make no session are a fault of this file."""
        try:
            yield
        except NoSessionError as error:
            raise BadInputError(f"{self.path}: {error}", next="debug-spyre status --all") from error

    @contextmanager
    def _locked(self) -> Iterator[_Held]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise EnvironmentTroubleError(
                f"cannot open {self.path}: {error.strerror or error}",
                next="check who owns the folder, or set DEBUG_SPYRE_LOGS=DIR",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield _Held(self.path, descriptor, _read_all(descriptor))
        finally:
            os.close(descriptor)

    def _write(self, held: _Held, known: tuple[Event, ...] | int, made: Iterable[Event]) -> tuple[Event, ...]:
        """`known`: the events before, or the number of the last one."""
        number = known if isinstance(known, int) else known[-1].seq if known else 0
        stamped, whole = _stamp(made, last=number), held.whole
        last = held.data[held.data.rfind(b"\n", 0, whole - 1) + 1 : whole - 1] if whole else None
        lines = []
        for event in stamped:
            last = sealed(to_line(event), last, files_of(self.path.parent, event)).encode("utf-8", "replace")
            lines.append(last)
        if lines and last is not None:
            if whole != len(held.data):
                os.ftruncate(held.descriptor, whole)
            _write_all(held.descriptor, b"\n".join(lines) + b"\n", whole)
            write_head(self.path.parent, held.data.count(b"\n") + len(lines), last)
        return stamped


@dataclass(frozen=True, slots=True)
class _Held:
    """The journal under its lock: its bytes, and how many of them are whole lines."""

    path: Path
    descriptor: int
    data: bytes

    @property
    def whole(self) -> int:
        return self.data.rfind(b"\n") + 1

    def events(self, begin: int) -> tuple[Event, ...]:
        """The events of the lines behind this offset."""
        return _parse(self.path, self.data[begin : self.whole], first=self.data.count(b"\n", 0, begin)).events


def _looks_whole(line: bytes) -> bool:
    return line.startswith(b'{"v":') and line.endswith(b"}")


def _stamp(events: Iterable[Event], *, last: int) -> tuple[Event, ...]:
    at, by = utc_now(), actor()
    return tuple(
        replace(event, seq=last + number, at=at, by=event.by or by) for number, event in enumerate(events, start=1)
    )


def _read_all(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0) if size else b""


def _write_all(descriptor: int, payload: bytes, whole: int) -> None:
    try:
        written = os.write(descriptor, payload)
        if written != len(payload):
            raise OSError(28, "No space left on device")
        os.fsync(descriptor)
    except OSError as error:
        os.ftruncate(descriptor, whole)
        raise EnvironmentTroubleError(
            f"cannot write the journal: {error.strerror or error}", next="free space on the disk and repeat the command"
        ) from error


def _parse(path: Path, data: bytes, *, first: int = 0) -> Reading:
    lines = data.split(b"\n")
    torn = lines.pop().decode("utf-8", "replace") or None
    events = []
    for number, line in enumerate(lines, start=first + 1):
        try:
            events.append(from_line(line.decode("utf-8")))
        except (EventFormatError, UnicodeDecodeError) as error:
            raise BadInputError(
                f"{path} line {number} is damaged: {error}",
                next=f"look at it with sed -n {number}p; take that line out (keep a copy) and repeat the command",
            ) from error
    return Reading(tuple(events), torn)
