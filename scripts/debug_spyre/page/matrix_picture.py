"""The matrix before and after as a strip: a column is a test in the matrix's order; low passed, tall with a cross failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from debug_spyre.page.nodeid_layout import split
from debug_spyre.page.pictures import Picture, Shape, bars, crosses, num, path, text
from debug_spyre.runs.transitions import FAILING
from debug_spyre.triage.nodeids import features
from debug_spyre.vocabulary.evidence import Outcome
from debug_spyre.vocabulary.safe_text import Piece, count

WIDTH, LABEL = 1040, 74
ONE_STRIP, MOST_CELLS = 120, 1000
NEVER_RAN = frozenset({Outcome.SKIPPED, Outcome.XFAILED, Outcome.MISSING})


@dataclass(frozen=True, slots=True)
class Cell:
    """One test of the matrix, before and after; None: no outcome was seen. The id is as the run gave it."""

    nodeid: str
    before: Outcome | None
    after: Outcome | None
    is_new: bool = False  # it did not fail before and fails now


def cells(before: Mapping[str, Outcome], after: Mapping[str, Outcome], new: frozenset[str]) -> tuple[Cell, ...]:
    """One cell a test: the order of the run before, then what only the run after has. `new`: its new failures."""
    order = [*before, *(nodeid for nodeid in after if nodeid not in before)]
    return tuple(Cell(nodeid, before.get(nodeid), after.get(nodeid), nodeid in new) for nodeid in order)


def strip_picture(
    seen: Sequence[Cell],
    say: Callable[[object], str],
    *,
    before: Piece | None,
    after: Piece | None,
    parameter: str | None = None,
) -> Picture | None:
    """One strip up to 120 tests, one a file up to 1,000; None beyond that: counts a function say more."""
    if not seen or len(seen) > MOST_CELLS:
        return None
    tests = [replace(cell, nodeid=say(cell.nodeid)) for cell in seen]
    files = _by_file(tests)
    rows = [files] if len(tests) <= ONE_STRIP else [[item] for item in files]
    rows_after = after is not None
    shapes: list[Shape] = []
    y = 0.0
    for row in rows:
        shapes += _row(row, y, rows_after)
        y += 88 if rows_after else 52
        axis = _axis(row, y, parameter) if parameter else []
        shapes += axis
        y += 18 if axis else 0
    caption = [
        Piece("One column is one test, in the matrix's order.", "strong"),
        Piece(
            " Low green: passed. Tall red with a cross: failed. Frame: skipped, expected to fail, or not seen. Above: "
        ),
        before or Piece("no run before"),
    ]
    if after is not None:
        caption += [Piece("; below: "), after, Piece(". Dashed boxes did not fail before and fail now")]
    caption.append(Piece(f". {_counts('Before', [c.before for c in tests])}"))
    if after is not None:
        caption.append(Piece(f" {_counts('After', [c.after for c in tests])}"))
    new = [c for c in tests if c.is_new]
    description = f"{_counts('Before', [c.before for c in tests])} " + (
        f"{_counts('After', [c.after for c in tests])} {count(len(new), 'new failure')}."
        if rows_after
        else "No run after."
    )
    return Picture(
        "strip", WIDTH, y, "The matrix before and after", description, tuple(shapes), tuple(caption), wide=True
    )


def _counts(word: str, found: Sequence[Outcome | None]) -> str:
    failed = sum(1 for o in found if o in FAILING)
    passed = sum(1 for o in found if o in {Outcome.PASSED, Outcome.XPASSED})
    rest = len(found) - failed - passed
    return f"{word}: {passed:,} passed, {failed:,} failed" + (f", {rest:,} neither." if rest else ".")


def _by_file(tests: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    found: dict[str, list[Cell]] = {}
    for cell in tests:
        name = split(cell.nodeid)[0].split("::")[0].rpartition("/")[2]
        found.setdefault(name.removesuffix(".py").removeprefix("test_") or "other", []).append(cell)
    return list(found.items())


def _layout(files: list[tuple[str, list[Cell]]]) -> tuple[float, float]:
    """(width of a column with its gap, gap between files)."""
    gap = min(14.0, (WIDTH - LABEL) / 2 / len(files))  # of many files the gaps leave half of the room to the columns
    total = sum(len(found) for _, found in files)
    return min(15.0, (WIDTH - LABEL - gap * (len(files) - 1)) / total), gap


def _axis(files: list[tuple[str, list[Cell]]], y: float, parameter: str) -> list[Shape]:
    """The values of the separating parameter under the columns of a file, if all of them fit; bold where all fail."""
    step, gap = _layout(files)
    shapes: list[Shape] = []
    x = float(LABEL)
    for _, found in files:
        runs = [(key, list(group)) for key, group in groupby(found, lambda cell: features(cell.nodeid).get(parameter))]
        if all(key is not None and len(_value(key)) * 6.6 <= len(group) * step + 2 for key, group in runs):
            left = x
            for key, group in runs:
                width = len(group) * step - 3
                failing = all(cell.before in FAILING for cell in group)
                shapes.append(path("ax" if failing else "ln2", f"M{num(left)} {num(y - 1)}H{num(left + width)}"))
                shapes.append(text("lane c" if failing else "t3 c", left + width / 2, y + 13, _value(key)))
                left += len(group) * step
        x += len(found) * step + gap
    if shapes:
        shapes.append(text("t3", 0, y + 13, parameter if len(parameter) <= 11 else parameter[:10] + "…"))
    return shapes


def _value(value: str | float | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value or "")


def _row(files: list[tuple[str, list[Cell]]], y: float, rows_after: bool) -> list[Shape]:
    step, gap = _layout(files)
    width = max(step - max(min(3.0, step * 0.25), 0.4), 0.6)
    shapes = [text("lab", 0, y + 38, "before")]
    if rows_after:
        shapes.append(text("lab", 0, y + 72, "after"))
    x = float(LABEL)
    lines = (("before", y + 26),) + ((("after", y + 60),) if rows_after else ())
    for name, found in files:
        room = max(int(len(found) * step / 6.4), 3)
        label = name if len(name) <= room else name[: room - 1] + "…"
        shapes.append(text("t3", x, y + 12, f"{label} {len(found)}" if len(label) + 4 <= room else label))
        for which, top in lines:
            shapes += _line([getattr(c, which) for c in found], x, top, step=step, width=width)
        for index, cell in enumerate(found):
            if cell.is_new:
                box = f"M{num(x + index * step - 1.5)} {num(y + 18)}h{num(width + 3)}v64h{num(-width - 3)}z"
                shapes.append(
                    path("nf ax dash", box, href="#v-new", title=f"{cell.nodeid}: did not fail before, fails now")
                )
        x += len(found) * step + gap
    return shapes


def _line(found: list[Outcome | None], x: float, top: float, *, step: float, width: float) -> list[Shape]:
    def places(test: frozenset[Outcome | None] | set[Outcome | None]) -> list[float]:
        return [x + i * step for i, o in enumerate(found) if o in test]

    good = places({Outcome.PASSED, Outcome.XPASSED})
    bad = places(set(FAILING))
    rest = places({None, *NEVER_RAN})
    shapes = []
    if good:
        shapes.append(path("fg", bars((p, top + 12, width, 8) for p in good)))
    if bad:
        shapes.append(path("fr", bars((p, top - 4, width, 24) for p in bad)))
        if width >= 4.5:
            radius = min(3, width * 0.35)
            shapes.append(
                path(
                    "sb nf",
                    crosses(((p + width / 2, top + 2) for p in bad), radius),
                    width=1.6 if radius > 2.5 else 1.2,
                )
            )
    if rest:
        shapes.append(path("sx nf", bars((p + 0.5, top + 12.5, max(width - 1, 0.4), 7) for p in rest)))
    return shapes
