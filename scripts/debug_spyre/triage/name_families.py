"""Parameters that stand in a function's name: `test_mean_fp32_3d_dim_2`, `test_cat__116_spyre_float32`, `..._4x32_...`.

Frameworks that generate tests write them so. A family is the name without them; they are values to compare like others.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SPLIT = re.compile(r"[_-]+")
_DTYPE = re.compile(
    r"(?:b?float|fp|bf|u?int|complex)\d{1,3}|f16|f32|i8|half|double|bool|fp8\w*|float8\w*", re.IGNORECASE
)
_DEVICE = re.compile(r"spyre|cpu|cuda|xpu|privateuse1", re.IGNORECASE)
_RANK = re.compile(r"(\d)[dD]")
_DIMS = re.compile(r"\d+(?:x\d+)+")
_NUMBER = re.compile(r"(neg|m|minus)?(\d+)")
_SIZE = re.compile(r"\d+[bBkKmM]?")


@lru_cache(maxsize=65_536)
def family(function: str) -> str:
    """`file::Class::test_mean_dim` of `file::Class::test_mean_fp32_3d_dim_2`."""
    head, colons, name = function.rpartition("::")
    words = [w for w in _SPLIT.split(name) if w and not _is_value(w)]
    return f"{head}{colons}{'_'.join(words) or name}"


def _is_value(word: str) -> bool:
    return any(p.fullmatch(word) for p in (_DTYPE, _DEVICE, _RANK, _DIMS, _NUMBER, _SIZE))


def values_in_name(function: str) -> dict[str, str | float]:
    """Named values that the function's name carries."""
    name = function.rpartition("::")[2]
    found: dict[str, str | float] = {}
    before = ""
    for word in _SPLIT.split(name):
        if not word:
            continue
        if _DTYPE.fullmatch(word):
            found.setdefault("dtype in the name" if before != "to" else "dtype after to", word)
        elif _DIMS.fullmatch(word):
            _shape(found, word)
        elif match := _RANK.fullmatch(word):
            found.setdefault("rank in the name", float(match[1]))
        elif match := _NUMBER.fullmatch(word):
            value = float(match[2]) * (-1 if match[1] else 1)
            found.setdefault(f"{before} in the name" if before.isalpha() else "number in the name", value)
        before = word if not _is_value(word) or _DTYPE.fullmatch(word) is None else before
    return found


def _shape(found: dict[str, str | float], word: str) -> None:
    sizes = [float(n) for n in word.split("x")]
    if "shape in the name" in found:
        return
    found["shape in the name"] = word
    found["last dim in the name"] = sizes[-1]
    for place, size in enumerate(sizes[:6]):
        found[f"dim {place} in the name"] = size
