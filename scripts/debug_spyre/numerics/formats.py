"""Number formats: raw little-endian bytes to values, units in the last place, default tolerances.

Values of formats up to 16 bits are exact in float32, so comparison never rounds what a file holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray: its shapes and types are known at run time only


@dataclass(frozen=True, slots=True)
class Format:
    """One element type. `mantissa` and `lowest` (exponent of the smallest normal) only for floats."""

    name: str
    size: int
    kind: str  # f float, i integer, b bool
    mantissa: int = 0
    lowest: int = 0
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def step(self) -> float:
        """Relative distance of neighbours just above 1 (0 for integers)."""
        return 2.0**-self.mantissa if self.kind == "f" else 0.0


def _float(name: str, size: int, mantissa: int, lowest: int, *, rtol: float, atol: float) -> Format:
    return Format(name, size, "f", mantissa, lowest, rtol, atol)


FORMATS = {
    f.name: f
    for f in (
        _float("float64", 8, 52, -1022, rtol=1e-7, atol=1e-7),
        _float("float32", 4, 23, -126, rtol=1.3e-6, atol=1e-5),
        _float("float16", 2, 10, -14, rtol=1e-3, atol=1e-5),
        _float("bfloat16", 2, 7, -126, rtol=1.6e-2, atol=1e-5),
        _float("float8_e4m3fn", 1, 3, -6, rtol=0.126, atol=2.0**-9),
        _float("float8_e5m2", 1, 2, -14, rtol=0.251, atol=2.0**-16),
        Format("int64", 8, "i"),
        Format("int32", 4, "i"),
        Format("int16", 2, "i"),
        Format("int8", 1, "i"),
        Format("uint8", 1, "i"),
        Format("uint16", 2, "i"),
        Format("uint32", 4, "i"),
        Format("uint64", 8, "i"),
        Format("bool", 1, "b"),
    )
}
# The card's 1-6-9 format (fp16 and bf16 both become it): bias 31 and no subnormals, so the exponent 0 is an ordinary one
DEVICE = _float("dlf16", 2, 9, -31, rtol=2e-3, atol=1e-5)
ON_DEVICE = {"float16", "bfloat16"}
ALIASES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool",
}  # fmt: skip
_SAFETENSORS = {name: alias for alias, name in ALIASES.items()}


@dataclass(frozen=True, slots=True)
class Values:
    """A tensor in memory: the format that it had, and its elements as numpy numbers."""

    dtype: str
    array: Array

    @property
    def format(self) -> Format:
        """Its number format."""
        return FORMATS[self.dtype]


def format_named(name: str) -> Format | None:
    """The number format of that name, in the spelling of torch, numpy or safetensors; None if it is unknown."""
    return FORMATS.get(ALIASES.get(name, name.removeprefix("torch.")))


def decode(raw: bytes | memoryview, dtype: str, shape: tuple[int, ...]) -> Values:
    """Decode little-endian bytes as elements of `dtype` in an array of this shape.

    16- and 8-bit floats become float32, which holds them exactly; other dtypes stay as they are.

    Raises:
        ValueError: the number of bytes does not fit the shape, or the dtype is unknown.
    """
    form = format_named(dtype)
    if form is None:
        raise ValueError(f"unknown element type {dtype!r}")
    if len(raw) != prod(shape) * form.size:
        raise ValueError(f"{len(raw)} bytes for {prod(shape)} elements of {form.name}")
    return Values(form.name, _decoded(raw, form).reshape(shape))


def _decoded(raw: bytes | memoryview, form: Format) -> Array:
    if form.name == "float16":
        return np.frombuffer(raw, "<f2").astype(np.float32)
    if form.name == "bfloat16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    if form.name.startswith("float8"):
        return _byte_table(form)[np.frombuffer(raw, np.uint8)]
    if form.kind == "f":
        return np.frombuffer(raw, f"<f{form.size}").astype(f"f{form.size}")
    if form.kind == "b":
        return np.frombuffer(raw, np.uint8) != 0
    sign = "u" if form.name.startswith("u") else "i"
    return np.frombuffer(raw, f"<{sign}{form.size}").astype(f"{sign}{form.size}")


def _byte_table(form: Format) -> Array:
    """All 256 values of an 8-bit float."""
    code = np.arange(256)
    exponent_bits = 7 - form.mantissa
    bias = 2 ** (exponent_bits - 1) - 1
    exponent = (code >> form.mantissa) & (2**exponent_bits - 1)
    fraction = (code & (2**form.mantissa - 1)) / 2.0**form.mantissa
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if form.name == "float8_e5m2":
        value = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), value)
    else:
        value = np.where((code & 127) == 127, np.nan, value)
    return np.where(code >= 128, -value, value).astype(np.float32)


def from_numpy(array: Array) -> Values | None:
    """A numpy array as values; None where its element type is none of ours."""
    name = {"bool": "bool"}.get(array.dtype.name, array.dtype.name)
    if name not in FORMATS:
        return None
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return Values(name, native.astype(np.float32) if name == "float16" else native)


def units(difference: Array, at: Array, form: Format) -> Array:
    """Each difference in units in the last place (ulp) of `form`, at the larger value `at`.

    `difference`, `at`: float arrays of one shape, both >= 0. Returns float64 of that shape.
    """
    if at.dtype == np.float64:
        exponent = (at.view(np.int64) & np.int64(0x7FF0000000000000)).view(np.float64)
    else:
        exponent = (at.view(np.int32) & np.int32(0x7F800000)).view(np.float32)
    lowest = at.dtype.type(2.0 ** max(form.lowest, -126 if at.dtype == np.float32 else -1022))
    return difference / (np.maximum(exponent, lowest) * at.dtype.type(form.step))


def round_to(values: Array, form: Format) -> Array:
    """Values rounded to `form` (nearest, ties to even; range is not clipped)."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    scale = 2.0 ** (form.mantissa + 1)
    kept = np.maximum(exponent, form.lowest + 1) - exponent
    return np.ldexp(np.round(np.ldexp(mantissa, -kept) * scale) / scale, exponent + kept)
