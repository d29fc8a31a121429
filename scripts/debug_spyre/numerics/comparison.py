"""Compare what the device gave with a reference: figures, verdict with its reason, patterns, picture; and the same in a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from debug_spyre.numerics.formats import Format, Values
from debug_spyre.numerics.measure import Measured, measure
from debug_spyre.numerics.pattern import Pattern, number
from debug_spyre.numerics.pattern_search import patterns_in
from debug_spyre.numerics.verdict import Judgement, Verdict, golden_figures, judge, picture
from debug_spyre.vocabulary.codec import to_json

LOOSE = 4.0  # a tolerance above so many times the format's own may hide a pattern


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole answer of one comparison."""

    judgement: Judgement
    shape: tuple[int, ...]
    dtype: str
    measured: Measured
    patterns: tuple[Pattern, ...]
    golden: dict[str, Any] | None
    picture: dict[str, Any] | None

    @property
    def verdict(self) -> Verdict:
        """same, accumulation, structural, special or inconclusive."""
        return self.judgement.verdict

    @property
    def index(self) -> tuple[int, ...] | None:
        """Where the largest difference is."""
        return place(self.measured.index, self.shape)

    def to_json(self) -> dict[str, Any]:
        """The form of contracts.md (`compare`) without "schema", and a few keys more."""
        m = self.measured
        return {
            "verdict": self.verdict.value, "reason": self.judgement.reason, "shape": list(self.shape), "dtype": self.dtype,
            "mismatched": m.mismatched, "total": m.total, "max_abs": to_json(m.max_abs),
            "max_rel": to_json(m.max_rel), "index": list(self.index) if self.index is not None else None,
            "first": list(place(m.first, self.shape) or ()) if m.first is not None else None,
            "ulp": _numbers(m.ulp), "ulp_device": _numbers(m.ulp_device) if m.ulp_device else None,
            "special": m.special, "rtol": m.rtol, "atol": m.atol,
            "patterns": [p.to_json() for p in self.patterns], "golden": self.golden, "picture": self.picture,
        }  # fmt: skip


def _numbers(values: dict[str, float | None]) -> dict[str, Any]:
    return {key: to_json(value) for key, value in values.items()}


def place(flat: int | None, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The index tuple of a flat position in a tensor of this shape; None for None."""
    return None if flat is None else tuple(int(i) for i in np.unravel_index(flat, shape))


def compare(
    a: Values, e: Values, *, rtol: float | None = None, atol: float | None = None, golden: Values | None = None,
    names: tuple[str, ...] = (), search: bool = True, draw: bool = True,
) -> Comparison:  # fmt: skip
    """Compare the device's result `a` with the reference `e`.

    `a`, `e`, `golden`: arrays of one shape, any dtype of `formats`; `golden` is the float64 result of the same inputs. `rtol` and `atol` default to
    torch's for the coarser of the two dtypes. `names`: names of the axes. `search`: look for patterns. `draw`: make the picture.

    Raises:
        ValueError: the shapes differ.
    """
    if a.array.shape != e.array.shape or (golden is not None and golden.array.shape != e.array.shape):
        raise ValueError(f"shapes differ: {a.array.shape} and {e.array.shape}")
    form = max((a.format, e.format), key=lambda f: f.step)
    a, e = _plain(a), _plain(e)
    rtol, atol = form.rtol if rtol is None else rtol, form.atol if atol is None else atol
    measured = measure(a, e, rtol=rtol, atol=atol)
    patterns = patterns_in(a, e, measured, form, names) if search and measured.mismatched else ()
    figures = golden_figures(a, e, golden, form) if golden is not None else None
    judgement = judge(measured, patterns, form, figures)
    if search and measured.mismatched and not patterns:
        beyond = _beyond_the_format(a, e, measured, form, names)
        if beyond is not None:
            patterns, judgement = beyond
    drawn = None
    if draw and measured.mismatched:
        drawn = picture(measured.bad.reshape(a.array.shape), patterns, names)
    return Comparison(judgement, a.array.shape, a.dtype, measured, patterns, figures, drawn)


def _beyond_the_format(
    a: Values, e: Values, measured: Measured, form: Format, names: tuple[str, ...]
) -> tuple[tuple[Pattern, ...], Judgement] | None:
    """The pattern that a loose tolerance hides: what exceeds the format's own tolerance, where that is much more.

    A test that allows 0.3 sees only the largest of values that are all twice too big, and these look scattered.
    """
    if measured.rtol <= LOOSE * form.rtol and measured.atol <= LOOSE * form.atol:
        return None
    strict = measure(a, e, rtol=form.rtol, atol=form.atol)
    if strict.mismatched < 2 * measured.mismatched:
        return None
    patterns = patterns_in(a, e, strict, form, names)
    found = judge(strict, patterns, form, None)
    if found.verdict is not Verdict.STRUCTURAL or not patterns:
        return None
    share = f"{measured.mismatched:,} of {measured.total:,} elements are off by the tolerance given"
    own = f"{strict.mismatched:,} by {form.name}'s own (rtol {number(form.rtol)}, atol {number(form.atol)})"
    return patterns, Judgement(Verdict.STRUCTURAL, f"{share}, {own}, in a pattern that chance does not make")


def _plain(values: Values) -> Values:
    """Booleans as numbers, so that they can be subtracted."""
    return Values(values.dtype, values.array.astype(np.float32)) if values.array.dtype == bool else values


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
