"""A small map of where a tensor is wrong: plain data (levels 0..5 in rows) and the same as inline SVG."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from debug_spyre.numerics.formats import Array
from debug_spyre.numerics.pattern import Pattern, axis_name

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
