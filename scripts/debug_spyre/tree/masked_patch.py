"""A patch without secrets that git still applies: they are masked in the lines that it adds, which may hold any text.

Lines that it takes away or only shows have to stay as they are; a file with a secret in such a line is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from debug_spyre.tree.changes import is_hunk, name_of, sizes
from debug_spyre.vocabulary.masking import MASK, mask, mask_code

_CODE = (".py", ".pyi", ".c", ".cc", ".cpp", ".h", ".hpp", ".sh", ".j2", ".js")
_FILE = re.compile(rb"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MaskedPatch:
    """The patch; files in which secrets were masked, and of these the ones that are left out."""

    text: bytes
    masked: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def mask_patch(
    patch: bytes, *, values: Iterable[str] = (), also: Callable[[str], str] = lambda text: text
) -> MaskedPatch:
    """Mask the secrets of a patch as git writes it, `values` among them; `also` changes added lines further (names, say)."""
    values = tuple(values)
    kept, masked, left_out = [], [], []
    for section in filter(None, _FILE.split(patch)):
        first = section.split(b"\n", 1)[0]
        name = name_of(first[len(b"diff --git ") :]) if first.startswith(b"diff --git ") else ""
        text = _section(section, partial(mask_code if name.endswith(_CODE) else mask, values=values), also)
        if text is None:
            left_out.append(name)
            continue
        kept.append(text[0])
        if text[1]:
            masked.append(name)
    return MaskedPatch(b"".join(kept), (*masked, *left_out), tuple(left_out))


def _section(section: bytes, hide: Callable[[str], str], also: Callable[[str], str]) -> tuple[bytes, bool] | None:
    """(the file's part of the patch, whether a secret was masked in it); None: a secret stands in a line that has to stay."""
    lines = section.split(b"\n")
    found: list[bytes] = []
    left = right = at = 0
    is_masked = False
    while at < len(lines):
        line = lines[at]
        if not (left or right):
            left, right = sizes(line) if is_hunk(line) else (0, 0)
            found.append(line)
            at += 1
        elif line[:1] == b"+":
            end = at
            while end < len(lines) and right and lines[end][:1] == b"+":
                end, right = end + 1, right - 1
            block, hidden = _added(lines[at:end], hide, also)
            is_masked = is_masked or hidden
            found += block
            at = end
        else:
            stays = _text(line)
            if hide(stays) != stays:
                return None
            left -= line[:1] in (b" ", b"-", b"")
            right -= line[:1] in (b" ", b"")
            found.append(line)
            at += 1
    return b"\n".join(found), is_masked


def _added(lines: list[bytes], hide: Callable[[str], str], also: Callable[[str], str]) -> tuple[list[bytes], bool]:
    """As many lines as before, so that the hunk's sizes stay right."""
    before = "\n".join(_text(line[1:]) for line in lines)
    after = hide(before)
    text = also(after)
    if text == before:
        return lines, False
    made = text.split("\n")
    made += [MASK] * (len(lines) - len(made))
    return [b"+" + line.encode("utf-8", "surrogateescape") for line in made[: len(lines)]], after != before


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")
