"""How a tensor is written: an expression that makes its storage, and the view on it.

The view is taken after the transfer: `.to(device)` keeps neither an offset nor a broadcast dimension.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from debug_spyre.examine.call import Tensor


@dataclass(frozen=True, slots=True)
class Written:
    """`base` makes a contiguous tensor on the host; `base + view` is the tensor."""

    base: str
    view: str = ""


def written(tensor: Tensor) -> Written:
    """The two expressions of a tensor.

    A saved tensor with strides is saved as its storage (inside/debug_spyre_calls.py), hence viewed as a whole.
    """
    plain = tensor.stride is None and not tensor.offset
    if tensor.fill in {"file", "values"}:
        shape = tensor.shape if plain else (tensor.span,)
        base = _saved(tensor, shape) if tensor.fill == "file" else _listed(tensor, shape)
        return Written(base, "" if plain else _strided(tensor))
    if tensor.layout is not None:  # the allocation as it was, then the view of it
        whole = plain and tensor.shape == tensor.layout.shape
        return Written(_filled(tensor, tensor.layout.shape), "" if whole else _strided(tensor))
    shape, view = _seen(tensor)
    return Written(_filled(tensor, shape), view)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _saved(tensor: Tensor, shape: tuple[int, ...]) -> str:
    base = f"saved[{tensor.key!r}]"
    return f"{base}[{', '.join(f':{size}' for size in shape)}]" if tensor.cut and shape else base


def _listed(tensor: Tensor, shape: tuple[int, ...]) -> str:
    words = ", ".join(map(number, tensor.values))
    return _shaped(f"torch.tensor([{words}], dtype=torch.{tensor.dtype})", shape)


def _seen(tensor: Tensor) -> tuple[tuple[int, ...], str]:
    """Shape of the storage, and the view in the words that people use where there are such."""
    stride = tensor.stride
    if not tensor.offset and (stride is None or stride == contiguous(tensor.shape)):
        return tensor.shape, ""
    strides = stride if stride is not None else contiguous(tensor.shape)
    for reading in (_permuted, _expanded, _sliced):
        found = reading(tensor, strides)
        if found is not None:
            return found
    return (tensor.span,), _strided(tensor)


def _strided(tensor: Tensor) -> str:
    stride = tensor.stride if tensor.stride is not None else contiguous(tensor.shape)
    return f".as_strided({tuple(tensor.shape)}, {tuple(stride)}, {tensor.offset})"


def _permuted(tensor: Tensor, strides: tuple[int, ...]) -> tuple[tuple[int, ...], str] | None:
    if tensor.offset or len(strides) < 2 or 0 in strides:
        return None
    order = sorted(range(len(strides)), key=lambda d: (-strides[d], d))
    shape = tuple(tensor.shape[d] for d in order)
    if tuple(strides[d] for d in order) != contiguous(shape):
        return None
    back = tuple(order.index(d) for d in range(len(order)))
    swapped = (*range(len(order) - 2), len(order) - 1, len(order) - 2)
    return shape, ".mT" if back == swapped else f".permute({', '.join(map(str, back))})"


def _expanded(tensor: Tensor, strides: tuple[int, ...]) -> tuple[tuple[int, ...], str] | None:
    wide = [d for d, step in enumerate(strides) if step == 0]
    if tensor.offset or not wide or any(tensor.shape[d] < 2 for d in wide):
        return None
    shape = tuple(1 if d in wide else size for d, size in enumerate(tensor.shape))
    packed = contiguous(shape)
    if any(packed[d] != strides[d] for d in range(len(shape)) if d not in wide):
        return None
    return shape, f".expand({', '.join(map(str, tensor.shape))})"


def _sliced(tensor: Tensor, strides: tuple[int, ...]) -> tuple[tuple[int, ...], str] | None:
    """Part of a contiguous tensor: the strides tell its sizes, the offset where the part begins."""
    shape = tensor.shape
    if not shape or 0 in strides or strides[-1] != 1 or 0 in shape:
        return None
    sizes = [0, *(strides[d - 1] // strides[d] for d in range(1, len(shape)))]
    if any(strides[d - 1] % strides[d] for d in range(1, len(shape))):
        return None
    starts, rest = [], tensor.offset
    for step in strides:
        starts.append(rest // step)
        rest %= step
    sizes[0] = starts[0] + shape[0]
    if any(starts[d] + shape[d] > sizes[d] for d in range(len(shape))):
        return None
    words = [_span(start, size, whole) for start, size, whole in zip(starts, shape, sizes, strict=True)]
    while len(words) > 1 and words[-1] == ":":
        words.pop()
    return tuple(sizes), f"[{', '.join(words)}]"


def _span(start: int, size: int, whole: int) -> str:
    return f"{start or ''}:{'' if start + size == whole else start + size}"


def _filled(tensor: Tensor, shape: tuple[int, ...]) -> str:
    sizes = ", ".join(map(str, shape)) or "()"
    listed = f"({sizes}{',' if len(shape) == 1 else ''})" if shape else "()"
    dtype = f"dtype=torch.{tensor.dtype}"
    if tensor.dtype == "bool":
        return f"torch.ones({sizes}, {dtype})" if tensor.fill == "ones" else f"(torch.rand({sizes}) > 0.5)"
    if not tensor.is_float and not tensor.dtype.startswith("complex"):
        return _integers(tensor, listed, dtype)
    count = math.prod(shape)
    texts = {
        "ones": f"torch.ones({sizes}, {dtype})",
        "nan": f'torch.full({listed}, float("nan"), {dtype})',
        "inf": f'torch.full({listed}, float("inf"), {dtype})',
        "spread": _shaped(f"torch.linspace(0.1, 2, {count}, {dtype})", shape),
        "arange": _shaped(f"torch.arange({count}, {dtype})", shape),
        "last": f"torch.zeros({sizes}, {dtype}).index_fill_(-1, torch.tensor({shape[-1] - 1}), 1)"
        if shape and shape[-1]
        else f"torch.ones({sizes}, {dtype})",
    }
    if tensor.fill in texts:
        return texts[tensor.fill]
    if re.fullmatch(r"float8\w*", tensor.dtype):
        return f"torch.{tensor.fill}({sizes}).to(torch.{tensor.dtype})"
    return f"torch.{tensor.fill}({sizes}, {dtype})"


def _integers(tensor: Tensor, listed: str, dtype: str) -> str:
    if tensor.high <= tensor.low + 1:
        return f"torch.full({listed}, {tensor.low}, {dtype})"
    return f"torch.randint({tensor.low}, {tensor.high}, {listed}, {dtype})"


def _shaped(text: str, shape: tuple[int, ...]) -> str:
    return text if len(shape) == 1 else f"{text}.view({', '.join(map(str, shape)) or '()'})"


def number(value: object) -> str:
    """A Python number as it stands in source text; inf and nan have no literal."""
    text = repr(value)
    return f'float("{text}")' if text in {"inf", "-inf", "nan"} else text


def by_seed(tensor: Tensor, fill: str = "randn") -> Tensor:
    """The tensor with values that need no file."""
    return replace(tensor, fill=fill, file=None, key=None, cut=False, values=())
