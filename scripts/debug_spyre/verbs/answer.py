"""Printing an answer: text for people and agents, or one JSON object, both from the same values."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any


def answer(lines: Iterable[str] | str, data: dict[str, Any], *, as_json: bool) -> None:
    """Print `data` as JSON (with "schema": 1 first) or `lines` as text, on stdout."""
    if as_json:
        text = json.dumps({"schema": 1, **data}, ensure_ascii=False, allow_nan=False)
    else:
        text = lines if isinstance(lines, str) else "\n".join(lines)
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def warn(text: str) -> None:
    """One line of conversation, on stderr."""
    print(f"debug-spyre: {text}", file=sys.stderr)
