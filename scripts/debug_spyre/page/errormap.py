"""Error maps: where the bad elements of a tensor lie, drawn from plain data of rows, columns and levels 0 to 5."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from debug_spyre.page.page_context import Frame
from debug_spyre.page.pictures import Picture, Shape, num, path, text
from debug_spyre.vocabulary.safe_text import Piece

WIDTH, LEFT, TOP = 400, 40, 22
MOST_CELLS, LEVELS = 4096, 6


def error_map(frame: Frame, run: str, entry: Mapping[str, Any], number: int) -> Picture | None:
    """A map of `entry["picture"]`: {rows, cols, values (row by row, 0..5), caption}; None where the data is not that."""
    data = entry.get("picture")
    grid = _grid(data)
    if grid is None or not isinstance(data, Mapping):
        return None
    rows, cols = len(grid), len(grid[0])
    if rows * cols == 1:  # one element has no place
        return None
    cell_w = (WIDTH - LEFT - 4) / cols
    cell_h = min(max(260 / rows, 1.5), max(cell_w, 3.0), 14.0) if rows > 4 else 14.0
    bottom = TOP + rows * cell_h
    shapes: list[Shape] = [
        path(
            "ln2 nf",
            f"M{LEFT - 0.5} {TOP - 0.5}h{num(cols * cell_w + 1)}v{num(rows * cell_h + 1)}h{num(-cols * cell_w - 1)}z",
        )
    ]
    shapes += [path(f"m{level}", d) for level, d in _levels(grid, cell_w, cell_h)]
    shapes.append(text("t3", LEFT, TOP - 7, frame.line(data.get("x") or data.get("columns") or "columns", 60)))
    shapes.append(text("t3 e", LEFT - 5, TOP + 9, frame.line(data.get("first_row") or 0, 6)))
    if rows > 1:
        shapes.append(text("t3 e", LEFT - 5, bottom, frame.line(data.get("last_row") or rows - 1, 6)))
    legend = bottom + 14
    for level in range(LEVELS):
        shapes.append(path(f"m{level} key", f"M{LEFT + level * 22} {num(legend)}h16v10h-16z"))
    shapes.append(text("t3", LEFT + LEVELS * 22 + 4, legend + 9, "none to most"))
    bad = sum(1 for row in grid for value in row if value)
    caption: list[Piece] = [Piece("Error map.", "strong"), Piece(" ")]
    caption += frame.prose(data.get("caption") or "Darker is larger (in the dark theme: brighter).", 500)
    if run:
        link = frame.run_link(run)
        caption += [Piece(" "), Piece(link.text, "", link.href)]
    for key in ("nodeid", "name"):
        if isinstance(entry.get(key), str):
            caption += [Piece(" "), Piece(frame.line(entry[key], 200), "code")]
    description = f"{rows} rows by {cols} columns; {bad} of {rows * cols} cells are not zero."
    return Picture(f"map-{number + 1}", WIDTH, legend + 16, "Error map", description, tuple(shapes), tuple(caption))


def _grid(data: object) -> list[list[int]] | None:
    if not isinstance(data, Mapping):
        return None
    rows, cols, values = data.get("rows"), data.get("cols"), data.get("values")
    if not isinstance(rows, int) or not isinstance(cols, int) or not isinstance(values, (list, tuple)):
        return None
    if rows < 1 or cols < 1 or rows * cols > MOST_CELLS:
        return None
    flat = [v for row in values for v in row] if values and isinstance(values[0], (list, tuple)) else list(values)
    if len(flat) != rows * cols or not all(isinstance(v, (int, float)) for v in flat):
        return None
    levels = [min(max(int(v), 0), LEVELS - 1) if math.isfinite(v) else LEVELS - 1 for v in flat]
    return [levels[i * cols : (i + 1) * cols] for i in range(rows)]


def _levels(grid: list[list[int]], cell_w: float, cell_h: float) -> list[tuple[int, str]]:
    """One path a level; neighbours in a row are one rectangle."""
    found: dict[int, list[str]] = {}
    for y, row in enumerate(grid):
        start = 0
        for x in range(1, len(row) + 1):
            if x < len(row) and row[x] == row[start]:
                continue
            width = (x - start) * cell_w
            found.setdefault(row[start], []).append(
                f"M{num(LEFT + start * cell_w)} {num(TOP + y * cell_h)}h{num(width)}v{num(cell_h)}h{num(-width)}z"
            )
            start = x
    return [(level, "".join(parts)) for level, parts in sorted(found.items())]
