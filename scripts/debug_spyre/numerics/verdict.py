"""The verdict on a comparison, always with its reason, and a small map of where the tensor is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from debug_spyre.numerics.formats import DEVICE, Array, Format, Values
from debug_spyre.numerics.measure import Measured, sample
from debug_spyre.numerics.pattern import Pattern, axis_name, number

ROWS, COLUMNS, LEVELS = 24, 64, 5
COLOURS = ("#e8ecf1", "#f6d8ae", "#f0b27a", "#e67e53", "#cf4a3c", "#8e1b3a")


def picture(bad: Array, patterns: tuple[Pattern, ...], names: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """A small map of the wrong elements: {"rows", "cols", "values", "caption"}; None for a tensor without elements.

    `bad`: bool array of the tensor's shape. A value is a level from 0 (none wrong) to 5 (all wrong).
    """
    if not bad.size:
        return None
    if bad.ndim <= 1:
        grid, rows_name, columns_name = _wrapped(bad.reshape(-1))
        crop = False
    else:
        grid, rows_name, columns_name, crop = _plane(bad, patterns, names)
    shape = grid.shape
    if crop:
        grid = grid[:ROWS, :COLUMNS]
    share = _binned(_binned(grid.astype(np.float32), 0, ROWS), 1, COLUMNS)
    levels = np.where(share > 0, np.clip(np.ceil(share * LEVELS), 1, LEVELS), 0).astype(int)
    part = f"the first {grid.shape[0]} x {grid.shape[1]} of " if crop and grid.shape != shape else ""
    caption = f"share of wrong elements, {part}{rows_name} ({shape[0]}) down, {columns_name} ({shape[1]}) across"
    return {"rows": levels.shape[0], "cols": levels.shape[1], "values": levels.tolist(), "caption": caption}


def _wrapped(flat: Array) -> tuple[Array, str, str]:
    if flat.size <= COLUMNS:
        return flat[None, :], "one row", "the elements"
    rows = -(-flat.size // COLUMNS)
    padded = np.zeros(rows * COLUMNS, bool)
    padded[: flat.size] = flat
    return padded.reshape(rows, COLUMNS), "rows of 64 elements", "within the row"


def _plane(bad: Array, patterns: tuple[Pattern, ...], names: tuple[str, ...]) -> tuple[Array, str, str, bool]:
    """The two axes that show most: those of the first pattern, then the last ones; the others are averaged."""
    region = patterns[0].region if patterns else ()
    wanted = [span["axis"] for span in region if span["axis"] is not None]
    wanted += [axis for axis in range(bad.ndim - 1, -1, -1) if axis not in wanted and bad.shape[axis] > 1]
    wanted += [axis for axis in range(bad.ndim - 1, -1, -1) if axis not in wanted]
    chosen = sorted(wanted[:2])
    others = tuple(axis for axis in range(bad.ndim) if axis not in chosen)
    grid = bad.mean(axis=others, dtype=np.float32) if others else bad
    periods = [span["period"] for span in region if span["axis"] in chosen and span["period"]]
    cells = {chosen[0]: ROWS, chosen[1]: COLUMNS}
    crop = any(span["period"] and 2 * bad.shape[span["axis"]] > cells[span["axis"]] * span["period"]
               for span in region if span["axis"] in chosen) and bool(periods)  # fmt: skip
    return grid, axis_name(chosen[0], names), axis_name(chosen[1], names), crop


def _binned(grid: Array, axis: int, most: int) -> Array:
    length = grid.shape[axis]
    if length <= most:
        return grid
    edges = np.linspace(0, length, most + 1).astype(int)[:-1]
    sizes: Array = np.diff(np.append(edges, length))
    sums: Array = np.add.reduceat(grid, edges, axis=axis)
    return sums / sizes.reshape((-1, 1) if axis == 0 else (1, -1))


def as_svg(data: dict[str, Any], *, cell: int = 10) -> str:
    """The picture as one SVG element without any external reference; `cell` is the size of a cell in pixels."""
    width, height = data["cols"] * cell, data["rows"] * cell
    title = escape(data["caption"])
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height + 18}" '
            f'width="{width}" height="{height + 18}"><title>{title}</title>'
        ),
        f'<rect width="{width}" height="{height}" fill="{COLOURS[0]}"/>',
    ]
    for row, values in enumerate(data["values"]):
        for column, level in enumerate(values):
            if level:
                parts.append(
                    f'<rect x="{column * cell}" y="{row * cell}" width="{cell}" height="{cell}" fill="{COLOURS[level]}"/>'
                )
    parts.append(f'<text x="0" y="{height + 14}" font-size="11" font-family="sans-serif">{title}</text></svg>')
    return "\n".join(parts) + "\n"


LARGE = 0.1  # of the reference's rms: no rounding does that
TINY = 1e-200  # a reference of this size is zero: nothing to measure a difference by but
WILD = 1.0  # this
FEW = 0.02  # scattered outliers up to this part don't make a structure


class Verdict(StrEnum):
    """How two tensors relate."""

    SAME = "same"
    ACCUMULATION = "accumulation"
    STRUCTURAL = "structural"
    SPECIAL = "special"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and why."""

    verdict: Verdict
    reason: str


def golden_figures(a: Values, e: Values, golden: Values, form: Format) -> dict[str, Any]:
    """Errors (rms) of device and reference against the float64 golden result, relative to its rms.

    `floor` is what the device's number format allows; `ratio` is device over reference.
    """
    x, y, g = (sample(v.array.reshape(-1), np.float64) for v in (a, e, golden))
    with np.errstate(all="ignore"):
        known = np.isfinite(x) & np.isfinite(y) & np.isfinite(g)
        x, y, g = x[known], y[known], g[known]
        scale = float(np.sqrt(np.mean(g**2))) if g.size else 0.0
        device = float(np.sqrt(np.mean((x - g) ** 2))) if g.size else 0.0
        reference = float(np.sqrt(np.mean((y - g) ** 2))) if g.size else 0.0
    floor = (DEVICE.step if form.name in {"float16", "bfloat16"} else form.step) * scale
    return {
        "device": device / scale if scale else device, "reference": reference / scale if scale else reference,
        "floor": floor / scale if scale else 0.0, "ratio": device / max(reference, floor / 4, 1e-300),
    }  # fmt: skip


def judge(m: Measured, patterns: tuple[Pattern, ...], form: Format, golden: dict[str, Any] | None) -> Judgement:
    """The verdict and its reason, from the measurement, the patterns and, if there is one, the golden result."""
    if not m.total:
        return Judgement(Verdict.INCONCLUSIVE, "the tensors have no elements: nothing was compared")
    if m.both_nan == m.total:
        return Judgement(Verdict.INCONCLUSIVE, "both tensors are NaN everywhere: nothing can be compared")
    if not m.mismatched:
        exact = (
            "bit for bit the same values" if m.identical else f"all within rtol {number(m.rtol)}, atol {number(m.atol)}"
        )
        return Judgement(Verdict.SAME, exact)
    share = f"{m.mismatched:,} of {m.total:,} elements ({100 * m.mismatched / m.total:.3g} %) are off"
    wild = m.special["nan"] + m.special["inf"]
    if patterns and any(p.kind != "nan" for p in patterns):
        return Judgement(Verdict.STRUCTURAL, f"{share}, in a pattern that chance does not make")
    if wild and wild >= 0.5 * m.mismatched:
        what = "NaN" if m.special["nan"] >= m.special["inf"] else "infinite"
        return Judgement(Verdict.SPECIAL, f"{share}, {wild:,} of them {what} where the reference is not")
    if patterns:
        return Judgement(Verdict.STRUCTURAL, f"{share}, in a pattern that chance does not make")
    if golden is not None:
        return _three_way(share, golden)
    return _by_size(m, share, form)


def _three_way(share: str, golden: dict[str, Any]) -> Judgement:
    device, reference = golden["device"], golden["reference"]
    figures = f"against the golden result the device is off by {number(device)}, the reference by {number(reference)}"
    if reference > LARGE:
        return Judgement(Verdict.INCONCLUSIVE, f"{share}; {figures}: the problem is ill conditioned")
    if golden["ratio"] <= 2 or device <= 2 * golden["floor"]:
        return Judgement(Verdict.ACCUMULATION, f"{share}; {figures}: no worse than the format allows")
    if device > LARGE:
        return Judgement(Verdict.STRUCTURAL, f"{share}; {figures}")
    return Judgement(Verdict.INCONCLUSIVE, f"{share}; {figures}: {number(golden['ratio'])} times as much, no pattern")


def _by_size(m: Measured, share: str, form: Format) -> Judgement:
    if form.kind != "f":
        return Judgement(Verdict.STRUCTURAL, f"{share}; values of {form.name} are exact or wrong")
    gross = int(np.count_nonzero(m.gross))
    scale = max(m.noise.scale, 1e-300)
    worst, typical = m.max_abs / scale, m.noise.sigma / scale
    if m.total < 8:
        relative = m.max_rel
        if relative >= LARGE:  # near a zero any rounding is a large part of the value
            is_wild = m.max_abs >= WILD if m.noise.scale < TINY else worst >= LARGE
            if is_wild and np.isfinite(relative):
                return Judgement(Verdict.STRUCTURAL, f"{share} by {number(relative)} of the value")
            by = f"{share} by up to {number(m.max_abs)}, where the reference is near zero"
            if is_wild:
                return Judgement(Verdict.STRUCTURAL, by)
            return Judgement(Verdict.INCONCLUSIVE, f"{by}; too few elements to tell")
        if relative <= 16 * form.step:
            return Judgement(Verdict.ACCUMULATION, f"{share} by {number(relative)} of the value, a few roundings")
        return Judgement(Verdict.INCONCLUSIVE, f"{share} by {number(relative)} of the value; too few elements to tell")
    if gross >= FEW * m.total and m.typical_rel < LARGE / 2 and worst < WILD:
        return Judgement(
            Verdict.ACCUMULATION,
            f"{share}, half of them by less than {number(m.typical_rel)} of their value; no pattern",
        )
    if gross >= 0.3 * m.total and worst >= LARGE:
        return Judgement(
            Verdict.STRUCTURAL, f"{share}, by up to {number(worst)} of the reference's rms; no pattern found"
        )
    if gross == 0 and worst < LARGE:
        return Judgement(
            Verdict.ACCUMULATION,
            f"{share}, none by more than {number(worst)} of the reference's rms; errors look like noise",
        )
    if gross <= FEW * m.total:
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"{share}; {gross:,} scattered outliers (up to {number(worst)} of the rms) over noise of {number(typical)}; no pattern",
        )
    if worst < LARGE:
        return Judgement(
            Verdict.ACCUMULATION, f"{share}, none by more than {number(worst)} of the reference's rms; no pattern"
        )
    return Judgement(
        Verdict.INCONCLUSIVE, f"{share}, {gross:,} grossly, up to {number(worst)} of the rms; no pattern found"
    )
