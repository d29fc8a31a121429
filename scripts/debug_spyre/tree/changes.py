"""The changes of a patch: its files, the tests among them, and lines that move a tolerance.

A line that can't be placed is kept as text; nothing is guessed away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from debug_spyre.vocabulary.masking import MASK, mask, mask_code

_TOLERANCE = re.compile(
    r"\b(?:[ar]tol|tol(?:erance)?s?|max_outliers|outlier_limit|equal_nan|eps(?:ilon)?_?tol)\b", re.IGNORECASE
)
_EXPECTED = re.compile(rb"\bassert|expect|golden|reference|==|\d")
_SKIPPING = re.compile(r"\b(?:skip(?:if)?|xfail|deselect|importorskip)\b")
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$|pytest\.ini$|tox\.ini$)")
_MARK = re.compile(r"@(?:pytest\.)?mark\.xfail(?:\((?:[^()]|\([^()]*\))*\))?\s*")
_ESCAPE = re.compile(rb"\\([abtnvfr\"\\]|[0-7]{3})")
_PLAIN = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class Changes:
    """The files of a patch, which of them are edited tests, and the lines about tolerances or skipping ("file: +line").

    A test file from which only xfail marks were taken is stricter than before, and no edited test.
    """

    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    tolerances: tuple[str, ...] = ()
    expectations: tuple[str, ...] = ()  # changed lines of test code that say what is expected
    unmarked: tuple[str, ...] = ()  # test files that only lost xfail marks

    @property
    def only_tests(self) -> bool:
        """No shared code is touched."""
        return bool(self.files) and set(self.files) == {*self.tests, *self.unmarked}

    def to_json(self) -> dict[str, Any]:
        """The form that the journal keeps."""
        return {name: list(getattr(self, name)) for name in self.__slots__}


def changes_from_json(data: dict[str, Any]) -> Changes:
    """Inverse of to_json; absent keys are empty."""
    return Changes(*(tuple(data.get(name) or ()) for name in Changes.__slots__))


def read_patch(patch: bytes) -> Changes:
    """The changes in a patch as git writes it (no renames)."""
    files: list[str] = []
    tolerances: list[str] = []
    unmarked: list[str] = []
    for name, lines in _sections(patch):
        files.append(name)
        if is_test(name) and _only_takes_marks_off(lines):
            unmarked.append(name)
            continue
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if _TOLERANCE.search(text) or (_SKIPPING.search(text) and is_test(name)):
                tolerances.append(f"{name}: {text[0]}{text[1:].strip()[:100]}")
    tests = tuple(name for name in files if is_test(name) and name not in unmarked)
    return Changes(tuple(files), tests, tuple(tolerances[:MOST_LINES]), unmarked=tuple(unmarked))


def _only_takes_marks_off(lines: Iterable[bytes]) -> bool:
    """Whole xfail decorators are removed, and nothing else is changed."""
    changed = [line.decode("utf-8", "replace") for line in lines]
    removed = "\n".join(line[1:].strip() for line in changed if line.startswith("-"))
    return bool(removed) and len(removed.splitlines()) == len(changed) and not _MARK.sub("", removed).strip()


def expectations(patch: bytes, tests: Iterable[str]) -> tuple[str, ...]:
    """Changed lines of test code that say what is expected ("file: -line"), the first twenty."""
    chosen = set(tests)
    found = [
        f"{name}: {chr(line[0])}{line[1:].strip().decode('utf-8', 'backslashreplace')[:100]}"
        for name, lines in _sections(patch)
        if name in chosen
        for line in lines
        if _EXPECTED.search(line) and line[1:].strip()
    ]
    return tuple(found[:MOST_LINES])


def is_test(path: str) -> bool:
    """The path belongs to the tests or steers them."""
    return _TEST_FILE.search(path) is not None


def _sections(patch: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """(file, changed lines with their sign) of each file in the patch."""
    name, lines, left, right = None, [], 0, 0
    for line in patch.split(b"\n"):
        if left or right:  # inside a hunk every line counts, whatever it looks like
            left -= line[:1] in (b" ", b"-", b"")
            right -= line[:1] in (b" ", b"+", b"")
            if line[:1] in (b"+", b"-"):
                lines.append(line)
        elif line.startswith(b"diff --git "):
            if name is not None:
                yield name, lines
            name, lines = name_of(line[len(b"diff --git ") :]), []
        elif is_hunk(line):
            left, right = sizes(line)
    if name is not None:
        yield name, lines


def is_hunk(line: bytes) -> bool:
    """The line begins a hunk."""
    return line.startswith(b"@@ ")


def sizes(line: bytes) -> tuple[int, int]:
    """How many lines the hunk that this line begins has of the old file and of the new one."""
    found = re.match(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
    if found is None:
        return 0, 0
    return tuple(1 if size is None else int(size) for size in found.groups())  # type: ignore[return-value]


def name_of(pair: bytes) -> str:
    """The name in `a/NAME b/NAME`, both halves being the same."""
    if pair.startswith(b'"'):
        half = pair[1 : pair.index(b'" "')] if b'" "' in pair else pair[1:]
        raw = _ESCAPE.sub(_unescaped, half)[2:]
    else:
        raw = pair[2 : (len(pair) - 1) // 2]
    return raw.decode("utf-8", "backslashreplace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    letter = found[1]
    return bytes([int(letter, 8)]) if len(letter) == 3 else _PLAIN.get(letter, letter)


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
