"""The way a text came: JSON of a container, caret notation, HTML, quotes and prefixes. Learned once, taken off each line."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from debug_spyre.triage.lines import without_escapes, without_stamp
from debug_spyre.triage.prefixes import Prefix, anchors, learn, split_all
from debug_spyre.triage.wrapped import width_of

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
        return self.counted and line.strip().isdigit()

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
    lines = [line for line in sample if line.strip() and not (counted and line.strip().isdigit())]
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
    found = [int(line) for line in lines if len(line) < 12 and line.strip().isdigit()]
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
