"""One pass over two tensors: which elements are off, which of them grossly, and by how much.

Works in blocks that fit the cache, so that 16 million elements cost a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from debug_spyre.numerics.formats import DEVICE, ON_DEVICE, Array, Format, Values, units
from debug_spyre.numerics.pattern import number
from debug_spyre.vocabulary.codec import to_json

MOST_SHOWN = 12
FAR = 4.0


def magnitudes(a: Array, e: Array, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Largest absolute value per index of each axis, of the device's result and of the reference.

    `a`, `e`: arrays of one shape; `names`: names of the axes.
    """
    table = []
    size_a, size_e = (np.abs(x.astype(np.float64)) for x in (a, e))
    for axis, length in enumerate(a.shape):
        others = tuple(i for i in range(a.ndim) if i != axis)
        top_a, top_e = (_largest_along(x, others) for x in (size_a, size_e))
        rows = [
            {"index": i, "actual": to_json(float(top_a[i])), "expected": to_json(float(top_e[i]))}
            for i in range(length)
        ]
        table.append({"axis": names[axis] if axis < len(names) else str(axis), "values": rows})
    return table


def _largest_along(size: Array, others: tuple[int, ...]) -> Array:
    clean = np.where(np.isnan(size), np.inf, size)
    largest: Array = clean.max(axis=others, initial=0.0) if others else clean
    return largest


def magnitude_lines(table: list[dict[str, Any]]) -> list[str]:
    """One line per axis: the indices whose largest value is far from the reference's."""
    lines = []
    for axis in table:
        far = [row for row in axis["values"] if _is_far(row)]
        ordinary = [float(row["actual"]) for row in axis["values"] if not _is_far(row)]
        text = f"  {axis['axis']} ({len(axis['values'])}): "
        if not far:
            lines.append(f"{text}magnitudes as the reference's, up to {number(max(ordinary, default=0.0))}")
            continue
        shown = ", ".join(
            f"{row['index']}: {number(float(row['actual']))} for {number(float(row['expected']))}"
            for row in far[:MOST_SHOWN]
        )
        more = f", and {len(far) - MOST_SHOWN} more" if len(far) > MOST_SHOWN else ""
        lines.append(f"{text}{shown}{more}; {len(ordinary)} as the reference")
    return lines


def _is_far(row: dict[str, Any]) -> bool:
    actual, expected = float(row["actual"]), float(row["expected"])
    if actual == expected:
        return False
    return not (actual <= FAR * expected and expected <= FAR * actual)


BLOCK = 1 << 17
NEAR_MAX = 60000.0  # the card's largest numbers are 65472 and 65504
GROSS_SIGMAS = 6.0
ROUNDINGS = 2.0  # so many units in the last place are no error of ours to explain
_Largest = tuple[float, float, int | None]
ULP_TOP = 1 << 12  # beyond this the histogram only counts


@dataclass(frozen=True, slots=True)
class Noise:
    """What the small errors look like: `sigma` of an ordinary element's error, `scale` (rms) of the reference."""

    sigma: float
    scale: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one comparison; `bad` and `gross` are flat masks."""

    bad: Array
    gross: Array
    noise: Noise
    rtol: float
    atol: float
    mismatched: int
    total: int
    max_abs: float
    max_rel: float
    index: int | None  # flat index of the largest absolute difference
    first: int | None  # flat index of the first element that is off
    ulp: dict[str, float | None]
    ulp_device: dict[str, float | None] | None
    special: dict[str, int]
    typical_rel: float  # median of |a - e| / |e| over the elements that are off (a sample of them)
    both_nan: int
    identical: bool


class _Histogram:
    """Quantiles of unit distances without keeping them."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self.counts: Array = np.zeros(ULP_TOP + 2, np.int64)
        self.top = 0.0

    def add(self, difference: Array, at: Array) -> None:
        steps = units(difference, at, self.form)
        self.top = max(self.top, float(steps.max(initial=0.0)))
        whole = np.minimum(np.rint(steps), ULP_TOP + 1).astype(np.int64)
        self.counts += np.bincount(whole, minlength=ULP_TOP + 2)

    def summary(self) -> dict[str, float | None]:
        total = int(self.counts.sum())
        if not total:
            return {"p50": None, "p99": None, "max": None}
        running = np.cumsum(self.counts)
        found: dict[str, float | None] = {}
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            place = int(np.searchsorted(running, share * total))
            found[name] = float(place) if place <= ULP_TOP else self.top
        return {**found, "max": round(self.top, 3)}


def working_type(a: Values, e: Values) -> Any:
    """float32 if it holds the elements of both exactly, else float64."""
    small = all(v.array.dtype == np.float32 or v.array.dtype.itemsize <= 2 for v in (a, e))
    return np.float32 if small else np.float64


def measure(a: Values, e: Values, *, rtol: float, atol: float) -> Measured:
    """Measure the differences of two tensors in one pass.

    An element is off where not |a - e| <= atol + rtol * |e|, torch.allclose's rule; NaN equals NaN, inf equals inf.
    `a`, `e`: arrays of one shape. The masks `bad` and `gross` of the answer are flat bool arrays; differences are absolute, in the tensor's own unit.
    """
    left, right = a.array.reshape(-1), e.array.reshape(-1)
    kind, exact = working_type(a, e), a.format.kind != "f" and e.format.kind != "f"
    noise = estimate_noise(sample(left, kind), sample(right, kind), a.format)
    total = left.size
    bad, gross = np.zeros(total, bool), np.zeros(total, bool)
    limit, rounding = GROSS_SIGMAS * noise.sigma, ROUNDINGS * a.format.step
    own, device = _Histogram(a.format), _Histogram(DEVICE) if a.dtype in ON_DEVICE else None
    special = dict.fromkeys(("nan", "inf", "overflow", "zero"), 0)
    best: _Largest = (-1.0, 0.0, None)
    both_nan, identical = 0, True
    with np.errstate(all="ignore"):
        for start in range(0, total, BLOCK):
            stop = min(start + BLOCK, total)
            raw_x, raw_y = left[start:stop], right[start:stop]
            x, y = raw_x.astype(kind, copy=False), raw_y.astype(kind, copy=False)
            difference, size_x, size_y = np.abs(x - y), np.abs(x), np.abs(y)
            finite = np.isfinite(difference)
            same = raw_x == raw_y
            wrong = ~same if exact and rtol == atol == 0 else ~(difference <= atol + rtol * size_y)
            if not finite.all():
                nan_both = np.isnan(x) & np.isnan(y)
                both_nan += int(nan_both.sum())
                same |= nan_both
                wrong |= ~finite
                wrong &= ~same
                difference = np.where(same, 0, difference)
            bad[start:stop] = wrong
            identical = identical and bool(same.all())
            if not identical:
                gross[start:stop] = wrong & ~(difference <= limit + rounding * size_y)
                _count_special(special, x, y, size_x, size_y)
                best = _largest(difference, size_y, start, best)
            if a.format.kind == "f":
                at = np.maximum(size_x, size_y)
                if not finite.all():
                    difference, at = difference[finite], at[finite]
                own.add(difference, at)
                if device is not None:
                    device.add(difference, at)
    mismatched = int(np.count_nonzero(bad))
    best_abs, best_rel, where = max(best[0], 0.0), best[1], best[2]
    return Measured(
        bad=bad, gross=gross, noise=noise, rtol=rtol, atol=atol, mismatched=mismatched, total=total,
        max_abs=best_abs, max_rel=best_rel, index=where if mismatched else None,
        first=int(bad.argmax()) if mismatched else None, typical_rel=_typical(left, right, bad, mismatched), ulp=own.summary(),
        ulp_device=device.summary() if device else None, special=special, both_nan=both_nan, identical=identical,
    )  # fmt: skip


def _typical(left: Array, right: Array, bad: Array, mismatched: int) -> float:
    if not mismatched:
        return 0.0
    places = np.flatnonzero(bad)
    places = places[:: -(-places.size // (1 << 14))]
    x, y = left[places].astype(np.float64), right[places].astype(np.float64)
    with np.errstate(all="ignore"):
        relative = np.abs(x - y) / np.abs(y)
    return float(np.median(np.nan_to_num(relative, nan=np.inf, posinf=np.inf)))


def _count_special(counts: dict[str, int], x: Array, y: Array, size_x: Array, size_y: Array) -> None:
    """Elements of these classes on the device where the reference has another."""
    counts["nan"] += int(np.count_nonzero(np.isnan(x) & ~np.isnan(y)))
    counts["inf"] += int(np.count_nonzero(np.isinf(x) & ~np.isinf(y)))
    near = (size_x >= NEAR_MAX) & (size_x <= 65520) & ~(size_y >= NEAR_MAX)
    counts["overflow"] += int(np.count_nonzero(near))
    counts["zero"] += int(np.count_nonzero((x == 0) & (y != 0)))


def _largest(difference: Array, size: Array, start: int, best: _Largest) -> _Largest:
    finite = np.where(np.isnan(difference), np.inf, difference)
    place = int(finite.argmax())
    absolute, relative_so_far, where = best
    if float(finite[place]) > absolute:
        absolute, where = float(finite[place]), start + place
    relative = np.where(finite == 0, 0, finite / size)
    return absolute, max(relative_so_far, float(np.nan_to_num(relative, nan=np.inf, posinf=np.inf).max())), where


def sample(flat: Array, kind: Any, *, most: int = 1 << 16) -> Array:
    """At most `most` elements of a flat array, spread evenly, as `kind`; the same places for arrays of one size."""
    if flat.size <= most:
        return flat.astype(kind, copy=False)
    return flat[sample_places(flat.size, most)].astype(kind)


def sample_places(total: int, most: int) -> Array:
    """`most` sorted positions spread over `total`: one in each stretch, at a random offset that is always the same."""
    edges = np.linspace(0, total, most + 1).astype(np.int64)
    offsets = np.random.default_rng(20).random(most)
    return edges[:-1] + (offsets * (edges[1:] - edges[:-1])).astype(np.int64)


def estimate_noise(x: Array, y: Array, form: Format) -> Noise:
    """Estimate the noise of ordinary elements from the 20 % with the smallest errors, as of a normal distribution.

    `x`, `y`: flat samples of device and reference. `sigma` and `scale` are absolute, in the tensor's unit.
    """
    with np.errstate(all="ignore"):
        difference = np.abs(x.astype(np.float64) - y)
    known = np.isfinite(difference) & (np.abs(y) < NEAR_MAX)
    difference, size = difference[known], np.abs(y[known]).astype(np.float64)
    if not difference.size or form.kind != "f":
        return Noise(0.0, float(np.sqrt(np.mean(size**2))) if size.size else 0.0)
    scale = float(np.sqrt(np.mean(np.minimum(size, 6 * np.median(size) + 1e-300) ** 2)))
    beyond = np.maximum(difference - ROUNDINGS * form.step * size, 0)
    low = float(np.quantile(beyond, 0.2)) / 0.2533  # 20 % of |N(0,1)| lie below 0.2533
    ceiling = max(float(np.quantile(beyond, 0.5)) / 0.6745, 0.0)
    sigma = min(low, ceiling) if low else 0.0
    step = min(form.step, 2.0**-9)
    if sigma > 0.05 * scale:  # nearly everything is off: these are no small errors
        sigma = 4 * step * scale
    return Noise(max(sigma, step * scale / 4), scale)
