"""Where the bad elements lie: regions that are a product of spans, one an axis, each beyond chance.

Found greedily: the axis that separates bad from good most is restricted first, the others are then judged inside.
What a region explains is set aside, and the rest is searched again, so that several patterns at once are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from debug_spyre.numerics.axes import SIGNIFICANT, Span, best_span, log10_filled
from debug_spyre.numerics.formats import Array

MOST_REGIONS = 4
LEAST_FILL = 0.25
LEAST_CONTRAST = 4.0
LONGEST_FLAT = 1 << 15


@dataclass(frozen=True, slots=True)
class Region:
    """Spans by axis (axis None: the flat index); `inside` bad of `size`, `outside` bad of the rest, log10 chance."""

    shape: tuple[int, ...]
    spans: dict[int | None, Span]
    inside: int
    size: int
    outside: int
    rest: int
    log_chance: float

    def indices(self, axis: int) -> Array:
        """The indices of `axis` that belong to it."""
        span = self.spans.get(axis)
        return span.indices() if span else np.arange(self.shape[axis])

    def holds(self, places: Array) -> Array:
        """Which of these flat positions lie in it."""
        if self.is_flat:
            span = self.spans[None]
            flat: Array = (places >= span.start) & (places < span.stop)
            return flat
        inside = np.ones(places.size, bool)
        for axis, index in enumerate(np.unravel_index(places, self.shape)):
            if axis in self.spans:
                member: Array = np.zeros(self.shape[axis], bool)
                member[self.indices(axis)] = True
                inside &= member[index]
        return inside

    @property
    def is_flat(self) -> bool:
        """It is a stretch of the flat index."""
        return None in self.spans


def find_regions(bad: Array, extents: tuple[int, ...] = ()) -> tuple[Region, ...]:
    """Regions where the bad elements lie, the one that explains most first; empty if they are scattered.

    `bad`: bool array of the tensor's shape. `extents`: sizes tried as periods.
    """
    if bad.size < 2 or not bad.any() or bad.all():
        return ()
    known: Array | None = None
    left = bad
    found: list[Region] = []
    for _ in range(MOST_REGIONS):
        region = _one_region(left, known, extents)
        if region is None:
            break
        found.append(region)
        known = np.ones(bad.shape, bool) if known is None else known
        clear(known, region)
        left = left & known
        if not left.any():
            break
    return tuple(found)


def clear(mask: Array, region: Region) -> None:
    """Set a contiguous bool array to False inside the region, in place."""
    view = mask.reshape(-1) if region.is_flat else mask
    view[_selection(region)] = False


def _selection(region: Region) -> tuple[Array, ...] | slice:
    if region.is_flat:
        span = region.spans[None]
        return slice(span.start, span.stop)
    return np.ix_(*(region.indices(axis) for axis in range(len(region.shape))))


def part(array: Array, region: Region) -> Array:
    """The elements of `array` inside the region; a view where the region consists of slices."""
    if region.is_flat:
        return array.reshape(-1)[_selection(region)]
    return _restricted(array, region.spans)


def _restricted(array: Array, spans: dict[int | None, Span], skip: int | None = None) -> Array:
    for axis, span in spans.items():
        if axis is None or axis == skip:
            continue
        where: slice | Array = slice(span.start, span.stop)
        if span.period is not None:
            where = slice(span.phase, None, span.period) if span.width == 1 else span.indices()
        array = array[(slice(None),) * axis + (where,)]
    return array


def _profile(array: Array, axis: int) -> Array:
    """How many are true at each index of `axis`."""
    before, length, after = prod(array.shape[:axis]), array.shape[axis], prod(array.shape[axis + 1 :])
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    bytes_ = array.reshape(before, length, after).view(np.uint8)
    if after == 1:
        return _column_sums(bytes_.reshape(before, length))
    rows = bytes_.reshape(before * length, after)
    counts = _row_sums(rows)
    return counts.reshape(before, length).sum(0).astype(np.float64)


def _row_sums(rows: Array) -> Array:
    """Sums of bytes of 0 and 1 along the last axis, eight at a time."""
    count, width = rows.shape
    whole = width // 8 * 8
    total = np.zeros(count, np.int64)
    if whole and width == whole:
        for start in range(0, whole, 8 * 255):
            words = rows[:, start : min(start + 8 * 255, whole)].view(np.uint64).sum(1, dtype=np.uint64)
            total += words.view(np.uint8).reshape(count, 8).sum(1, dtype=np.int64)
        return total
    return rows.sum(1, dtype=np.int64)


def _column_sums(rows: Array) -> Array:
    """Sums of bytes of 0 and 1 along the first axis, 255 rows at a time so that a byte holds them."""
    total = np.zeros(rows.shape[1], np.int64)
    for start in range(0, rows.shape[0], 255):
        total += np.add.reduce(rows[start : start + 255], axis=0, dtype=np.uint8)
    return total.astype(np.float64)


def _one_region(bad: Array, known: Array | None, extents: tuple[int, ...]) -> Region | None:
    shape = bad.shape
    axes = [axis for axis in range(bad.ndim) if shape[axis] > 1]
    spans: dict[int | None, Span] = {}
    total_bad = int(np.count_nonzero(bad))
    total = bad.size if known is None else int(np.count_nonzero(known))
    if not total_bad or total_bad == total:
        return None
    for _ in range(2 * len(axes) + 1):
        best: tuple[float, int, Span] | None = None
        for axis in axes:
            inner = _restricted(bad, spans, skip=axis)
            counts = _profile(inner, axis)
            size = (
                np.full(shape[axis], inner.size / shape[axis])
                if known is None
                else _profile(_restricted(known, spans, skip=axis), axis)
            )
            span = best_span(counts, size, extents)
            if span is None or span.merit < 1.0 or _same(span, spans.get(axis)):
                continue
            if axis in spans and len(spans) == 1:
                continue
            if best is None or span.merit > best[0]:
                best = (span.merit, axis, span)
        if best is None:
            break
        spans[best[1]] = best[2]
    product = _judged(bad, known, spans, total_bad, total) if spans else None
    flat = _flat_region(bad, known, product, total_bad, total) if bad.ndim > 1 else None
    chosen = flat or product
    return chosen if chosen and chosen.log_chance <= SIGNIFICANT and _stands_out(chosen) else None


def _same(one: Span, other: Span | None) -> bool:
    if other is None:
        return False
    return (one.start, one.stop, one.period, one.width) == (other.start, other.stop, other.period, other.width)


def _judged(bad: Array, known: Array | None, spans: dict[int | None, Span], total_bad: int, total: int) -> Region:
    inner = _restricted(bad, spans)
    size = inner.size if known is None else int(np.count_nonzero(_restricted(known, spans)))
    inside = int(np.count_nonzero(inner))
    tried = sum(span.tried for span in spans.values()) + np.log10(2.0) * bad.ndim
    chance = log10_filled(inside=inside, size=size, bad=total_bad, total=total) + float(tried)
    ordered = dict(sorted(spans.items(), key=lambda item: -1 if item[0] is None else item[0]))
    return Region(bad.shape, ordered, inside, size, total_bad - inside, total - size, min(chance, 0.0))


def _stands_out(region: Region) -> bool:
    fill = region.inside / max(region.size, 1)
    outside = region.outside / max(region.rest, 1)
    return (fill >= LEAST_FILL and fill >= LEAST_CONTRAST * outside) or (fill >= 0.9 and outside <= 0.6)


def _flat_region(bad: Array, known: Array | None, product: Region | None, total_bad: int, total: int) -> Region | None:
    """A stretch of the flat index, where it explains clearly more than the product does."""
    if product and product.inside >= 0.995 * total_bad and product.inside >= 0.995 * product.size:
        return None
    flat = bad.reshape(-1)
    live = np.ones(1, bool) if known is None else known.reshape(-1)
    step = -(-flat.size // LONGEST_FLAT)
    edges = np.arange(0, flat.size, step)
    counts = np.add.reduceat(flat, edges, dtype=np.int64).astype(np.float64)
    size: Array = np.diff(np.append(edges, flat.size)).astype(np.float64)
    if known is not None:
        size = np.add.reduceat(live, edges, dtype=np.int64).astype(np.float64)
    span = best_span(counts, size)
    if span is None or span.period is not None:
        return None
    start, stop = _sharpened(flat, span.start * step, min(span.stop * step, flat.size), step)
    if stop - start < 2:
        return None
    exact = Span(flat.size, start, stop, gain=span.gain, tried=2 * float(np.log10(flat.size)))
    inside = int(np.count_nonzero(flat[start:stop]))
    inner = stop - start if known is None else int(np.count_nonzero(live[start:stop]))
    chance = log10_filled(inside=inside, size=inner, bad=total_bad, total=total) + exact.tried + 1
    if product and chance > product.log_chance * 1.03 - 3:
        return None
    return Region(bad.shape, {None: exact}, inside, inner, total_bad - inside, total - inner, min(chance, 0.0))


def _sharpened(flat: Array, start: int, stop: int, step: int) -> tuple[int, int]:
    """The block's edges to the element: from the first bad one to the last within the outer bins."""
    if step > 1:
        low, high = max(0, start - step), min(flat.size, stop + step)
        head = np.flatnonzero(flat[low : start + step])
        tail = np.flatnonzero(flat[max(0, stop - step) : high])
        start = low + int(head[0]) if head.size else start
        stop = max(0, stop - step) + int(tail[-1]) + 1 if tail.size else stop
    return start, stop
