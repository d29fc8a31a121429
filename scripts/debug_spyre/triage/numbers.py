"""The numbers in a failed comparison's text, in all forms of torch and numpy, and how bad they are, with the reason in words.

Ratio and size alone can't tell everything: where compare saw the tensors, its pattern wins over this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from debug_spyre.vocabulary.evidence import Severity

_NUMBER = r"([-+]?(?:nan|inf|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))"
_ELEMENTS = re.compile(r"Mismatched elements: (\d{1,18}) / (\d{1,18})(?!\d)")
_ABSOLUTE = re.compile(
    rf"(?:Greatest absolute|Absolute|Max absolute) difference(?: among violations)?: {_NUMBER}", re.IGNORECASE
)
_RELATIVE = re.compile(
    rf"(?:Greatest relative|Relative|Max relative) difference(?: among violations)?: {_NUMBER}", re.IGNORECASE
)
_INDEX = re.compile(r"difference: \S+ at index (\(.*?\)|\d+)")
_SCALAR = re.compile(r"Expected (\S+) but got (\S+?)\.?$")
_FIRST = re.compile(r"first mismatched element is at index (\(.*?\)|\d+)")
_ALLOWED = re.compile(rf"up to {_NUMBER} allowed")
_WHOLE = re.compile(r"-?\d{1,9}")
_ENTRANCE = ("ifference", "ismatched elements", "Expected ", "mismatched element")

TEXTS = (
    re.compile(r"(?:are|is) not (?:close|equal|'equal')!"),
    re.compile(r"Mismatched elements: \d+ / \d+"),
    re.compile(r"The values for attribute '[^']*' do not match"),
    re.compile(
        r"The \(d\)types do not match|The length of the sequences mismatch|The keys of the mappings do not match"
    ),
    re.compile(r"Booleans mismatch|None mismatch|Not equal to tolerance|Arrays are not (?:almost )?equal"),
    re.compile(r"(?:is|are) not (?:close|equal) to\b|<-> cpu mismatch|vs\.? cpu mismatch"),
    re.compile(r"\d+ elements exceed atol|The number of (?:sparse dimensions|specified values) in sparse"),
    re.compile(r"DTensor (?:placements|device meshes) do not match"),
)


@dataclass(slots=True)
class Mismatch:
    """What a failed comparison says; None where it does not say it."""

    mismatched: int | None = None
    total: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    index: str | None = None
    expected: str | None = None
    got: str | None = None
    allowed: float | None = None

    @property
    def is_empty(self) -> bool:
        """It says nothing in numbers."""
        return self.mismatched is None and self.max_abs is None and self.max_rel is None and self.got is None

    @property
    def is_python_number(self) -> bool:
        """Two whole numbers were compared, such as a count: nothing in the text says that a tensor was read."""
        return bool(self.got and self.expected and _WHOLE.fullmatch(self.got) and _WHOLE.fullmatch(self.expected))

    @property
    def is_unwritten(self) -> bool:
        """The largest difference is that of 0xAAAAAAAA to a small integer: memory that was never written."""
        value = self.max_abs
        return value is not None and value == value // 1 and abs(value - 1431655766) < 100_000

    @property
    def ratio(self) -> float | None:
        """Share of the elements that differ."""
        return self.mismatched / self.total if self.mismatched is not None and self.total else None


def read_numbers(lines: Iterable[str]) -> Mismatch:
    """The first of each number in the lines."""
    found = Mismatch()
    for line in lines:
        if not any(word in line for word in _ENTRANCE):
            continue
        _read_line(found, line[:2000])
    return found


def _read_line(found: Mismatch, line: str) -> None:
    if found.mismatched is None and (match := _ELEMENTS.search(line)):
        found.mismatched, found.total = int(match[1]), int(match[2])
    if found.max_abs is None and (match := _ABSOLUTE.search(line)):
        found.max_abs = float(match[1])
        place, allowed = _INDEX.search(line), _ALLOWED.search(line)
        found.index = place[1] if place else None
        found.allowed = float(allowed[1]) if allowed else None
    if found.max_rel is None and (match := _RELATIVE.search(line)):
        found.max_rel = float(match[1])
    if found.got is None and (match := _SCALAR.search(line)):
        found.expected, found.got = match[1], match[2]
    if found.index is None and (match := _FIRST.search(line)):
        found.index = match[1]


def is_comparison(text: str) -> bool:
    """The text is that of a failed comparison of values, shapes or types."""
    return any(pattern.search(text) for pattern in TEXTS)


SMALL_RELATIVE = 0.05  # rounding of half-precision sums stays below
LARGE = 1.0
NEARLY_ALL = 0.9
SOME = 0.3


def severity(found: Mismatch, text: str, *, unwritten: bool) -> tuple[Severity | None, str | None]:
    """The severity of a mismatch and why; (None, None) where the text has no numbers."""
    if unwritten or (found.got and found.got.startswith("-1431655766")):
        return Severity.STRUCTURAL, "values are -1431655766 (0xAAAAAAAA): memory that was never written"
    if found.is_empty:
        return None, None
    share = _share(found)
    if found.is_python_number:
        return (
            Severity.INCONCLUSIVE,
            f"a Python number differs: expected {found.expected}, got {found.got}; no tensor was compared",
        )
    if _is_special(found):
        return Severity.SPECIAL, f"{share}NaN or infinity on one side only"
    if found.max_abs is None:
        return Severity.INCONCLUSIVE, f"{share}no difference given"
    size = f"{share}largest difference {found.max_abs:g}"
    if found.max_rel == 1.0 and found.max_abs > 0 and _exceeds(found):
        return Severity.STRUCTURAL, f"{size}, relative difference exactly 1: not rounding"
    if found.max_rel is not None and found.max_rel <= SMALL_RELATIVE:
        return Severity.ACCUMULATION, f"{size}, relative difference {found.max_rel:g}: rounding"
    if found.max_abs > LARGE:
        return Severity.STRUCTURAL, f"{size}: not rounding"
    if "not equal" in text or "are not 'equal'" in text:
        return Severity.STRUCTURAL, f"{size} where equality was asked for"
    return _by_share(found, size)


def _by_share(found: Mismatch, size: str) -> tuple[Severity, str]:
    ratio = found.ratio
    if ratio is None:
        if found.max_rel is not None and found.max_rel >= 0.5:
            return Severity.STRUCTURAL, f"{size}, relative difference {found.max_rel:g}: not rounding"
        return Severity.INCONCLUSIVE, f"{size}: the numbers allow both"
    over = found.max_abs / found.allowed if found.allowed and found.max_abs is not None else None
    if over is not None and over < 4:
        return Severity.ACCUMULATION, f"{size}, {over:.1f} times what is allowed"
    if ratio >= NEARLY_ALL and (over is None or over >= 10):
        return Severity.STRUCTURAL, f"{size}: nearly every element is wrong"
    return Severity.INCONCLUSIVE, f"{size}: the numbers allow both"


def _share(found: Mismatch) -> str:
    ratio = found.ratio
    if ratio is None:
        return ""
    return "the only element differs, " if found.total == 1 else f"{ratio:.1%} of {found.total} elements differ, "


def _exceeds(found: Mismatch) -> bool:
    return found.allowed is None or (found.max_abs or 0) > 3 * found.allowed


def _is_special(found: Mismatch) -> bool:
    words = {(found.got or "").lower(), (found.expected or "").lower()}
    if words & {"nan", "inf", "-inf", "+inf"}:
        return True
    return found.max_abs is not None and not math.isfinite(found.max_abs)


def special_class(max_abs: float | None, ratio: float | None) -> str:
    """Which defect special values point to: a format without them, or NaN that crept into a part of the result."""
    if max_abs is not None and math.isinf(max_abs):
        return "saturates"
    if ratio is not None and ratio < 0.99:
        return "nan-in-part"
    return "saturates" if ratio is not None else "nan"
