"""How bad a failed comparison is, with the reason in words: structural, accumulation, special values, inconclusive.

Ratio and size alone can't tell everything: where compare saw the tensors, its pattern wins over this.
"""

from __future__ import annotations

import math

from debug_spyre.triage.numbers import Mismatch
from debug_spyre.vocabulary.evidence import Severity

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
    return "" if ratio is None else f"{ratio:.1%} of {found.total} elements differ, "


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
