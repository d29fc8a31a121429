"""What a verb is: how it reads its words, what it does, and how it prints its answer: text or one JSON object, both from the same values."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


def answer(lines: Iterable[str] | str, data: dict[str, Any], *, as_json: bool) -> None:
    """Print `data` as JSON (with "schema": 1 first) or `lines` as text, on stdout."""
    if as_json:
        from debug_spyre.vocabulary.safe_text import spelt_out

        text = spelt_out(json.dumps({"schema": 1, **data}, ensure_ascii=False, allow_nan=False))
    else:
        text = lines if isinstance(lines, str) else "\n".join(lines)
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def warn(text: str) -> None:
    """One line of conversation, on stderr."""
    from debug_spyre.vocabulary.safe_text import clean

    print(clean(f"debug-spyre: {text}"), file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. `run` prints the answer on stdout and returns the exit status.

    `rest` names the attribute that takes every word not known to the parser (pytest's arguments), if any;
    `words` shows them in the usage line.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    example: str
    rest: str | None = None
    words: str = ""
