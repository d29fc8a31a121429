"""Along one axis: which indices are bad? The best block or period for a profile of counts, and how likely pure scatter shows as much.

A profile holds, per index, how many elements are bad and how many there are. Candidates are single indices, blocks
[start, stop), and residues [phase, phase + width) modulo a period; the best is the one that separates bad from good
most (two-rate likelihood).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, log10

import numpy as np

from debug_spyre.numerics.formats import Array

LN10 = log(10)
SIGNIFICANT = -2.5  # log10: at most three in a thousand, over all that was tried


def _log_choose(n: float, k: float) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def log10_filled(*, inside: float, size: float, bad: float, total: float) -> float:
    """log10 of the chance that `bad` elements thrown at random on `total` put `inside` or more into a set of `size`.

    The hypergeometric tail, bounded by its largest term times the number of terms.
    """
    if inside <= 0 or size <= 0 or inside / size <= bad / max(total, 1):
        return 0.0
    inside, bad = min(inside, size, bad), min(bad, total)
    point = _log_choose(size, inside) + _log_choose(total - size, bad - inside) - _log_choose(total, bad)
    terms = max(1.0, min(size, bad) - inside + 1)
    return min(0.0, (point + log(terms)) / LN10)


def log10_matched(*, matched: float, tried: float, rate: float) -> float:
    """log10 of a bound on the chance that `matched` of `tried` elements agree when each agrees with probability `rate`.

    Chernoff's bound for a binomial tail.
    """
    if tried <= 0 or matched <= 0:
        return 0.0
    share = matched / tried
    rate = min(max(rate, 1e-9), 1.0)
    if share <= rate:
        return 0.0
    gain = share * log(share / rate)
    if share < 1:
        gain += (1 - share) * log((1 - share) / (1 - rate))
    return -tried * gain / LN10


def as_probability(log10_chance: float) -> float:
    """10 ** `log10_chance`; numbers below 1e-300 become 1e-300, so that they can be printed."""
    return float(10.0 ** max(log10_chance, -300.0)) if log10_chance < 0 else 1.0


def log10_count(number: float) -> float:
    """log10 of a number of hypotheses."""
    return log10(max(number, 1.0))


STICK = 64
ALL_PERIODS = 96  # all periods up to here are tried, longer ones where the profile repeats
MOST_PERIODS = 160
NATURAL = tuple(sorted({64, 32, 128, 80, 96, 48, 192, 256, 512, 1024, 2048, 4096, 8192}))


@dataclass(frozen=True, slots=True)
class Span:
    """A set of indices of one axis of length `length`: slice, block or period (with phase and width)."""

    length: int
    start: int
    stop: int
    period: int | None = None
    phase: int | None = None
    width: int = 1
    gain: float = 0.0
    tried: float = 0.0  # log10 of how many such candidates there were

    @property
    def merit(self) -> float:
        """log10 likelihood gained, less the log10 number of ways to gain it by luck."""
        return self.gain / LN10 - self.tried

    @property
    def kind(self) -> str:
        """What contracts call it."""
        if self.period is not None:
            return "period"
        return "slice" if self.stop - self.start == 1 else "block"

    def indices(self) -> Array:
        """All its indices, ascending."""
        if self.period is None or self.phase is None:
            return np.arange(self.start, self.stop)
        every = np.arange(self.length)
        return every[(every - self.phase) % self.period < self.width]


@dataclass(frozen=True, slots=True)
class _Profile:
    bad: Array
    size: Array
    rate: Array
    total_bad: float
    total: float


def gain_of(inside_bad: Array, inside: Array, bad: float, total: float) -> Array:
    """Log likelihood ratio (natural log) of two error rates, inside and outside, against one common rate.

    `inside_bad` of `inside` elements are bad, `bad` of `total` in all; 0 where the inside has no higher rate.
    """
    with np.errstate(all="ignore"):
        outside_bad, outside = bad - inside_bad, total - inside
        p1 = np.where(inside > 0, inside_bad / inside, 0)
        p0 = np.where(outside > 0, outside_bad / outside, 0)
        p = bad / total
        ratio = _entropy(inside_bad, inside, p1) + _entropy(outside_bad, outside, p0)
        base = _entropy(np.asarray(bad), np.asarray(total), np.asarray(p))
    return np.where(p1 > p0, ratio - base, 0.0)


def _entropy(hits: Array, tries: Array, rate: Array) -> Array:
    one = np.where(hits > 0, hits * np.log(np.maximum(rate, 1e-300)), 0)
    none = tries - hits
    return one + np.where(none > 0, none * np.log(np.maximum(1 - rate, 1e-300)), 0)


def best_span(bad: Array, size: Array, extents: tuple[int, ...] = ()) -> Span | None:
    """The span of indices that explains a profile best; None if no index is worse than the others.

    `bad`: int array of shape (n,), bad elements per index. `size`: elements per index. `extents`: sizes of the tensor's axes, tried as periods.
    """
    length, total_bad, total = bad.size, float(bad.sum()), float(size.sum())
    if length < 2 or total_bad <= 0 or total_bad >= total:
        return None
    with np.errstate(all="ignore"):
        rate = np.where(size > 0, bad / size, 0)
    peak = float(rate.max())
    found: list[Span] = []
    profile = _Profile(bad, size, rate, total_bad, total)
    for share in (0.5, 0.2):
        score = bad - share * peak * size
        found.append(_best_block(score, bad, size, total_bad, total))
        found += _best_periods(score, profile, extents)
    best = max(found, key=lambda s: s.merit)
    return best if best.gain > 0 else None


def _best_block(score: Array, bad: Array, size: Array, total_bad: float, total: float) -> Span:
    running = np.concatenate(([0.0], np.cumsum(score)))
    lowest = np.minimum.accumulate(running[:-1])
    stop = int(np.argmax(running[1:] - lowest)) + 1
    start = int(np.argmin(running[:stop]))
    hits, tries = bad[start:stop].sum(), size[start:stop].sum()
    gain = float(gain_of(hits, tries, total_bad, total))
    length = bad.size
    tried = log10(3 * length) if stop - start == 1 else log10(3 * length * (length + 1) / 2)
    if (start == 0 or stop == length) and stop - start > 1:
        tried = log10(6 * length)  # up to an end: fewer of these
    return Span(length, start, stop, gain=gain, tried=tried)


def _candidates(rate: Array, extents: tuple[int, ...]) -> list[int]:
    length = rate.size
    most = length // 2
    wanted = set(range(2, min(most, ALL_PERIODS) + 1))
    wanted |= {p for p in (*NATURAL, *extents) if 2 <= p <= most}
    if most > ALL_PERIODS:
        wanted |= set(_repeats(rate, most))
    return sorted(wanted)


def _repeats(rate: Array, most: int) -> list[int]:
    """Lags at which the profile resembles itself most."""
    centred = rate - rate.mean()
    width = 1 << int(2 * rate.size - 1).bit_length()
    spectrum = np.fft.rfft(centred, width)
    alike = np.fft.irfft(spectrum * np.conj(spectrum), width)[: most + 1]
    alike /= np.arange(rate.size, rate.size - most - 1, -1)
    order = np.argsort(alike[ALL_PERIODS + 1 :])[::-1][:MOST_PERIODS] + ALL_PERIODS + 1
    return [int(p) for p in order if alike[p] > 0]


def _best_periods(score: Array, profile: _Profile, extents: tuple[int, ...]) -> list[Span]:
    bad, size, rate, total_bad, total = profile.bad, profile.size, profile.rate, profile.total_bad, profile.total
    length = bad.size
    if length < 4:
        return []
    found = []
    for period in _candidates(rate, extents):
        rows = -(-length // period)
        padded = np.zeros(rows * period)
        padded[:length] = score
        by_residue = padded.reshape(rows, period).sum(0)
        phase, width = _best_circular(by_residue)
        if width >= period:
            continue
        every = (np.arange(length) - phase) % period < width
        hits, tries = float(bad[every].sum()), float(size[every].sum())
        gain = float(gain_of(np.asarray(hits), np.asarray(tries), total_bad, total))
        shapes = length * length / 8 if width == 1 else length**3 / 24
        places = np.flatnonzero(every)
        found.append(
            Span(length, int(places[0]), int(places[-1]) + 1, period, phase, width, gain, log10(3 * max(shapes, 1)))
        )
    return found


def _best_circular(score: Array) -> tuple[int, int]:
    """(start, width) of the circular run with the largest sum."""
    count = score.size
    running = np.concatenate(([0.0], np.cumsum(score)))
    lowest = np.minimum.accumulate(running[:-1])
    stop = int(np.argmax(running[1:] - lowest)) + 1
    start = int(np.argmin(running[:stop]))
    straight = running[stop] - running[start]
    highest = np.maximum.accumulate(running[:-1])
    low_stop = int(np.argmin(running[1:] - highest)) + 1
    low_start = int(np.argmax(running[:low_stop]))
    wrapped = running[-1] - (running[low_stop] - running[low_start])
    if wrapped > straight and (low_stop - low_start) < count:
        return low_stop % count, count - (low_stop - low_start)
    return start, stop - start
