"""The way a text came (container JSON, HTML, quotes), and what a text without any outcome looks like: silence is never green."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from debug_spyre.triage.lines import Prefix, anchors, learn, split_all, without_escapes, without_stamp
from debug_spyre.triage.wrapped import width_of

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
_DOWN = re.compile(r"\[(gw\d+)\] node down: ")
_HEADER = re.compile(r"platform \S+ -- Python \d.{0,40}, pytest-\d")
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
        say = "line says" if good == 1 else "lines say"
        return f"a script's own output: {good} {say} that something passed, {bad} that something failed"
    died = sorted({m[1] for line in lines if (m := _DOWN.search(line))})
    if died:
        return f"a run of pytest whose workers died ({', '.join(died[:4])}) before a test had an outcome"
    if any(_HEADER.search(line) for line in lines):
        return "the beginning of a run of pytest, without the outcome of a test"
    errors = [line.strip() for line in lines if _ERROR.search(line)]
    if errors:
        return f"a log without a test run; its last error: {errors[-1][:160]}"
    return "text that neither pytest nor unittest wrote"


_CARET = re.compile(r"\^([A-Z\[\\\]^_@])")
_CARET_COLOUR = re.compile(r"\^\[\[[\d;]*[mK]|\^M\r?$")
_ENTITY = re.compile(r"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_TAGS = "pre|code|span|details|summary|div|p|br|b|i|em|strong|blockquote|li|ul|ol|td|tr|table|tbody|a|font|html|body|tt|h\\d"
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_EDGE_TAGS = re.compile(rf"^(?:\s*</?(?:{_TAGS})(?:\s[^<>]*)?/?>)+|(?:</?(?:{_TAGS})>\s*)+$", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:```|~~~)[\w-]*$")
_PARTIAL = re.compile(r"\S+T\S+ (?:stdout|stderr) ([FP]) ")
_TEXT_KEYS = ("log", "message", "msg", "MESSAGE", "line", "text", "textPayload", "body", "content", "event")
_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Carrier:
    """What to take off."""

    rounds: tuple[tuple[Prefix, ...], ...] = ()
    json_path: tuple[str, ...] = ()
    json_ends: bool = False  # a value that ends a line says so
    caret: bool = False
    markup: bool = False
    partial: bool = False  # CRI: P marks a piece of a line
    quoted: bool = False  # the text is a quoted value: CSV, logfmt
    counted: bool = False  # a web page's line numbers, each on a line of its own
    width: int = 0  # of the terminal that broke the lines

    def is_number(self, line: str) -> bool:
        """The line is no part of the text, only its number."""
        return self.counted and line.strip().isdecimal()

    def unpacked(self, line: str) -> tuple[str, bool]:
        """(a line out of JSON, caret notation, markup; whether it ends here)."""
        ends = True
        if self.json_path:
            value = _value(line, self.json_path)
            if value is not None:
                ends = not self.json_ends or value.endswith("\n")
                line = value.rstrip("\n")
        if self.partial and (match := _PARTIAL.match(line)):
            ends = match[1] == "F"
        if self.caret and "^" in line:
            line = _CARET.sub(lambda m: chr(ord(m[1]) ^ 64), line)
        return (_plain(line, everywhere=self.markup) if "<" in line or "&" in line or "`" in line else line), ends

    def stripped(self, line: str) -> tuple[str, str]:
        """(the process that speaks, the line itself)."""
        stream, line = split_all(line, self.rounds) if self.rounds else ("", line)
        return stream, (_unquoted(line.rstrip("\r")) if self.quoted else line)


def carrier_of(sample: Sequence[str]) -> Carrier:
    """What a sample of lines shows."""
    counted = _are_counted(sample)
    lines = [line for line in sample if line.strip() and not (counted and line.strip().isdecimal())]
    path, ends = _json_path(lines)
    caret = sum(bool(_CARET_COLOUR.search(line)) for line in lines) > len(lines) // 10
    first = Carrier(json_path=path, json_ends=ends, caret=caret)
    lines = [first.unpacked(line)[0] for line in lines]
    entities, raw = (sum(test(line) for line in lines) for test in (_has_entity, _has_raw_mark))
    markup = entities > 1 and raw * 5 <= entities
    partial = sum(bool(_PARTIAL.match(line)) for line in lines) > _SHARE * len(lines)
    plain = Carrier(json_path=(), markup=markup)
    own = [without_escapes(plain.unpacked(line)[0]).rstrip("\r") for line in lines]
    rounds = learn(own)
    shown = [split_all(line, rounds)[1].rstrip() for line in own]
    quoted = bool(rounds) and _are_quoted(shown)
    if quoted:
        shown = [_unquoted(line) for line in shown]
    width = width_of([without_stamp(line) for line in shown])
    return Carrier(rounds, path, ends, caret, markup, partial, quoted, counted, width)


def _are_counted(lines: Sequence[str]) -> bool:
    """Every second line is the number after the one before."""
    found = [int(line.strip()) for line in lines if len(line) < 12 and line.strip().isdecimal()]
    steps = sum(b - a == 1 for a, b in pairwise(found))
    return len(found) > 4 and len(found) > 0.4 * len(lines) and steps > _SHARE * len(found)


def _are_quoted(lines: Sequence[str]) -> bool:
    """Nearly all end with a quotation mark; or, as CSV has it, those that hold a comma or a mark of their own."""
    filled = [line for line in lines if line]
    closed = [line for line in filled if line.endswith('"')]
    needed = [line for line in filled if "," in line or '""' in line]
    whole = [line for line in needed if len(line) > 1 and line[0] == line[-1] == '"']
    return len(closed) > _SHARE * len(filled) or (len(whole) > 1 and len(whole) > _SHARE * len(needed))


def _unquoted(line: str) -> str:
    """The value of a quoted field; its opening mark may have gone with the prefix."""
    if not line.endswith('"'):
        return line
    body = line[1:-1] if line[0] == '"' and len(line) > 1 else line[:-1]
    if "\\" in body and (value := _parsed(f'"{body}"')) is not None:
        return str(value)
    return body.replace('""', '"')


def _has_entity(line: str) -> bool:
    return "&" in line and bool(_ENTITY.search(line))


def _has_raw_mark(line: str) -> bool:
    return ("<" in line or ">" in line) and any(mark in _TAG.sub("", line) for mark in "<>")


def _plain(line: str, *, everywhere: bool) -> str:
    if "`" in line and _FENCE.match(line):
        return ""
    if everywhere:
        return html.unescape(_TAG.sub("", line)).replace("\xa0", " ")
    return _EDGE_TAGS.sub("", line) if line.lstrip()[:1] == "<" else line


def _value(line: str, path: Sequence[str]) -> str | None:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, list) and all(isinstance(n, int) and 0 <= n < 256 for n in found):
        return bytes(found).decode("utf-8", "replace")  # journald, of a line with escapes
    return found if isinstance(found, str) else None


def _json_path(lines: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Where in each JSON object the text stands; () where the lines are no JSON."""
    objects = [data for line in lines[:2000] if line[:1] == "{" and isinstance(data := _parsed(line), dict)]
    if len(objects) < 2 or len(objects) < _SHARE * len(lines[:2000]):
        return (), False
    texts: dict[tuple[str, ...], list[str]] = {}
    for data in objects:
        for path, value in _strings(data):
            texts.setdefault(path, []).append(value)

    def telling(path: tuple[str, ...]) -> tuple[int, int]:
        known = _TEXT_KEYS.index(path[-1]) if path[-1] in _TEXT_KEYS else len(_TEXT_KEYS)
        return sum(1 for _ in anchors([v.rstrip("\n") for v in texts[path]])), -known

    best = max(texts, key=telling, default=())
    if not best or telling(best) == (0, -len(_TEXT_KEYS)):
        return (), False
    ends = Counter(value.endswith("\n") for value in texts[best])
    return best, ends[True] * 2 > len(texts[best])


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _strings(data: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    found = [((key,), value) for key, value in data.items() if isinstance(value, str)]
    inner = [(key, value) for key, value in data.items() if isinstance(value, dict)]
    return found + [((key, k), v) for key, value in inner for k, v in value.items() if isinstance(v, str)]
