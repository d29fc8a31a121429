"""Text from outside made fit to show: no escape sequences, no control characters, long text cut with the cut stated."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

MARK = "…"
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, up to its end or the line's
    r"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_PLANE_ENDS = re.compile(
    "[" + "".join(f"{chr(p * 0x10000 + 0xFFFE)}{chr(p * 0x10000 + 0xFFFF)}" for p in range(1, 17)) + "]"
)
_DIRECTION = re.compile(r"[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_LOOK = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060\u2066-\u2069\ufdd0-\ufdef\ufeff\ufffe\uffff\ud800-\udfff\U0001fffe-\U0010ffff]"
)


def clean(text: str) -> str:
    """Text without escape sequences and control characters; characters that turn or hide text are spelt out."""
    if _LOOK.search(text) is None:
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_written, text.split("\n")))
    text = _PLANE_ENDS.sub("", _HIDDEN.sub("", text))
    return _DIRECTION.sub(lambda found: f"<U+{ord(found.group()):04X}>", text)


def spelt_out(text: str) -> str:
    """JSON text with what `clean` takes out as escapes: the same value, and nothing in it acts on a terminal."""
    return _LOOK.sub(lambda found: json.dumps(found.group())[1:-1] if found.group() != "\x7f" else "\\u007f", text)


def _last_written(line: str) -> str:
    """Without what a progress line has overwritten."""
    return line[line.rfind("\r", 0, len(line) - 1) + 1 :] if len(line) > 1 else line


def clip(text: str, most: int) -> str:
    """At most `most` characters; the cut is stated."""
    if len(text) <= most:
        return text
    return f"{text[:most]}{MARK} [{len(text) - most} more characters]"


def one_line(text: str, most: int = 200) -> str:
    """Text as one line of at most `most` characters."""
    words = " ".join(text[: most * 4].split())
    return words if len(words) <= most else words[: most - 1] + MARK


_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def quoted(path: str) -> str:
    """A relative path as an address; slashes stay."""
    octets = path.encode("utf-8", "replace")
    return "".join(chr(o) if o in _UNRESERVED or o == 0x2F else f"%{o:02X}" for o in octets)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """1 test, 2 tests."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(octets: int) -> str:
    """A size in words: 14 kB, 3.2 MB."""
    if octets < 1000:
        return f"{octets} B"
    for unit in ("kB", "MB", "GB"):
        octets_in_unit = octets / 1000
        if octets_in_unit < 999.5 or unit == "GB":
            return (
                f"{octets_in_unit:.1f} {unit}"
                if octets_in_unit < 10 and unit != "kB"
                else f"{octets_in_unit:.0f} {unit}"
            )
        octets = int(octets_in_unit)
    return f"{octets} B"


def number(value: float | None) -> str:
    """A figure as people read it; exact enough to compare, short enough to scan."""
    if value is None:
        return "unknown"
    if math.isnan(value):
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of prose: plain, `code`, strong, or a link inside the page."""

    text: str
    kind: str = ""  # "", code, strong
    href: str = ""


_PIECES = re.compile(r"`([^`\n]+)`|(?<![\w#./-])([Hh#]|[rR]|[Ff])(\d{1,5})(?![\w/-]|\.\d)")


def pieces(text: str, knows: Callable[[str], bool]) -> tuple[Piece, ...]:
    """Prose with its code and its references (H3, r5, F1); only references to what the page has become links."""
    found: list[Piece] = []
    at = 0
    for match in _PIECES.finditer(text):
        if match.group(1) is not None:
            piece = Piece(match.group(1), "code")
        else:
            anchor = f"{match.group(2).lower().replace('#', 'h')}{match.group(3)}"
            if not knows(anchor):
                continue
            piece = Piece(match.group(0), "", f"#{anchor}")
        if match.start() > at:
            found.append(Piece(text[at : match.start()]))
        found.append(piece)
        at = match.end()
    if at < len(text) or not found:
        found.append(Piece(text[at:]))
    return tuple(found)


_LEAD = re.compile(
    r"\s*((?:the )?(?:bug|best theory|current theory|theory|ruled out|cause|status|next|fix|workaround)s?\s*[.:])\s+",
    re.IGNORECASE,
)


def paragraphs(text: str, knows: Callable[[str], bool]) -> tuple[tuple[Piece, ...], ...]:
    """Prose in paragraphs; a leading `Bug:` or `Ruled out.` is strong."""
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text.strip()):
        lead = _LEAD.match(block)
        rest = " ".join(block[lead.end() if lead else 0 :].split())
        parts = pieces(rest, knows)
        found.append((Piece(lead.group(1).strip(), "strong"), Piece(" "), *parts) if lead else parts)
    return tuple(found)


def flat(parts: tuple[Piece, ...]) -> str:
    """The words of prose."""
    return "".join(f"`{p.text}`" if p.kind == "code" else p.text for p in parts)


def without_escapes(text: str) -> str:
    """The text without terminal escape sequences; everything else as it is."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text else text
