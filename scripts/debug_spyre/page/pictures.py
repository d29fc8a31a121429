"""Pictures as plain shapes, numbers and words only, so that a template can draw them: error maps, and severity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.page.page_context import Frame
from debug_spyre.vocabulary.evidence import Failure
from debug_spyre.vocabulary.safe_text import Piece, count


@dataclass(frozen=True, slots=True)
class Shape:
    """A path or a text; `css` gives its colour. `href` and `title` are optional."""

    kind: str  # path, text
    css: str
    d: str = ""
    x: float = 0
    y: float = 0
    text: str = ""
    href: str = ""
    title: str = ""
    width: float = 0  # stroke width of a path; 0: as the class says


@dataclass(frozen=True, slots=True)
class Picture:
    """An inline SVG with its words: a title, a description, a caption that says how to read it."""

    id: str
    width: float
    height: float
    title: str
    description: str
    shapes: tuple[Shape, ...]
    caption: tuple[Piece, ...] = ()
    wide: bool = False
    natural: bool = False  # drawn in its own size, not as wide as its place


def num(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def bars(places: Iterable[tuple[float, float, float, float]]) -> str:
    """Filled rectangles (x, y, width, height) as one path."""
    return "".join(f"M{num(x)} {num(y)}h{num(w)}v{num(h)}h{num(-w)}z" for x, y, w, h in places)


def crosses(places: Iterable[tuple[float, float]], radius: float = 3.5) -> str:
    """Crosses around their middles as one path."""
    r = radius
    return "".join(
        f"M{num(x - r)} {num(y - r)}l{num(2 * r)} {num(2 * r)}m0 {num(-2 * r)}l{num(-2 * r)} {num(2 * r)}"
        for x, y in places
    )


def diamonds(places: Iterable[tuple[float, float]], radius: float = 5) -> str:
    """Diamonds around their middles as one path."""
    r = num(radius)
    return "".join(f"M{num(x)} {num(y - radius)}l{r} {r} -{r} {r} -{r} -{r}z" for x, y in places)


def text(css: str, x: float, y: float, words: str) -> Shape:
    """A text."""
    return Shape("text", css, x=round(x, 1), y=round(y, 1), text=words)


def path(css: str, d: str, *, width: float = 0, href: str = "", title: str = "") -> Shape:
    """A path."""
    return Shape("path", css, d=d, width=width, href=href, title=title)


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


WIDTH_OF_GRADES, HEIGHT = 320, 264
LEFT_OF_GRADES, RIGHT, TOP_OF_GRADES, BOTTOM = 42, 312, 22, 226
MOST, MOST_VALUES = 400, 16
ALIKE = 2.0  # marks within this factor in both directions are one spot: the table says it better


def severity_picture(
    members: Iterable[Failure], new: Iterable[Failure], *, before: Piece, after: Piece | None
) -> Picture | None:
    """Crosses: members before a fix; diamonds: failures that came after it. None where no failure has numbers."""
    old = [p for f in members if (p := _point(f)) is not None][:MOST]
    fresh = [p for f in new if (p := _point(f)) is not None][:MOST]
    if not old and not fresh:
        return None
    if not fresh and _is_one_spot(old):
        return None
    low, high = _decades([d for _, d in old + fresh])
    ratio_low = min(-1, math.floor(min(math.log10(r) for r, _ in old + fresh)))
    place = _Scale(ratio_low, low, high)
    shapes = [*place.grid()]
    if old:
        shapes.append(
            path("sr nf", crosses(place.at(*p) for p in old), width=1.8, title=count(len(old), "failing member"))
        )
    if fresh:
        shapes.append(
            path("sa nf", diamonds(place.at(*p) for p in fresh), width=1.8, title=count(len(fresh), "new failure"))
        )
    structural = sum(1 for _, d in old if d >= 1)
    description = f"{structural} of {len(old)} failing members differ by 1 or more."
    if fresh:
        description += f" {count(len(fresh), 'new failure')} after the fix."
    caption = [
        Piece("Severity of each failure.", "strong"),
        Piece(" Right and up is worse. Crosses: members in "),
        before,
    ]
    if after is not None and fresh:
        caption += [Piece("; diamonds: new failures in "), after]
    caption.append(Piece(". One scope only; the pattern decides, not the ratio."))
    return Picture(
        "severity", WIDTH_OF_GRADES, HEIGHT, "Severity of each failure", description, tuple(shapes), tuple(caption)
    )


def separator_picture(name: str, failing: Sequence[str], passing: Sequence[str]) -> Picture | None:
    """One parameter's values in order, tall red where the tests fail, low green where they pass; None without both."""
    values = sorted({*failing, *passing}, key=_in_order)
    if not failing or not passing or len(values) > MOST_VALUES:
        return None
    step = min((WIDTH_OF_GRADES - 4) / len(values), 64.0)
    bad = [(i * step + 2, 20.0, step - 4, 28.0) for i, v in enumerate(values) if v in failing]
    good = [(i * step + 2, 42.0, step - 4, 6.0) for i, v in enumerate(values) if v in passing]
    shapes = [text("t3", 2, 11, name), path("fr", bars(bad)), path("fg", bars(good))]
    shapes += [
        text("t3 c", i * step + step / 2, 62 + 12 * (i % 2 if len(values) > 6 else 0), v) for i, v in enumerate(values)
    ]
    said = f"Failing at {', '.join(v for v in values if v in failing)}; passing at {', '.join(v for v in values if v in passing)}."
    caption = (
        Piece(f"What {name} tells apart.", "strong"),
        Piece(" Tall red: tests with this value fail. Low green: they pass."),
    )
    return Picture(
        "separator", WIDTH_OF_GRADES, 82, f"Failing and passing tests by {name}", said, tuple(shapes), caption
    )


def _in_order(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), ""
    except ValueError:
        return 1, 0.0, value


def _point(failure: Failure) -> tuple[float, float] | None:
    """(ratio, difference); NaN and infinity stand at the top edge, zero at the bottom."""
    if not failure.mismatched or not failure.total or failure.max_abs is None:
        return None
    return min(failure.mismatched / failure.total, 1.0), failure.max_abs


def _is_one_spot(points: list[tuple[float, float]]) -> bool:
    told = [d for _, d in points if math.isfinite(d) and d > 0]
    if len(points) < 2 or len(told) != len(points):
        return False
    ratios = [r for r, _ in points]
    return max(ratios) <= ALIKE * min(ratios) and max(told) <= ALIKE * min(told)


def _decades(differences: list[float]) -> tuple[int, int]:
    logs = [math.log10(d) for d in differences if math.isfinite(d) and d > 0]
    low = min(-1, math.floor(min(logs))) if logs else -2
    high = max(1, math.ceil(max(logs))) if logs else 1
    return max(low, -8), min(high, 12)


class _Scale:
    def __init__(self, ratio_low: int, low: int, high: int) -> None:
        self.ratio_low, self.low, self.high = max(ratio_low, -9), low, high

    def at(self, ratio: float, difference: float) -> tuple[float, float]:
        x = LEFT_OF_GRADES + (math.log10(ratio) - self.ratio_low) / -self.ratio_low * (RIGHT - LEFT_OF_GRADES)
        if math.isnan(difference) or difference == math.inf:
            return x, TOP_OF_GRADES - 6
        exponent = math.log10(difference) if difference > 0 else self.low
        share = (min(max(exponent, self.low), self.high) - self.low) / (self.high - self.low)
        return x, BOTTOM - share * (BOTTOM - TOP_OF_GRADES)

    def grid(self) -> Iterable:  # type: ignore[type-arg]
        for decade in range(self.ratio_low, 1):
            x, _ = self.at(10.0**decade, 1)
            words = f"{10.0 ** (decade + 2):g}" + (" %" if decade in {0, self.ratio_low} else "")
            if decade < 0:
                yield path("ln", f"M{x:.1f} {TOP_OF_GRADES}V{BOTTOM}")
            if decade in {0, self.ratio_low} or -self.ratio_low <= 4:
                yield text("t3 e" if decade == 0 else "t3 c", x, BOTTOM + 14, words)
        step = 1 if self.high - self.low <= 6 else 2
        for decade in range(self.low, self.high + 1, step):
            _, y = self.at(1, 10.0**decade)
            yield path("ln", f"M{LEFT_OF_GRADES} {y:.1f}H{RIGHT}")
            yield text("t3 e", LEFT_OF_GRADES - 5, y + 4, f"{10.0**decade:g}")
        _, one = self.at(1, 1.0)
        yield path("ax dash", f"M{LEFT_OF_GRADES} {one:.1f}H{RIGHT}")
        yield path("ax nf", f"M{LEFT_OF_GRADES} {TOP_OF_GRADES}V{BOTTOM}H{RIGHT}")
        yield text("t3", LEFT_OF_GRADES, HEIGHT - 6, "mismatched elements, log")
        yield text("t3", 0, 9, "greatest absolute difference, log; nan, inf on top")
        yield text("t3", LEFT_OF_GRADES + 5, one - 4, "above: structural is likely")
