"""A verb: how it reads its words, what it does, and how it prints its answer: text or one JSON object, both from the same values."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from debug_spyre.vocabulary.masking import mask as mask_shown
from debug_spyre.vocabulary.masking import secret_values
from debug_spyre.vocabulary.safe_text import clean, spelt_out


def answer(lines: Iterable[str] | str, data: dict[str, Any], *, as_json: bool) -> None:
    """Print `data` as JSON (with "schema": 1 first) or `lines` as text, on stdout; secrets are masked in both."""
    secrets = secret_values(os.environ)
    if as_json:
        text = spelt_out(json.dumps(_masked({"schema": 1, **data}, secrets), ensure_ascii=False, allow_nan=False))
    else:
        text = mask_shown(lines if isinstance(lines, str) else "\n".join(lines), secrets)
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return mask_shown(value, secrets)
    if isinstance(value, dict):
        return {name: _masked(item, secrets) for name, item in value.items()}
    return [_masked(item, secrets) for item in value] if isinstance(value, list | tuple) else value


def warn(text: str) -> None:
    """One line of conversation, on stderr."""
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
