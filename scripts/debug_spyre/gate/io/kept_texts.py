"""Texts for the retrospective that a call of `finish` was given before it was stopped: nothing has to be typed twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from debug_spyre.host.files import PRIVATE, write_atomically

KEPT = "finish.json"
NAMES = ("cause", "wasted", "signal", "next_action")


def kept_texts(session: Path) -> dict[str, str]:
    """The texts by name; none where nothing is kept or the file is damaged."""
    try:
        data = json.loads((session / KEPT).read_text(encoding="utf-8"))
        return {name: str(data[name]) for name in NAMES if data.get(name)}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep_texts(session: Path, given: Mapping[str, str | None]) -> dict[str, str]:
    """Add what this call was given to what is kept; returns all of it."""
    texts = kept_texts(session) | {name: text for name in NAMES if (text := (given.get(name) or "").strip())}
    write_atomically(session / KEPT, json.dumps(texts, ensure_ascii=False), mode=PRIVATE)
    return texts


def forget_texts(session: Path) -> None:
    """The session is closed: they are in its journal."""
    (session / KEPT).unlink(missing_ok=True)
