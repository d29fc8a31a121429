"""Looks at one pair of tensors: which regions are really worse, and what the wrong elements there are.

The patterns are looked for in the gross errors (far above the noise of the rest), so that accumulation noise,
scatter and outliers show none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from debug_spyre.numerics.formats import Array, Format, Values
from debug_spyre.numerics.location import LEAST_CONTRAST, Region, clear, find_regions, part
from debug_spyre.numerics.measure import NEAR_MAX, ROUNDINGS, Measured, sample_places, working_type
from debug_spyre.numerics.pattern import Pattern, patterns_of
from debug_spyre.numerics.relations import (
    LEAST_SHARE,
    SAMPLE,
    SEED,
    Close,
    Pair,
    Relation,
    Wrong,
    constant,
    flat_roll,
    scale_or_offset,
    transposed,
)
from debug_spyre.numerics.slices import matched_slices

SPREAD = 1 << 15
LEAST_SHARES = 2.5
NEARLY_ALL = 0.9  # of a tensor in one value class, to be a pattern without a place
MOSTLY = 0.3  # a relation without a place must hold for at least this part of the tensor


def patterns_in(a: Values, e: Values, m: Measured, form: Format, names: tuple[str, ...]) -> tuple[Pattern, ...]:
    """All patterns of the wrong elements, the one that explains most first; empty if chance explains them.

    `a`, `e`: device and reference, of one shape; `m`: their measurement; `form`: the coarser format.
    """
    shape = a.array.shape
    if not shape:
        return ()
    for mask in (m.gross, m.bad):
        if not mask.any():
            continue
        bad = mask.reshape(shape)
        looked = _Look(a, e, bad, m, form)
        regions = tuple(r for r in find_regions(bad, shape) if looked.is_worse(r))
        found = looked.explain(regions, names)
        if found or m.mismatched == int(np.count_nonzero(m.gross)):
            return tuple(found)
    return ()


def closeness(form: Format, measured: Measured) -> Close:
    """A function that tells whether two values count as equal: within a few ulp and the noise of the other elements."""
    noise = measured.noise
    relative = max(measured.rtol, 3 * form.step)
    absolute = measured.atol + min(4 * noise.sigma, 16 * form.step * noise.scale)

    def close(x: Array, y: Array) -> Array:
        with np.errstate(all="ignore"):
            size = np.abs(y.astype(np.float64))
            good: Array = np.abs(x - y.astype(np.float64)) <= absolute + relative * size
        return good | (x == y)

    return close


class _Look:
    """Looks at regions of one pair of tensors: are they really worse, and what are their values?"""

    def __init__(self, a: Values, e: Values, bad: Array, m: Measured, form: Format) -> None:
        kind = working_type(a, e)
        self.a, self.e = a.array.astype(kind, copy=False), e.array.astype(kind, copy=False)
        self.bad, self.m, self.form, self.close = bad, m, form, closeness(form, m)
        self.count = int(np.count_nonzero(bad))
        self.pool = self._pool()

    def _pool(self) -> Array:
        flat = self.e.reshape(-1)
        places = np.random.default_rng(SEED).integers(0, flat.size, min(flat.size * 4, SAMPLE))
        pool: Array = flat[places]
        return pool

    def luck(self, values: Array) -> float:
        """The share (0 to 1) of random reference values that agree with these values by chance."""
        other = np.random.default_rng(SEED).choice(self.pool, values.size)
        share = float(np.mean(self.close(values, other)))
        return max(share, 1.0 / (int(values.size) + 1))

    def is_worse(self, region: Region) -> bool:
        """Tell whether errors in the region exceed those elsewhere, also relative to the size of the values."""
        if self.form.kind != "f":
            return True
        places = np.arange(self.bad.size) if self.bad.size <= SPREAD else sample_places(self.bad.size, SPREAD)
        inside = region.holds(places)
        wrong = part(self.bad, region)
        with np.errstate(all="ignore"):
            x, y = part(self.a, region)[wrong][:SPREAD], part(self.e, region)[wrong][:SPREAD]
            if not np.isfinite(x - y).all():
                return True
            error = self._beyond_rounding(self.a.reshape(-1)[places], self.e.reshape(-1)[places])
            share = np.nan_to_num(error / np.abs(self.e.reshape(-1)[places]), nan=0.0, posinf=1e30)
            if inside.any() and not inside.all():  # noise that grows with the values: the same share of them everywhere
                there, elsewhere = (float(np.quantile(share[chosen], 0.75)) for chosen in (inside, ~inside))
                if there < LEAST_SHARES * elsewhere:
                    return False
            rest = error[~inside]
            typical = float(np.median(self._beyond_rounding(x, y)))
            usual = float(np.quantile(rest, 0.7)) if rest.size else 0.0
            scale, other = (_rms(self.e.reshape(-1)[places[chosen]]) for chosen in (inside, ~inside))
        if typical < 3 * self.m.noise.sigma:
            return False
        return scale == 0 or typical / scale >= LEAST_CONTRAST * usual / max(other, 1e-300)

    def _beyond_rounding(self, x: Array, y: Array) -> Array:
        error: Array = np.maximum(np.abs(x - y) - ROUNDINGS * self.form.step * np.abs(y), 0)
        return error

    def explain(self, regions: tuple[Region, ...], names: tuple[str, ...]) -> list[Pattern]:
        """Patterns of all regions, or of the whole where one relation explains most of it."""
        whole = self.count >= MOSTLY * self.bad.size
        meanings = self._meanings_of(regions)
        if whole and not (meanings and meanings[0]):
            moved = self._moved(None)
            what = (moved,) if moved else () if regions else self._meanings(None)
            if what:
                return patterns_of(None, what, names, self.count)
        found: list[Pattern] = []
        for region, what in zip(regions, meanings, strict=True):
            found += patterns_of(region, what, names, region.inside)
        return found

    def _meanings_of(self, regions: tuple[Region, ...]) -> list[tuple[Relation, ...]]:
        """Each region's, without the elements that an earlier one accounts for."""
        everything, found = self.bad, []
        for region in regions:
            found.append(self._meanings(region))
            if region is not regions[-1]:
                self.bad = self.bad.copy()
                clear(self.bad, region)
        self.bad = everything
        return found

    def _meanings(self, region: Region | None) -> tuple[Relation, ...]:
        wrong = self._wrong(region)
        classed = region is not None or self.count >= NEARLY_ALL * self.bad.size
        simple = ((_class_of(wrong) or constant(wrong)) if classed else None) or scale_or_offset(wrong)
        if simple and simple.kind in {"zeros", "constant"} and region is not None:
            alike = int(np.count_nonzero(part(self.a, region) == simple.factor))
            return (replace(simple, alike=alike),)
        if simple:
            return (simple,)
        moved = self._moved(region)
        return (moved,) if moved else ()

    def _wrong(self, region: Region | None) -> Wrong:
        a, e, bad = (x if region is None else part(x, region) for x in (self.a, self.e, self.bad))
        places = np.flatnonzero(np.ascontiguousarray(bad).reshape(-1))
        if places.size > SAMPLE:
            places = places[np.random.default_rng(SEED).integers(0, places.size, SAMPLE)]
        where = np.unravel_index(places, a.shape)
        return Wrong(
            actual=a[where].astype(np.float64), expected=e[where].astype(np.float64), close=self.close,
            count=int(np.count_nonzero(bad)), step=self.form.step, scale=self.m.noise.scale, pool=self.pool,
        )  # fmt: skip

    def _moved(self, region: Region | None) -> Relation | None:
        """Rolled, copied, permuted or transposed: the best that explains nearly all."""
        found: list[Relation] = []
        if region is None or not region.is_flat:
            for axis in range(self.a.ndim):
                relation = matched_slices(self._pair(*self._beside(region, axis)), axis)
                if relation:
                    found.append(relation)
        if region is None:
            whole = self._pair(self.a, self.e, self.bad)
            found += [r for r in (transposed(whole), flat_roll(whole)) if r]
        else:
            found += [r for r in [self._transposed_inside(region)] if r]
        order = ("roll", "transpose", "copy", "permute")
        return max(found, key=lambda r: (round(r.share, 2), -order.index(r.kind)), default=None)

    def _pair(self, a: Array, e: Array, bad: Array) -> Pair:
        return Pair(a, e, bad, self.close, self.luck)

    def _beside(self, region: Region | None, axis: int) -> tuple[Array, Array, Array]:
        """The tensors restricted on every axis but this one."""
        if region is None:
            return self.a, self.e, self.bad
        spans = {k: s for k, s in region.spans.items() if k != axis}
        beside = Region(region.shape, spans, 0, 0, 0, 0, 0.0)
        inside = np.zeros(self.bad.shape[axis], bool)
        inside[region.indices(axis)] = True
        shape = [1] * self.bad.ndim
        shape[axis] = -1
        return part(self.a, beside), part(self.e, beside), part(self.bad, beside) & inside.reshape(shape)

    def _transposed_inside(self, region: Region) -> Relation | None:
        if region.is_flat:
            return None
        a, e, bad = (np.ascontiguousarray(part(x, region)) for x in (self.a, self.e, self.bad))
        return transposed(self._pair(a, e, bad))


def _rms(values: Array) -> float:
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def _class_of(wrong: Wrong) -> Relation | None:
    """Nearly all wrong elements are NaN, or near the largest number, or infinite."""
    total = wrong.actual.size
    if total < 3:
        return None
    size = np.abs(wrong.actual)
    for kind, hit, factor in (
        ("nan", np.isnan(wrong.actual), None),
        ("overflow", np.isinf(size), float("inf")),
        ("overflow", (size >= NEAR_MAX) & (size <= 65520), None),
    ):
        matched = int(np.count_nonzero(hit))
        if matched >= LEAST_SHARE * total:
            typical = factor if factor or kind == "nan" else float(np.median(size[hit]))
            return Relation(kind, matched, total, -300.0, factor=typical)
    return None
