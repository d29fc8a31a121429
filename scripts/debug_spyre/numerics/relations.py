"""How wrong values relate to the reference: scaled, offset, constant, rolled, copied, permuted, transposed.

A relation counts only over the elements that are wrong, and only if random pairs of values would not agree as often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from debug_spyre.numerics.axes import SIGNIFICANT, log10_count, log10_matched
from debug_spyre.numerics.formats import Array

LEAST_SHARE = 0.85
LEAST_CHANGE = 0.1
SAMPLE = 1 << 14
SEED = 7

Close = Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Pair:
    """Device's and reference's elements, which of them are wrong, when two values agree, and how often by luck."""

    actual: Array
    expected: Array
    bad: Array
    close: Close
    luck: Callable[[Array], float]


@dataclass(frozen=True, slots=True)
class Relation:
    """What the wrong elements are: `kind` of contracts, its parameters, and how many of `tried` agree."""

    kind: str
    matched: int
    tried: int
    log_chance: float
    axis: int | None = None
    shift: int | None = None
    factor: float | None = None
    order: tuple[int, ...] | None = None
    source: int | None = None
    block: int | None = None
    wraps: bool = False
    alike: int | None = None  # elements of the region with this one value, right ones included

    @property
    def share(self) -> float:
        """Part of the wrong elements that it explains."""
        return self.matched / max(self.tried, 1)


@dataclass(frozen=True, slots=True)
class Wrong:
    """Wrong elements of one region, sampled: their values on the device and in the reference."""

    actual: Array
    expected: Array
    close: Close
    count: int  # all of them, sampled or not
    step: float  # relative step of the format
    scale: float  # rms of the reference
    pool: Array  # other values of the reference, to tell luck

    @property
    def least(self) -> float:
        """A factor or offset must differ by more than rounding does."""
        return min(6 * self.step, LEAST_CHANGE)

    def luck(self, candidate: Array) -> float:
        """How often a random other value of the reference would agree with the device's."""
        if not self.pool.size or not candidate.size:
            return 1.0
        other = np.random.default_rng(SEED).choice(self.pool, candidate.size)
        share = float(np.mean(self.close(candidate, other)))
        return max(share, 1.0 / (int(candidate.size) + 1))


def constant(wrong: Wrong) -> Relation | None:
    """All wrong elements have one value (zero included) where the reference varies; None if not."""
    values = wrong.actual[~np.isnan(wrong.actual)]
    if values.size < 3 or values.size < LEAST_SHARE * wrong.actual.size:
        return None
    value = float(np.median(values))
    with np.errstate(all="ignore"):
        same = (values == value) | (np.abs(values - value) <= 1.01 * wrong.step * abs(value))
    matched = int(np.count_nonzero(same))
    if matched < LEAST_SHARE * wrong.actual.size or np.count_nonzero(values == value) < 0.6 * values.size:
        return None
    near = wrong.close(wrong.pool, np.full_like(wrong.pool, value)) if wrong.pool.size else np.ones(1)
    luck = max(float(np.mean(near)), 1.0 / (wrong.pool.size + 1))
    chance = log10_matched(matched=matched, tried=wrong.actual.size, rate=luck) + 1
    if chance > SIGNIFICANT or (_spread(wrong.expected) == 0 and wrong.expected.size < 8):
        return None
    if np.all(wrong.expected == wrong.expected[:1]):
        return None  # a constant that became another: an offset, not a pattern of values
    kind = "zeros" if value == 0 else "constant"
    return Relation(kind, matched, wrong.actual.size, chance, factor=value)


def _spread(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max() - finite.min()) if finite.size else 0.0


def scale_or_offset(wrong: Wrong) -> Relation | None:
    """Wrong elements are the reference times one factor, or plus one number; None if neither fits."""
    found = [r for r in (_scale(wrong), _offset(wrong)) if r is not None]
    return max(found, key=lambda r: (round(r.share, 2), r.kind == "scale")) if found else None


def _scale(wrong: Wrong) -> Relation | None:
    with np.errstate(all="ignore"):
        big = np.abs(wrong.expected) > 0.05 * wrong.scale
        ratio = (wrong.actual / wrong.expected)[big & np.isfinite(wrong.actual)]
        if ratio.size < 4:
            return None
        factor = float(np.median(ratio[np.isfinite(ratio)])) if np.isfinite(ratio).any() else 0.0
        if factor == 0 or not np.isfinite(factor) or abs(factor - 1) < wrong.least:
            return None
        return _fitted(wrong, "scale", factor, wrong.expected * factor)


def _offset(wrong: Wrong) -> Relation | None:
    with np.errstate(all="ignore"):
        difference = (wrong.actual - wrong.expected)[np.isfinite(wrong.actual - wrong.expected)]
        if difference.size < 4:
            return None
        factor = float(np.median(difference))
        if abs(factor) < wrong.least * wrong.scale or factor == 0:
            return None
        return _fitted(wrong, "offset", factor, wrong.expected + factor)


def _fitted(wrong: Wrong, kind: str, factor: float, fit: Array) -> Relation | None:
    matched = int(np.count_nonzero(wrong.close(wrong.actual, fit)))
    tried = wrong.actual.size
    if matched < LEAST_SHARE * tried or _spread(wrong.expected) <= 4 * wrong.step * wrong.scale:
        return None
    shuffled = np.random.default_rng(SEED).permutation(fit)
    luck = max(float(np.mean(wrong.close(wrong.actual, shuffled))), 1.0 / (tried + 1))
    chance = log10_matched(matched=matched, tried=tried, rate=luck) + 2
    return Relation(kind, matched, tried, chance, factor=factor) if chance <= SIGNIFICANT else None


def transposed(pair: Pair) -> Relation | None:
    """The device has the reference's elements in the order of permuted axes, as if strides had been ignored; None if not."""
    actual, expected = pair.actual, pair.expected
    axes = [axis for axis in range(actual.ndim) if actual.shape[axis] > 1]
    if len(axes) < 2 or actual.ndim > 6:
        return None
    places = np.flatnonzero(pair.bad.reshape(-1))
    if places.size < 4:
        return None
    if places.size > 4096:
        places = np.random.default_rng(SEED).choice(places, 4096, replace=False)
    values = actual.reshape(-1)[places]
    best: Relation | None = None
    orders = _orders(actual.ndim, axes)
    for order in orders:
        shape = tuple(actual.shape[axis] for axis in order)
        steps = np.unravel_index(places, shape)
        where: list[Array] = [np.zeros(0, np.int64)] * actual.ndim
        for axis, step in zip(order, steps, strict=True):
            where[axis] = step
        matched = int(np.count_nonzero(pair.close(values, expected[tuple(where)])))
        if matched < LEAST_SHARE * places.size or (best and matched <= best.matched):
            continue
        chance = log10_matched(matched=matched, tried=places.size, rate=pair.luck(values)) + log10_count(len(orders))
        if chance <= SIGNIFICANT:
            moved = sum(1 for axis, other in enumerate(order) if axis != other)
            best = Relation("transpose" if moved == 2 else "permute", matched, places.size, chance, order=order)
    return best


def _orders(count: int, axes: list[int]) -> list[tuple[int, ...]]:
    """All orders of the axes but those that only move axes of length one; single swaps first."""
    found = []
    for moved in permutations(axes):
        order = list(range(count))
        for axis, other in zip(axes, moved, strict=True):
            order[axis] = other
        if tuple(order) != tuple(range(count)):
            found.append(tuple(order))
    return sorted(found, key=lambda order: sum(1 for axis, other in enumerate(order) if axis != other))


def flat_roll(pair: Pair) -> Relation | None:
    """The device has the reference rolled along the flat index (a dropped storage offset, for example); None if not."""
    a, e, wrong = pair.actual.reshape(-1), pair.expected.reshape(-1), pair.bad.reshape(-1)
    count = a.size
    if count < 8:
        return None
    window = slice(0, min(count, 1 << 16))
    x, y = _tame(a[window]), _tame(e[window])
    width = 1 << int(2 * x.size - 1).bit_length()
    alike = np.fft.irfft(np.fft.rfft(x, width) * np.conj(np.fft.rfft(y, width)), width)
    alike[0] = -np.inf
    reach = x.size - 1
    lags = np.concatenate((np.arange(1, reach + 1), np.arange(-reach, 0)))
    order = np.argsort(alike[lags % width])[::-1][:4]
    best: Relation | None = None
    places = np.flatnonzero(wrong)
    if places.size > SAMPLE:
        places = np.random.default_rng(SEED).choice(places, SAMPLE, replace=False)
    for lag in (int(lags[i]) for i in order):
        relation = _rolled(pair, places, lag)
        if relation and (best is None or relation.matched > best.matched):
            best = relation
    return best


def _rolled(pair: Pair, places: Array, lag: int) -> Relation | None:
    a, e = pair.actual.reshape(-1), pair.expected.reshape(-1)
    count = a.size
    origin = places - lag
    inside = (origin >= 0) & (origin < count)
    values = a[places]
    agree = pair.close(values, e[origin % count])
    tried, matched = int(inside.sum()), int(np.count_nonzero(agree & inside))
    if tried < 4 or tried < 0.5 * places.size or matched < LEAST_SHARE * tried:
        return None
    chance = log10_matched(matched=matched, tried=tried, rate=pair.luck(values)) + log10_count(2 * min(count, 1 << 16))
    if chance > SIGNIFICANT:
        return None
    outside = places.size - tried
    wraps = outside > 0 and int(np.count_nonzero(agree & ~inside)) >= LEAST_SHARE * outside
    matched += int(np.count_nonzero(agree & ~inside)) if wraps else 0
    axis = 0 if pair.actual.ndim == 1 else None
    return Relation("roll", matched, places.size, chance, axis=axis, shift=lag, wraps=wraps)


def _tame(values: Array) -> Array:
    """Values with outliers clipped and the mean taken out, for correlation."""
    values = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    middle = float(np.median(values))
    reach = 4 * np.median(np.abs(values - middle)) or float(np.abs(values).max()) or 1.0
    clipped = np.clip(values, middle - reach, middle + reach)
    tame: Array = clipped - clipped.mean()
    return tame
