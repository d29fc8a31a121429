"""The one place that reads the clock and says who acts."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def utc_now() -> str:
    """UTC with milliseconds, ISO 8601, ending in Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_stamp() -> str:
    """Local time as YYYYMMDD-HHMMSS, the form in a session's stem."""
    return datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")


def local_time() -> str:
    """Local time in words, with its offset from UTC."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def actor() -> str:
    """Who acts: `agent` where the client says so, else the user's name, else the uid (pods have no passwd entry)."""
    if os.environ.get("CLAUDECODE"):
        return "agent"
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return os.environ.get("USER") or f"uid {os.getuid()}"
