"""Slices of one axis matched against the reference's slices: rolled, copied, permuted; and whole integer or bool tensors (masks, indices)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from debug_spyre.numerics.axes import SIGNIFICANT, log10_count, log10_matched
from debug_spyre.numerics.formats import Array, Values
from debug_spyre.numerics.relations import LEAST_SHARE, SEED, Close, Pair, Relation

_DEVICE = {"dev", "device", "spyre", "actual", "act", "out", "got", "result", "card", "test"}
_REFERENCE = {"cpu", "ref", "reference", "expected", "exp", "golden", "want", "host", "native"}


@dataclass(frozen=True, slots=True)
class Difference:
    """Two integer or bool tensors that should be equal and aren't."""

    name: str
    other: str
    count: int
    total: int
    index: tuple[int, ...]
    text: str


def stem_of(name: str) -> tuple[str, bool]:
    """(the name without the words for a device, whether it is the reference's)."""
    words = [w for w in re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", name) if w]
    plain = [w.lower() for w in words]
    return "_".join(w for w in plain if w not in _DEVICE | _REFERENCE), any(w in _REFERENCE for w in plain)


def couples(tensors: Mapping[str, Values]) -> list[tuple[str, str]]:
    """Pairs (device's name, reference's name) of tensors whose names differ only in the words for a device."""
    found = []
    names = list(tensors)
    for position, one in enumerate(names):
        for other in names[position + 1 :]:
            (stem, is_reference), (second, other_is) = stem_of(one), stem_of(other)
            alike = stem and stem == second and is_reference != other_is
            if alike and tensors[one].array.shape == tensors[other].array.shape:
                found.append((other, one) if is_reference else (one, other))
    return found


def first_difference(pairs: Sequence[tuple[str, Values, str, Values]]) -> Difference | None:
    """The first pair of integer or bool tensors that differ, in words; None if all are equal.

    `pairs`: (device's name, its values, reference's name, its values); pairs of floats or of other shapes are skipped.
    """
    for name, a, other, e in pairs:
        if "f" in {a.format.kind, e.format.kind} or a.array.shape != e.array.shape:
            continue
        wrong = a.array != e.array
        count = int(np.count_nonzero(wrong))
        if not count:
            continue
        place = int(np.argmax(wrong.reshape(-1)))
        index = tuple(int(i) for i in np.unravel_index(place, wrong.shape))
        values = a.array.reshape(-1)[place].item(), e.array.reshape(-1)[place].item()
        at = f"({', '.join(map(str, index))})"
        text = f"{a.dtype} tensor {name} differs from {other} in {count:,} of {wrong.size:,} places, first at {at}: "
        return Difference(name, other, count, wrong.size, index, f"{text}{values[0]} for {values[1]}")
    return None


POSITIONS = 64
TARGETS = 512
MOST_SOURCES = 8192


def matched_slices(pair: Pair, axis: int) -> Relation | None:
    """How wrong slices along `axis` appear elsewhere in the reference: rolled, copied or permuted; None if they don't."""
    actual, expected, bad = pair.actual, pair.expected, pair.bad
    length = actual.shape[axis]
    others = actual.size // max(length, 1)
    if length < 2 or length > MOST_SOURCES or others < 2:
        return None
    a, e, wrong = (np.moveaxis(x, axis, 0).reshape(length, others) for x in (actual, expected, bad))
    rate = wrong.mean(1)
    targets = np.flatnonzero(rate >= max(0.3 * float(rate.max()), 0.1))
    if targets.size > TARGETS:
        some = np.random.default_rng(SEED).choice(targets, TARGETS, replace=False)
        targets = np.unique(np.concatenate((targets[:4], some, targets[-4:])))  # the ends tell whether it wraps
    if not targets.size:
        return None
    width = min(others, POSITIONS)
    positions = np.sort(np.random.default_rng(SEED).choice(others, width, replace=False))
    agree = _agreement(a[np.ix_(targets, positions)], e[:, positions], pair.close)
    agree[np.arange(targets.size), targets] = 0
    best: Relation | None = None
    for make in (_by_shift, _by_source, _by_map):
        origin, relation = make(agree, targets, length)
        if relation is None:
            continue
        rows = Pair(a, e, wrong, pair.close, pair.luck)
        proved = _proved(relation, rows, targets, origin)
        if proved and (best is None or proved.share > best.share + 0.02):
            best = proved
    if best is None:
        return None
    return Relation(
        best.kind, best.matched, best.tried, best.log_chance, axis=axis, shift=best.shift, source=best.source,
        block=best.block, wraps=best.wraps,
    )  # fmt: skip


def _agreement(targets: Array, sources: Array, close: Close) -> Array:
    """Share of the positions at which target i agrees with source j; few near ones are counted exactly."""
    count, width = sources.shape
    share = np.zeros((targets.shape[0], count), np.float32)
    nearest = min(count, 24)
    tame_t, tame_s = _tamed(targets, sources), _tamed(sources, sources)
    distance = (tame_t**2).sum(1)[:, None] + (tame_s**2).sum(1)[None, :] - 2 * tame_t @ tame_s.T
    if count <= 128:
        near = np.broadcast_to(np.arange(count), (targets.shape[0], count))
    else:
        near = np.argpartition(distance, nearest - 1, axis=1)[:, :nearest]
    for column in range(near.shape[1]):
        picked = near[:, column]
        share[np.arange(targets.shape[0]), picked] = close(targets, sources[picked]).sum(1) / width
    return share


def _tamed(values: Array, like: Array) -> Array:
    finite = like[np.isfinite(like)]
    middle = float(np.median(finite)) if finite.size else 0.0
    reach = float(4 * np.median(np.abs(finite - middle))) if finite.size else 1.0
    reach = reach or 1.0
    clean = np.nan_to_num(values.astype(np.float32), nan=middle, posinf=middle, neginf=middle)
    tame: Array = (np.clip(clean, middle - reach, middle + reach) - middle) / reach
    return tame


def _by_shift(agree: Array, targets: Array, length: int) -> tuple[Array, Relation | None]:
    rows, sources = np.nonzero(agree >= LEAST_SHARE)
    if not rows.size:
        return targets, None
    votes = np.bincount((targets[rows] - sources) % length, minlength=length)
    votes[0] = 0
    shift = int(votes.argmax())
    origin = (targets - shift) % length
    hit = agree[np.arange(targets.size), origin] >= LEAST_SHARE
    signed = shift if shift <= length // 2 else shift - length
    plain = (targets - signed >= 0) & (targets - signed < length)
    if not plain.any() or hit[plain].mean() < LEAST_SHARE or int(hit.sum()) < 2 or plain.mean() < 0.5:
        return targets, None
    wraps = bool((~plain).any() and hit[~plain].mean() >= LEAST_SHARE)
    kept = np.where(plain | wraps, origin, -1)
    if targets.size < 3 and not (wraps and targets.size == length):
        return targets, None  # one or two slices from elsewhere are copies, not a roll
    return kept, Relation("roll", 0, 0, 0.0, shift=signed, wraps=wraps)


def _by_source(agree: Array, targets: Array, _length: int) -> tuple[Array, Relation | None]:
    share = (agree >= LEAST_SHARE).mean(0)
    source = int(share.argmax())
    others = targets != source
    if float(share[source]) * targets.size < LEAST_SHARE * max(int(others.sum()), 1):
        return targets, None
    return np.full(targets.size, source), Relation("copy", 0, 0, 0.0, source=source)


def _by_map(agree: Array, targets: Array, length: int) -> tuple[Array, Relation | None]:
    origin = agree.argmax(1)
    hit = agree[np.arange(targets.size), origin] >= LEAST_SHARE
    if targets.size < 2 or hit.mean() < LEAST_SHARE:
        return targets, None
    distinct = np.unique(origin[hit]).size
    if distinct < 0.8 * int(hit.sum()):
        shift = np.bincount((targets[hit] - origin[hit]) % length, minlength=length)
        if int(shift.max()) < LEAST_SHARE * int(hit.sum()):
            return origin, None
        return origin, Relation("copy", 0, 0, 0.0, shift=int(shift.argmax()))
    follows = (np.diff(origin) == 1) & (np.diff(targets) == 1)
    breaks: Array = np.flatnonzero(~follows & (np.diff(targets) == 1)) + 1
    edges = targets[breaks]
    block = int(np.gcd.reduce(np.append(edges, length))) if edges.size else length
    return origin, Relation("permute", 0, 0, 0.0, block=block)


def _proved(relation: Relation, rows: Pair, targets: Array, origin: Array) -> Relation | None:
    """The relation counted over wrong elements (other positions than those that suggested it, where there are more)."""
    a, e, wrong = rows.actual, rows.expected, rows.bad
    usable = origin >= 0
    left_out = targets[~usable]
    targets, origin = targets[usable], origin[usable]
    columns = np.arange(a.shape[1])
    if columns.size > 1024:
        columns = np.sort(np.random.default_rng(SEED + 1).choice(columns, 1024, replace=False))
    where: Array = np.ix_(targets, columns)
    off = wrong[where]
    tried = int(off.sum())
    if tried < 4:
        return None
    values, other = a[where][off], e[np.ix_(origin, columns)][off]
    matched = int(np.count_nonzero(rows.close(values, other)))
    if matched < LEAST_SHARE * tried:
        return None
    length = a.shape[0]
    ways = length if relation.kind in {"roll", "copy"} else float(length) ** min(targets.size, 40)
    chance = log10_matched(matched=matched, tried=tried, rate=rows.luck(values)) + log10_count(ways)
    if chance > SIGNIFICANT:
        return None
    tried += int(wrong[np.ix_(left_out, columns)].sum())
    return Relation(
        relation.kind, matched, tried, chance, shift=relation.shift, source=relation.source, block=relation.block,
        wraps=relation.wraps,
    )  # fmt: skip
