"""A comparison in words: the few lines that an agent reads."""

from __future__ import annotations

from debug_spyre.numerics.comparison import Comparison
from debug_spyre.numerics.pattern import Pattern, number

MOST_PATTERNS = 5


def distinct(patterns: tuple[Pattern, ...]) -> list[Pattern]:
    """Patterns that say something new: a place's text already says what its values are."""
    found: list[Pattern] = []
    for pattern in patterns:
        if any(pattern.region and pattern.region == other.region for other in found):
            continue
        found.append(pattern)
    return found


def lines_of(comparison: Comparison) -> list[str]:
    """The comparison in at most ten lines: verdict with reason, patterns, largest difference, units in the last place."""
    m = comparison.measured
    lines = [f"{comparison.verdict.value}: {comparison.judgement.reason}"]
    shown = distinct(comparison.patterns)
    lines += [f"  {p.text}; chance {_chance(p.chance)}" for p in shown[:MOST_PATTERNS]]
    shape = "x".join(map(str, comparison.shape)) or "scalar"
    if m.mismatched:
        at = ", ".join(str(i) for i in comparison.index or ())
        lines.append(
            f"  {shape} {comparison.dtype}; largest difference {number(m.max_abs)} at ({at}), relative {number(m.max_rel)}"
        )
    else:
        lines.append(f"  {shape} {comparison.dtype}; largest difference {number(m.max_abs)}")
    if m.ulp["max"] is not None and not m.identical:
        text = f"  units in the last place: {_units(m.ulp)}"
        lines.append(text + (f"; of the card's 1-6-9 format: {_units(m.ulp_device)}" if m.ulp_device else ""))
    special = [f"{count:,} {name}" for name, count in m.special.items() if count]
    if special:
        lines.append(f"  where the reference is not: {', '.join(special)}")
    return lines


def _chance(chance: float) -> str:
    return "under 1e-12" if chance < 1e-12 else f"{chance:.0e}"


def _units(ulp: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in ulp.items())
