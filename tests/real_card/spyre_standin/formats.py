"""The card's number formats. float16 and bfloat16 become its 1-6-9 format; see include/standin/numbers.h for the source."""

import numpy as np


class CardError(RuntimeError):
    """The stand-in card can't or won't do this."""


REBIAS = (127 - 31) << 9
DL16 = "SEN169_FP16"
PLAIN = {
    "IEEE_FP16": np.float16, "IEEE_FP32": np.float32, "IEEE_INT32": np.int32, "IEEE_INT64": np.int64,
    "SENINT16": np.int16, "SENINT8": np.int8, "SENUINT32": np.uint32, "BOOL": np.uint8,
}  # fmt: skip


def storage(name):
    """The numpy type that one element of this format takes in memory."""
    if name == DL16:
        return np.dtype(np.uint16)
    if name not in PLAIN:
        raise CardError(f"no arithmetic for the format {name}")
    return np.dtype(PLAIN[name])


def decode(codes, name):
    """Stored elements as values; 16-bit floats as float32."""
    if name == DL16:
        return _VALUES[codes]
    return codes.astype(np.float32) if name == "IEEE_FP16" else codes


def encode(values, name):
    """Values as stored elements."""
    if name == DL16:
        return to_dl16(values)
    kind = storage(name)
    if kind.kind in "iu" and np.asarray(values).dtype.kind == "f":
        return np.asarray(values).astype(np.int64).astype(kind)
    return np.asarray(values).astype(kind)


def to_dl16(values):
    """Round float32 to the card's format; ties go away from zero."""
    bits = np.array(values, np.float32).view(np.uint32)
    sign = ((bits >> 16) & 0x8000).astype(np.uint16)
    size = (bits & 0x7FFFFFFF).astype(np.int64)
    code = ((size + 0x2000) >> 14) - REBIAS
    code = np.where(size >= 0x7F800000, 0x7FFF, np.clip(code, 0, 0x7FFF))
    return sign | code.astype(np.uint16)


def _values():
    codes = np.arange(1 << 16, dtype=np.uint32)
    size = codes & 0x7FFF
    bits = np.where(size == 0, 0, (size + REBIAS) << 14)
    bits = np.where(size == 0x7FFF, 0x7F800000, bits)
    return (bits | ((codes & 0x8000) << 16)).astype(np.uint32).view(np.float32)


_VALUES = _values()
