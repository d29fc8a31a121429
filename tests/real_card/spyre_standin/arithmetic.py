"""What the ops of the card compute: float32 in, float32 out. The names are those that torch_spyre writes into an OpSpec.

What is not here raises; nothing is guessed.
"""

import math

import numpy as np

from spyre_standin.formats import DL16, CardError


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float32])(x)


def _softplus(x, constants):
    beta, threshold = float(constants["softplusBeta"]), float(constants["softplusThresh"])
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, threshold))) / beta)


def _clip(x, constants):
    low, high = constants.get("clipMin"), constants.get("clipMax")
    return np.clip(x, None if low is None else float(low), None if high is None else float(high))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _truth(compare):
    return lambda a, b: compare(a, b).astype(np.float32)


POINTWISE = {
    "identity": lambda x: x, "ReStickifyOpHBM": lambda x: x, "dl16tofp32": lambda x: x, "fp32todl16": lambda x: x,
    "abs": np.abs, "add": np.add, "sub": np.subtract, "mul": np.multiply, "realdiv": np.divide,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "floor": np.floor, "neg": np.negative, "tanh": np.tanh, "relufwd": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid, "silu": lambda x: x * _sigmoid(x), "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "gelufwd": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
    "maximum": np.maximum, "minimum": np.minimum, "where3": lambda c, a, b: np.where(c != 0, a, b),
    "equal": _truth(np.equal), "notequal": _truth(np.not_equal), "greaterthan": _truth(np.greater),
    "greaterequal": _truth(np.greater_equal), "lesserthan": _truth(np.less), "lesserequal": _truth(np.less_equal),
    "layernormnorm": lambda x, mean, scale, weight, bias: (x - mean) * scale * weight + bias,
}  # fmt: skip
WITH_CONSTANTS = {
    "clip": _clip,
    "softplus": _softplus,
    "layernormscale": lambda x, c: 1 / np.sqrt(x + np.float32(c["eps"])),
}
# exx2 leaves two numbers in a row's stick, the mean and what layernormscale makes its scale of. How the card keeps them is not
# public; here it is the mean and beside it the variance.
VARIANCE = 1
REDUCTIONS = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "amax": np.max,
    "amin": np.min,
    "prod": np.prod,
    "mean": np.mean,
}


def staggered(op, argument, places):
    """Where the 16-bit side of a conversion to or from float32 lies: fours of its two float32 sticks take turns in its stick.

    The order is that of torch_spyre's op stagger_to_standard_ea; two conversions one after the other restore it.
    """
    if op not in {"fp32todl16", "dl16tofp32"} or argument.device_dtype.name != DL16:
        return places
    places = np.asarray(places)
    stick, within = places // 64 * 64, places % 64
    four, rest = within % 32 // 4, within % 4
    return stick + 8 * four + rest + 4 * (within // 32)


def pointwise(op, values, constants):
    """One value a point."""
    values = [v.astype(np.float32) if v.dtype.kind == "f" else v for v in values]
    if op in WITH_CONSTANTS:
        return WITH_CONSTANTS[op](values[0], constants)
    if op not in POINTWISE:
        raise CardError(f"no pointwise op {op}")
    return POINTWISE[op](*values)


def reduced(op, x, axes, constants):
    """The reduction over these axes, which stay with size 1."""
    if op not in REDUCTIONS:
        raise CardError(f"no reduction {op}")
    if not axes:
        return x
    if op == "mean" and "scaling_factor" in constants:
        return np.sum(x, axis=axes, keepdims=True, dtype=np.float32) * float(constants["scaling_factor"])
    return REDUCTIONS[op](x, axis=axes, keepdims=True)


def product(x, y, rank, sizes, axes):
    """A matrix product over the iteration space: summed over `axes`, broadcast where an operand has no extent."""
    own = [[i for i in range(rank) if v.shape[i] > 1] for v in (x, y)]
    left, right = (v.squeeze(tuple(i for i in range(rank) if v.shape[i] == 1)).astype(np.float32) for v in (x, y))
    kept = [i for i in range(rank) if i not in axes and (i in own[0] or i in own[1])]
    made = np.einsum(left, own[0], right, own[1], kept, optimize=True)
    made = np.asarray(made).reshape([sizes[i] if i in kept else 1 for i in range(rank)])
    for i in axes:
        if i not in own[0] and i not in own[1]:
            made = made * sizes[i]
    return made


def largest(op, x, shape, axes):
    """topkvalue, topkindex: the k largest along the reduced axis, in order, laid along the axis that only the result has."""
    if len(axes) != 1:
        raise CardError(f"{op} over {len(axes)} axes")
    kept = next((i for i in range(len(shape)) if shape[i] > 1 and x.shape[i] == 1), None)
    order = np.argsort(-x.astype(np.float32), axis=axes[0], kind="stable")
    order = np.take(order, np.arange(shape[kept] if kept is not None else 1), axis=axes[0])
    found = order if op == "topkindex" else np.take_along_axis(x, order, axis=axes[0])
    return found if kept is None else np.swapaxes(found, axes[0], kept)
