"""The severity picture: each failure's mismatch ratio against its greatest absolute difference, one scope, log-log."""

from __future__ import annotations

import math
from collections.abc import Iterable

from debug_spyre.page.pictures import Picture, crosses, diamonds, path, text
from debug_spyre.vocabulary.evidence import Failure
from debug_spyre.vocabulary.safe_text import Piece, count

WIDTH, HEIGHT = 320, 264
LEFT, RIGHT, TOP, BOTTOM = 42, 312, 22, 226
MOST = 400


def severity_picture(
    members: Iterable[Failure], new: Iterable[Failure], *, before: Piece, after: Piece | None
) -> Picture | None:
    """Crosses: members before a fix; diamonds: failures that came after it. None where no failure has numbers."""
    old = [p for f in members if (p := _point(f)) is not None][:MOST]
    fresh = [p for f in new if (p := _point(f)) is not None][:MOST]
    if not old and not fresh:
        return None
    low, high = _decades([d for _, d in old + fresh])
    ratio_low = min(-3, math.floor(min(math.log10(r) for r, _ in old + fresh)))
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
    return Picture("severity", WIDTH, HEIGHT, "Severity of each failure", description, tuple(shapes), tuple(caption))


def _point(failure: Failure) -> tuple[float, float] | None:
    """(ratio, difference); NaN and infinity stand at the top edge, zero at the bottom."""
    if not failure.mismatched or not failure.total or failure.max_abs is None:
        return None
    return min(failure.mismatched / failure.total, 1.0), failure.max_abs


def _decades(differences: list[float]) -> tuple[int, int]:
    logs = [math.log10(d) for d in differences if math.isfinite(d) and d > 0]
    low = min(-2, math.floor(min(logs))) if logs else -2
    high = max(1, math.ceil(max(logs))) if logs else 1
    return max(low, -8), min(high, 12)


class _Scale:
    def __init__(self, ratio_low: int, low: int, high: int) -> None:
        self.ratio_low, self.low, self.high = max(ratio_low, -9), low, high

    def at(self, ratio: float, difference: float) -> tuple[float, float]:
        x = LEFT + (math.log10(ratio) - self.ratio_low) / -self.ratio_low * (RIGHT - LEFT)
        if math.isnan(difference) or difference == math.inf:
            return x, TOP - 6
        exponent = math.log10(difference) if difference > 0 else self.low
        share = (min(max(exponent, self.low), self.high) - self.low) / (self.high - self.low)
        return x, BOTTOM - share * (BOTTOM - TOP)

    def grid(self) -> Iterable:  # type: ignore[type-arg]
        for decade in range(self.ratio_low, 1):
            x, _ = self.at(10.0**decade, 1)
            words = f"{10.0 ** (decade + 2):g}" + (" %" if decade in {0, self.ratio_low} else "")
            if decade < 0:
                yield path("ln", f"M{x:.1f} {TOP}V{BOTTOM}")
            if decade in {0, self.ratio_low} or -self.ratio_low <= 4:
                yield text("t3 e" if decade == 0 else "t3 c", x, BOTTOM + 14, words)
        step = 1 if self.high - self.low <= 6 else 2
        for decade in range(self.low, self.high + 1, step):
            _, y = self.at(1, 10.0**decade)
            yield path("ln", f"M{LEFT} {y:.1f}H{RIGHT}")
            yield text("t3 e", LEFT - 5, y + 4, f"{10.0**decade:g}")
        _, one = self.at(1, 1.0)
        yield path("ax dash", f"M{LEFT} {one:.1f}H{RIGHT}")
        yield path("ax nf", f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}")
        yield text("t3", LEFT, HEIGHT - 6, "mismatched elements, log")
        yield text("t3", 0, 9, "greatest absolute difference, log; nan, inf on top")
        yield text("t3", LEFT + 5, one - 4, "above: structural is likely")
