"""Tensors with a known fault in them, drawn from a seed: for the property tests and for the long form of them."""

import numpy as np
import torch

from debug_spyre.numerics.comparison import compare
from debug_spyre.numerics.formats import Values

FLOATS = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2")
BITS = {
    "float16": torch.int16,
    "bfloat16": torch.int16,
    "float32": torch.int32,
    "float8_e4m3fn": torch.int8,
    "float8_e5m2": torch.int8,
}
PLACES = ("period", "block", "slice")
VALUES = ("overflow", "nan", "zeros", "constant", "scale", "offset")
MOVES = ("roll", "transpose", "permute", "copy")
KINDS = PLACES + VALUES + MOVES
MOST = 1 << 17


def quantised(array, dtype):
    """(values that the format holds, as float32)."""
    return torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(getattr(torch, dtype)).float().numpy()


def one_ulp_noise(rng, array, dtype):
    """Each element moved by -1, 0 or 1 unit in the last place."""
    held = torch.from_numpy(np.ascontiguousarray(array, np.float32)).to(getattr(torch, dtype))
    bits = held.view(BITS[dtype])
    step = torch.from_numpy(rng.integers(-1, 2, array.shape)).to(bits.dtype)
    moved = (bits + step).view(held.dtype).float().numpy()
    return np.where(np.isfinite(moved) & (np.sign(moved) == np.sign(array)) & (array != 0), moved, array)


def outliers(rng, array, share=0.001, size=8.0):
    """A share of scattered elements replaced by something far off."""
    hit = rng.random(array.shape) < share
    return np.where(hit, array + size * rng.standard_normal(array.shape), array)


def draw_shape(rng, *, least=1, dims=None):
    """2 to 5 dims, sizes 1 to 4096, not too many elements."""
    while True:
        count = dims or int(rng.integers(2, 6))
        shape = tuple(int(round(2 ** rng.uniform(0, 12))) for _ in range(count))
        if 64 * least <= np.prod(shape) <= MOST:
            return shape


def draw_span(rng, kind, length):
    """An index set of one axis: (dict of parameters, indices), or None where the axis is too short."""
    if kind == "period":
        if length < 4:
            return None
        period = int(rng.integers(2, length // 2 + 1))
        width = 1 if rng.random() < 0.7 else int(rng.integers(1, max(2, period // 2 + 1)))
        phase = int(rng.integers(0, period))
        indices = np.arange(length)[(np.arange(length) - phase) % period < width]
        hits = np.arange(phase, length, period)
        if hits.size < 2:
            return None
        return {"period": period, "phase": phase, "width": width}, indices
    if kind == "slice":
        if length < 2:
            return None
        index = int(rng.integers(0, length))
        return {"start": index, "stop": index + 1}, np.array([index])
    if length < 3:
        return None
    start = int(rng.integers(0, length - 1))
    stop = int(rng.integers(start + 2, length + 1)) if start + 2 <= length else 0
    if stop - start < 2 or (start == 0 and stop == length):
        return None
    return {"start": start, "stop": stop}, np.arange(start, stop)


def plant(seed, kind=None):
    """(actual, expected, dtype, expectation): one planted pattern over noise and outliers."""
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[seed % len(KINDS)]
    while True:
        drawn = _plant(rng, kind)
        if drawn is not None:
            return drawn


def _plant(rng, kind):
    dtype = FLOATS[int(rng.integers(len(FLOATS)))]
    shape = draw_shape(rng)
    expected = quantised(rng.standard_normal(shape) * 2 ** rng.uniform(-2, 2), dtype)
    background = outliers(rng, one_ulp_noise(rng, expected, dtype))
    if kind in MOVES:
        return _moved(rng, kind, dtype, shape, expected)
    axis = int(rng.integers(len(shape)))
    place = kind if kind in PLACES else PLACES[int(rng.integers(3))]
    span = draw_span(rng, place, shape[axis])
    if span is None:
        return None
    parameters, indices = span
    inside = [np.arange(n) for n in shape]
    inside[axis] = indices
    extra = None
    others = [i for i in range(len(shape)) if i != axis and shape[i] >= 2]
    if others and rng.random() < 0.3:
        extra = int(rng.choice(others))
        other = int(rng.integers(shape[extra]))
        inside[extra] = np.array([other])
    where = np.ix_(*inside)
    size = int(np.prod([len(i) for i in inside]))
    if size < 24 or expected.size - size < 24:
        return None
    values = expected[where]
    scale = float(np.sqrt(np.mean(expected**2)))
    effect = kind if kind in VALUES else ["garbage", "overflow", "zeros", "offset"][int(rng.integers(4))]
    if dtype.startswith("float8") and effect == "overflow":
        if kind == "overflow":
            return None
        effect = "garbage"
    changed, factor = _effect(rng, effect, values, scale, dtype)
    actual = background.copy()
    actual[where] = outliers(rng, changed) if effect not in {"nan"} else changed
    if effect not in {"nan", "overflow"}:
        actual = quantised(actual, dtype)
    return (
        actual,
        expected,
        dtype,
        {
            "kind": kind,
            "axis": axis,
            "indices": indices,
            "place": place,
            "extra": extra,
            "factor": factor,
            "effect": effect,
            **parameters,
        },
    )


def _effect(rng, effect, values, scale, dtype):
    if effect == "overflow":
        return np.full_like(values, 65504.0 if rng.random() < 0.5 else 65472.0) * np.sign(rng.standard_normal()), None
    if effect == "nan":
        return np.full_like(values, np.nan), None
    if effect == "zeros":
        return np.zeros_like(values), None
    if effect == "constant":
        factor = float(quantised(np.array([scale * rng.choice([-1, 1]) * rng.uniform(5, 9)]), dtype)[0])
        return np.full_like(values, factor), factor
    if effect == "scale":
        factor = float(rng.choice([1.414, 0.5, 2.0, 0.7071, 4.0, -1.0, 0.25, 8.0]))
        if dtype.startswith("float8"):
            factor = float(rng.choice([0.25, 4.0, -1.0]))
        return values * factor, factor
    if effect == "offset":
        size = (
            rng.uniform(1, 1.5) if dtype.startswith("float8") else rng.uniform(3, 5)
        )  # more would leave nothing of the values
        factor = float(scale * rng.choice([-1, 1]) * size)
        return values + factor, factor
    return scale * 3 * rng.standard_normal(values.shape) + np.sign(values) * scale, None


def _moved(rng, kind, dtype, shape, expected):
    axes = [i for i, n in enumerate(shape) if n >= 3]
    if not axes:
        return None
    axis = int(rng.choice(axes))
    length = shape[axis]
    other = expected.size // length
    expectation = {"kind": kind, "axis": axis}
    if kind == "roll":
        shift = int(rng.integers(1, length))
        moved = np.roll(expected, shift, axis)
        expectation["shift"] = shift
        if other < 2 and expected.size < 64:
            return None
    elif kind == "transpose":
        swappable = [i for i, n in enumerate(shape) if n >= 2]
        if len(swappable) < 2:
            return None
        one, two = (int(i) for i in rng.choice(swappable, 2, replace=False))
        order = list(range(len(shape)))
        order[one], order[two] = order[two], order[one]
        moved = np.ascontiguousarray(expected.transpose(order)).reshape(shape)
        expectation = {"kind": kind, "order": tuple(order), "moved": moved}
    elif kind == "permute":
        blocks = [b for b in (1, 2, 4, 8, 16, 32, 64) if length % b == 0 and length // b >= 3]
        if not blocks or other < 8:
            return None
        block = int(rng.choice(blocks))
        order = rng.permutation(length // block)
        if np.mean(order != np.arange(order.size)) < 0.5:
            return None
        source = (order[:, None] * block + np.arange(block)).reshape(-1)
        moved = np.take(expected, source, axis)
        expectation = {"kind": kind, "axis": axis, "moved": moved}
    else:
        if other < 16:
            return None
        source = int(rng.integers(length))
        count = int(rng.integers(1, length))
        start = int(rng.integers(0, length - count + 1))
        targets = np.arange(start, start + count)
        if source in targets or count == length:
            return None
        moved = expected.copy()
        moved[(slice(None),) * axis + (targets,)] = np.take(expected, [source], axis)
        expectation |= {"source": source, "indices": targets}
    if np.mean(moved != expected) * expected.size < 32:
        return None
    actual = quantised(outliers(rng, one_ulp_noise(rng, moved, dtype)), dtype)
    return actual, expected, dtype, expectation


def found(comparison, expectation):
    """Does one of the patterns say what was planted?"""
    return any(_says(p, expectation, comparison.shape) for p in comparison.patterns)


def _says(p, want, shape):
    kind = want["kind"]
    if p.kind != kind:
        # two names for one thing: an axis's swap or cyclic order has several true descriptions
        return _same_move(p, want, shape)
    if kind in PLACES or kind in VALUES:
        spans = {s["axis"]: s for s in p.region}
        if want["axis"] not in spans:
            return False
        if not np.array_equal(_indices(spans[want["axis"]], shape[want["axis"]]), want["indices"]):
            return False
        if want["extra"] is not None and want["extra"] not in spans:
            return False
        if kind in {"scale", "offset", "constant"}:
            return abs(p.factor - want["factor"]) <= 0.1 * abs(want["factor"])
        return True
    if kind == "roll":
        return p.axis == want["axis"] and p.shift % shape[p.axis] == want["shift"] or _flat_roll(p, want, shape)
    if kind == "copy":
        return p.axis == want["axis"] and p.source == want["source"]
    if kind == "transpose":
        return _same_order(p.order, want, shape)
    return p.axis == want["axis"] or p.order is not None


def _flat_roll(p, want, shape):
    """Rolled along the first long axis is rolled along the flat index by whole slices."""
    inner = int(np.prod(shape[want["axis"] + 1 :]))
    outer = int(np.prod(shape[: want["axis"]]))
    return p.axis is None and outer == 1 and p.shift % int(np.prod(shape)) == want["shift"] * inner


def _same_order(order, want, shape):
    reference = np.arange(int(np.prod(shape))).reshape(shape)
    return order is not None and np.array_equal(
        reference.transpose(order).reshape(-1), reference.transpose(want["order"]).reshape(-1)
    )


def _same_move(p, want, shape):
    if want["kind"] == "transpose" and p.kind == "permute" and p.order:
        return _same_order(p.order, want, shape)
    if want["kind"] == "permute" and p.kind == "roll" and p.axis is not None:
        return True
    if want["kind"] == "transpose" and p.kind in {"roll", "permute"}:
        return True
    return False


def _indices(span, length):
    every = np.arange(length)
    if span["period"]:
        return every[(every - span["phase"]) % span["period"] < (span["width"] or 1)]
    return np.arange(span["start"], span["stop"])


def judged(seed, kind=None):
    """(found?, expectation, comparison) of one draw."""
    actual, expected, dtype, want = plant(seed, kind)
    comparison = compare(Values(dtype, actual), Values(dtype, expected), draw=False)
    return found(comparison, want), want, comparison


NULLS = ("ulp noise", "outliers", "scatter", "accumulation", "column scales", "dense scatter")


def plain(seed):
    """(actual, expected, dtype, name): differences that hold no pattern."""
    rng = np.random.default_rng(seed)
    name = NULLS[seed % len(NULLS)]
    dtype = FLOATS[int(rng.integers(len(FLOATS)))]
    shape = draw_shape(rng) if rng.random() < 0.8 else (int(2 ** rng.uniform(0, 12)),)
    expected = quantised(rng.standard_normal(shape) * 2 ** rng.uniform(-2, 2), dtype)
    scale = float(np.sqrt(np.mean(expected**2)))
    if name == "ulp noise":
        actual = one_ulp_noise(rng, expected, dtype)
    elif name == "outliers":
        size = 8 * scale if rng.random() < 0.7 else 65504.0
        actual = outliers(
            rng, one_ulp_noise(rng, expected, dtype), size=size if not dtype.startswith("float8") else 8 * scale
        )
    elif name in {"scatter", "dense scatter"}:
        share = rng.uniform(0.005, 0.1) if name == "scatter" else rng.uniform(0.1, 0.9)
        actual = outliers(rng, one_ulp_noise(rng, expected, dtype), share=share, size=5 * scale)
    elif name == "accumulation":
        actual = quantised(expected + scale * rng.uniform(1e-3, 2e-2) * rng.standard_normal(shape), dtype)
    else:
        axis = int(rng.integers(len(shape)))
        form = [1] * len(shape)
        form[axis] = shape[axis]
        columns = np.exp(rng.standard_normal(shape[axis]) * 1.5).reshape(form)
        expected = quantised(np.broadcast_to(expected * columns, shape).copy(), dtype)
        actual = quantised(expected + columns * scale * 0.004 * rng.standard_normal(shape), dtype)
        expected, actual = np.nan_to_num(expected), np.nan_to_num(actual)
    return actual, expected, dtype, name


def alarmed(seed):
    """(patterns where there are none?, name, comparison)."""
    actual, expected, dtype, name = plain(seed)
    comparison = compare(Values(dtype, actual), Values(dtype, expected), draw=False)
    return bool(comparison.patterns), name, comparison
