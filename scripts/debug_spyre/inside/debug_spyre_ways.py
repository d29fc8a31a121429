"""Ways round a limit of an op: the same call in chunks, or padded and cut again, built from the op itself.

Each takes and gives what the op does, so that its result is judged like the op's. Lives in the test process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from debug_spyre_calls import mapped, tensors_in  # type: ignore[import-not-found]

Places = list[tuple[int, int]]  # (tensor in the order of the arguments, dimension)


def way_round(op: Any, way: dict[str, Any]) -> Callable[..., Any]:
    """The op, carried out in another way: {"kind": chunks|padded, "places", "size"}."""
    places = [(int(t), int(d)) for t, d in way["places"]]
    return {"chunks": in_chunks, "padded": padded}[way["kind"]](op, places, int(way["size"]))


def in_chunks(op: Any, places: Places, size: int) -> Callable[..., Any]:
    """At most `size` (2 or more) elements at a time along these places; partial results are joined, or reduced once more."""

    def run(*args: Any, **kwargs: Any) -> Any:
        first, dim = list(tensors_in((args, kwargs)))[places[0][0]], places[0][1]
        total, back = first.size(dim), dim - first.dim()
        parts = []
        for start in range(0, total, size):
            length = min(size, total - start)
            few, more = _changed((args, kwargs), _at(places, partial(_cut, start=start, length=length)))
            parts.append(op(*few, **more))
        is_kept = parts[0].dim() >= -back and parts[0].size(back) == min(size, total)
        if is_kept:
            return torch.cat(parts, back)
        if parts[0].dim() == first.dim():
            return op(torch.cat(parts, dim), *args[1:], **kwargs)
        return op(torch.stack(parts, dim), *args[1:], **kwargs)

    return run


def _cut(tensor: torch.Tensor, dim: int, *, start: int, length: int) -> torch.Tensor:
    return tensor.narrow(dim, start, length)


def padded(op: Any, places: Places, multiple: int) -> Callable[..., Any]:
    """Zeros are appended along these places up to a multiple; what they add to the result is cut off."""

    def wider(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        more = -tensor.size(dim) % multiple
        shape = [*tensor.shape[:dim], more, *tensor.shape[dim + 1 :]]
        return torch.cat([tensor, tensor.new_zeros(shape)], dim) if more else tensor

    def run(*args: Any, **kwargs: Any) -> Any:
        first, dim = list(tensors_in((args, kwargs)))[places[0][0]], places[0][1]
        total, back = first.size(dim), dim - first.dim()
        few, more = _changed((args, kwargs), _at(places, wider))
        result = op(*few, **more)
        return result.narrow(back, 0, total) if result.dim() >= -back and result.size(back) > total else result

    return run


def _at(places: Places, change: Callable[[torch.Tensor, int], torch.Tensor]) -> Callable[[int, torch.Tensor], Any]:
    dims = dict(places)
    return lambda number, tensor: change(tensor, dims[number]) if number in dims else tensor


def _changed(given: Any, change: Callable[[int, torch.Tensor], Any]) -> Any:
    """The arguments with each tensor changed by its number."""
    number = -1

    def one(value: Any) -> Any:
        nonlocal number
        if not isinstance(value, torch.Tensor):
            return value
        number += 1
        return change(number, value)

    return mapped(given, one)
