"""What a text without any test outcome looks like, in words: so that nobody takes silence for green."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MAGIC = (
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "gzip data that can't be opened"),
    (b"\xfd7zXZ", "xz data that can't be opened"),
    (b"BZh", "bzip2 data that can't be opened"),
    (b"\x28\xb5\x2f\xfd", "zstd data; unpack it first: zstd -d FILE"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"PK\x03\x04", "a zip archive that can't be opened"),
    (b"\x7fELF", "a program"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x04", "a Python pickle"),
)
_GOOD = re.compile(r"\b(?:PASS(?:ED)?|OK|ok|SUCCESS)\b|[\u2713\u2714\u2705]")
_BAD = re.compile(r"\b(?:FAIL(?:ED|URE)?|MISMATCH)\b|[\u2717\u2718\u274c]")
_ERROR = re.compile(r"\b(?:[A-Za-z]*Error|error|fatal|FATAL|Exception)\b[^\n]{0,3}[:\]]")
_SOURCE = re.compile(r"\s*(?:def \w+\(|class \w+[(:]|import \w|from \w[\w.]* import |#include\b|@pytest\.)")


def looks_like(head: bytes, lines: Sequence[str]) -> str:
    """A noun phrase for bytes that begin so and have these lines, as many as were kept."""
    if not head:
        return "an empty file"
    if not head.strip():
        return "nothing but blanks"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if _is_binary(head):
        return "binary data"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb"(?i)<!doctype html|<html", start):
        return "a web page; save the raw log instead"
    if start[:1] in {b"{", b"["} and not any("::" in line for line in lines):
        return "JSON that is no report of tests"
    if sum(bool(_SOURCE.match(line)) for line in lines) * 4 > len(lines):
        return "source code"
    return _text(lines)


def _is_binary(head: bytes) -> bool:
    strange = sum(b < 32 and b not in b"\t\n\r\x1b\x07\x08" for b in head) + head.decode("utf-8", "replace").count(
        "\ufffd"
    )
    return strange > len(head) // 20


def _text(lines: Sequence[str]) -> str:
    good = sum(bool(_GOOD.search(line)) for line in lines)
    bad = sum(bool(_BAD.search(line)) for line in lines)
    if (good and bad) or bad > 1:
        return f"a script's own output: {good} lines say that something passed, {bad} that something failed"
    errors = [line.strip() for line in lines if _ERROR.search(line)]
    if errors:
        return f"a log without a test run; its last error: {errors[-1][:160]}"
    return "text that neither pytest nor unittest wrote"
