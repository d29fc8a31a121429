"""Times in words: every moment of a session in the local time of the place where it was opened, UTC beside it.

The offset comes from the journal, not from this machine, so a page reads the same wherever it is rendered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)\s*$")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment as the page prints it: `iso` for machines, `text` in local time, `utc` beside it."""

    iso: str
    text: str
    utc: str


@dataclass(frozen=True, slots=True)
class Zone:
    """The local time of a session; `day` is the day it was opened, so that later days show their date."""

    offset: timedelta | None
    day: str = ""

    def moment(self, at: str) -> Moment:
        """A journal time as a Moment; what can't be read is shown as it is."""
        when = parse(at)
        if when is None:
            return Moment(at, at, at)
        local = when.astimezone(timezone(self.offset) if self.offset is not None else UTC)
        text = local.strftime("%H:%M:%S")
        if local.strftime("%Y-%m-%d") != self.day:
            text = f"{local.day} {local.strftime('%b')} {text}"
        return Moment(at, text, when.strftime("%H:%M:%S UTC"))


def zone_of(local_time: str, opened_at: str) -> Zone:
    """The zone of a session, from the local time written when it was opened."""
    found = _OFFSET.search(local_time)
    offset = None
    if found:
        minutes = int(found.group(2)) * 60 + int(found.group(3))
        if minutes < 24 * 60:
            offset = timedelta(minutes=-minutes if found.group(1) == "-" else minutes)
    when = parse(opened_at)
    day = when.astimezone(timezone(offset) if offset is not None else UTC).strftime("%Y-%m-%d") if when else ""
    return Zone(offset, day)


def parse(at: str | None) -> datetime | None:
    """A journal time, or None where it is none."""
    if not at:
        return None
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return None
    try:
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


def between(start: str | None, end: str | None) -> float | None:
    """Seconds from one journal time to another; None where either can't be read."""
    first, last = parse(start), parse(end)
    return None if first is None or last is None else (last - first).total_seconds()


def duration(seconds: float | None) -> str:
    """A length of time in words: 0.2 s, 2 min 17 s, 3 h 5 min."""
    if seconds is None:
        return "unknown"
    seconds = max(seconds, 0.0)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    if whole < 48 * 3600:
        minutes = whole % 3600 // 60
        return f"{whole // 3600} h {minutes} min" if minutes else f"{whole // 3600} h"
    return f"{whole // 86400} days"
