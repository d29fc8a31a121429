"""Pictures as plain shapes: numbers and words only, so that a template can draw them and nothing else can get in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from debug_spyre.vocabulary.safe_text import Piece


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
