"""Limitations that the card has or not: each can be told apart by a small script, and switched by SPYRE_SIM_LIMITS.

`SPYRE_SIM_LIMITS=name,...` gives the card exactly these, `none` gives it none, `default` stands for the default set
(`default,-name,+other` changes it). Read when the package is imported; `having` switches some of them in a test.
"""

import contextlib
import os
from dataclasses import dataclass

from .constants import LIMITS_VARIABLE


@dataclass(frozen=True)
class Limit:
    name: str
    text: str
    default: bool


_ALL = [
    Limit("advanced_indexing", "eager x[index tensor] has no kernel: Could not run 'aten::index.Tensor'", True),
    Limit("boolean_index_put", "x[mask] = v has no kernel", True),
    Limit("index_add", "index_add has no kernel", True),
    Limit("index_copy_fallback", "eager index_copy runs on the CPU, with a FallbackWarning", True),
    Limit("transpose_contiguous", "a contiguous copy of a tensor whose last dimension is strided is refused", True),
    Limit("combined_to", "dtype and device cannot change in one transfer", False),
    Limit("d2d_cast_via_cpu", "a dtype change on the device goes through the CPU, with a UserWarning", False),
    Limit("recompile_per_shape", "a kernel is compiled anew for each shape", True),
    Limit("fp16_only", "float ops on another dtype than float16 are refused", False),
    Limit("fp32_matmul", "matrix products in float32 are refused", True),
    Limit("matmul_out_1", "a matrix product with an output dimension of 1 is refused", False),
    Limit("broadcast_4d_matmul", "a 4-D matrix product with a size-1 batch dimension on one side is refused", False),
    Limit("int64_downcast", "int64 is held as int32: large values wrap, with one UserWarning", True),
    Limit("int64_constants", "an int64 constant inside a compiled graph is refused", True),
    Limit("int32_storage_offset", "an op reads an int32 slice from the start of its storage", True),
    Limit("fp16_storage_offset", "an op refuses a float16 slice whose offset is not a multiple of 64", False),
    Limit("embedding_fallback", "embedding runs on the CPU, with a FallbackWarning", False),
    Limit("row_slices_in_graph", "a [n, 1] slice inside a compiled graph is refused", False),
    Limit("single_index", "index_select with one index is refused", False),
    Limit("span_256mb", "a gather over more than 256 MB per core is refused", True),
    Limit("unaligned_width", "matrix products whose inner size is not a multiple of 64 are refused", False),
]
CATALOGUE = {limit.name: limit for limit in _ALL}
DEFAULT = frozenset(limit.name for limit in _ALL if limit.default)


def parse(text):
    """The set of limitations that a value of SPYRE_SIM_LIMITS means."""
    if text is None or text.strip() in {"", "default"}:
        return set(DEFAULT)
    chosen = set()
    for word in (part.strip() for part in text.split(",")):
        if word in {"", "none"}:
            continue
        if word == "default":
            chosen |= DEFAULT
            continue
        name = word.lstrip("+-")
        if name not in CATALOGUE:
            raise ValueError(f"{LIMITS_VARIABLE}: no limitation {name!r}; there are {', '.join(CATALOGUE)}")
        if word.startswith("-"):
            chosen.discard(name)
        else:
            chosen.add(name)
    return chosen


_current = parse(os.environ.get(LIMITS_VARIABLE))


def has(name):
    """Whether the card has this limitation now."""
    return name in _current


def names():
    """The limitations that the card has now, sorted."""
    return sorted(_current)


@contextlib.contextmanager
def having(text):
    """Switch the set for a block; limitations that concern registration itself are fixed at import and stay."""
    from . import forget_compiled

    before = set(_current)
    _current.clear()
    _current.update(parse(text))
    forget_compiled()
    try:
        yield
    finally:
        _current.clear()
        _current.update(before)
        forget_compiled()
