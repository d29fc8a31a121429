"""Other calls of the same op: sizes, strides, offsets, types, forms changed one at a time or by chance.

Whether the op takes them is not known here: the test process tries each on the meta device.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.examine.features import JsonCall, tensor_specs

SIZES = (
    1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 48, 63, 64, 65, 80, 96, 100, 127, 128, 129, 160, 192, 200, 255, 256, 257, 300, 320, 384,
    500, 512, 513, 768, 1000, 1024, 2048, 4096, 8192,
)  # fmt: skip
MOST_ELEMENTS = 1 << 22
ORDINARY = 1 << 17  # elements of an ordinary drawn call: quick to make and to judge
FLOATS = ("float16", "bfloat16", "float32")
Place = tuple[int, int]  # tensor, dimension counted from the front


class Draws:
    """Numbers that look random and follow from the seed alone."""

    def __init__(self, seed: int) -> None:
        self.state = (seed * 2862933555777941757 + 3037000493) % (1 << 64)

    def below(self, limit: int) -> int:
        """A whole number from 0 to below the limit."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        mixed = self.state ^ (self.state >> 29)
        return ((mixed * 0xBF58476D1CE4E5B9) % (1 << 64) >> 33) % limit

    def one(self, of: Sequence[Any]) -> Any:
        """One of these."""
        return of[self.below(len(of))]

    def chance(self, of: float) -> bool:
        """True so often."""
        return self.below(1 << 20) < of * (1 << 20)


@dataclass(frozen=True, slots=True)
class Space:
    """What can be varied of a call: which places change size together, its other forms, where its dimensions stand."""

    call: JsonCall
    groups: tuple[tuple[Place, ...], ...] = ()
    forms: tuple[tuple[str, str], ...] = ()  # (op, form)
    dim_place: int | None = None
    is_list: bool = False
    rank: int = 0
    given: tuple[str, ...] = field(default=())  # types that were seen at the call


def key_of(call: JsonCall) -> str:
    """Equal for calls that are made alike."""
    text = json.dumps(call, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def plain(call: JsonCall) -> JsonCall:
    """The call with random data in place of what was recorded; integers within their bounds."""
    changed: JsonCall = copy.deepcopy(call)
    for spec in tensor_specs(changed):
        spec.update(fill="randn", file=None, key=None)
    return changed


def contiguous(call: JsonCall) -> JsonCall:
    """All tensors contiguous from the start of their storage."""
    changed: JsonCall = copy.deepcopy(call)
    for spec in tensor_specs(changed):
        spec.update(stride=None, offset=0)
        spec.pop("layout", None)
    return changed


def default_layout(call: JsonCall) -> JsonCall:
    """All tensors laid out on the card as their shapes are by default; strides and offsets as they are."""
    changed: JsonCall = copy.deepcopy(call)
    for spec in tensor_specs(changed):
        spec.pop("layout", None)
    return changed


def resized(call: JsonCall, group: Sequence[Place], size: int) -> JsonCall:
    """These places set to the size; what is strided keeps the order of its strides and its gaps."""
    changed: JsonCall = copy.deepcopy(call)
    every = tensor_specs(changed)
    for tensor, dim in group:
        spec = every[tensor]
        before = list(spec["shape"])
        spec["shape"][dim] = size
        spec.pop("layout", None)  # it is one of the old sizes
        if spec.get("stride"):
            spec["stride"] = _restrided(before, spec["stride"], spec["shape"])
    return changed


def _restrided(before: Sequence[int], old: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Strides for other sizes: each dimension keeps the factor by which it leaves more room than it needs."""
    order = sorted((d for d in range(len(old)) if old[d]), key=lambda d: (old[d], -d))
    strides, step_before, step = [0] * len(old), 1, 1
    for dim in order:
        gap = max(old[dim] // max(step_before, 1), 1)
        strides[dim] = step * gap
        step_before, step = old[dim] * before[dim], strides[dim] * shape[dim]
    return strides


def is_small(call: JsonCall, most: int = MOST_ELEMENTS) -> bool:
    """No tensor is too large to be made again and again."""
    return all(math.prod(spec["shape"]) <= most for spec in tensor_specs(call))


def views(spec: dict[str, Any]) -> Iterator[tuple[list[int] | None, int]]:
    """(stride, offset) of other views of the same shape: offset, transposed, sliced, expanded."""
    shape = spec["shape"]
    row = max(shape[-1] if shape else 1, 1)
    steps = _steps(shape)
    yield None, 0
    yield None, row
    yield None, 64
    yield None, 3
    if shape and shape[-1] > 1:
        yield [s * 2 for s in steps], 0
        yield [*(s * 2 for s in steps[:-1]), 1], 0
    if len(shape) >= 2:
        swapped = [*shape[:-2], shape[-1], shape[-2]]
        turned = _steps(swapped)
        yield [*turned[:-2], turned[-1], turned[-2]], 0
        if shape[0] > 1:
            yield [0, *steps[1:]], 0


def _steps(shape: Sequence[int]) -> list[int]:
    found: list[int] = []
    step = 1
    for size in reversed(shape):
        found.insert(0, step)
        step *= size
    return found


def one_at_a_time(space: Space) -> Iterator[JsonCall]:
    """The call with one thing changed: what tells most first."""
    call = space.call
    for number, spec in enumerate(tensor_specs(call)):
        for stride, offset in views(spec):
            changed = copy.deepcopy(call)
            tensor_specs(changed)[number].update(stride=stride, offset=offset)
            yield changed
    yield contiguous(call)
    yield default_layout(call)
    for group in space.groups:
        for size in SIZES:
            yield resized(call, group, size)
    for tensor, spec in enumerate(tensor_specs(call)):  # a size of one is broadcast where the op does so
        for dim in range(len(spec["shape"])):
            yield resized(call, [(tensor, dim)], 1)
    yield from (_formed(call, op, form) for op, form in space.forms)
    for dtype in FLOATS:
        yield _typed(call, dtype)
    yield from _dims(space)
    yield from _ranks(call)
    yield from _numbers(call)
    yield from _highs(call)


def _formed(call: JsonCall, op: str, form: str) -> JsonCall:
    changed = copy.deepcopy(call)
    changed["op"] = op
    changed["form"] = form
    return changed


def _typed(call: JsonCall, dtype: str) -> JsonCall:
    changed = copy.deepcopy(call)
    for spec in tensor_specs(changed):
        if spec["dtype"].startswith(("float", "bfloat")):
            spec["dtype"] = dtype
    return changed


def _dims(space: Space) -> Iterator[JsonCall]:
    if space.dim_place is None or space.dim_place >= len(space.call["args"]):
        return
    for dim in range(-space.rank, 0):
        changed = copy.deepcopy(space.call)
        changed["args"][space.dim_place] = [dim] if space.is_list else dim
        yield changed
    if space.is_list and space.rank > 1:
        changed = copy.deepcopy(space.call)
        changed["args"][space.dim_place] = [-2, -1]
        yield changed


def _ranks(call: JsonCall) -> Iterator[JsonCall]:
    """One leading dimension more or less, of all tensors of the highest rank."""
    most = max((len(s["shape"]) for s in tensor_specs(call)), default=0)
    for more in (1, 3, None):
        changed = copy.deepcopy(call)
        for spec in tensor_specs(changed):
            if len(spec["shape"]) != most or (more is None and most < 2):
                continue
            shape = spec["shape"][1:] if more is None else [more, *spec["shape"]]
            spec.update(shape=shape, stride=None, offset=0)
        yield changed


def _numbers(call: JsonCall) -> Iterator[JsonCall]:
    """Another number in place of each, and a number in place of the second tensor."""
    for place, value in enumerate(call["args"]):
        if isinstance(value, float):
            for other in (0.5, 1.0, 2.0):
                changed = copy.deepcopy(call)
                changed["args"][place] = other
                yield changed
        if place == 1 and isinstance(value, dict) and "tensor" in value:
            changed = copy.deepcopy(call)
            changed["args"][place] = 1.5
            yield changed


def _highs(call: JsonCall) -> Iterator[JsonCall]:
    for number, spec in enumerate(tensor_specs(call)):
        if spec["dtype"].startswith(("float", "bfloat", "bool")):
            continue
        for high in (1, 2, 3, 4, 8, 64, 65, 128, 1024):
            changed = copy.deepcopy(call)
            tensor_specs(changed)[number].update(low=0, high=high)
            yield changed


def drawn(space: Space, bases: Sequence[JsonCall], draws: Draws, count: int) -> list[JsonCall]:
    """Calls by chance: one of the bases with up to four things changed."""
    found: dict[str, JsonCall] = {}
    for _ in range(4 * count):
        if len(found) >= count:
            break
        call = copy.deepcopy(draws.one(bases))
        for _ in range(1 + draws.below(4)):
            call = _changed(space, call, draws)
        if is_small(call) and (is_small(call, ORDINARY) or draws.chance(0.15)):
            found[key_of(call)] = call
    return list(found.values())


def _changed(space: Space, call: JsonCall, draws: Draws) -> JsonCall:
    every = tensor_specs(call)
    kind = draws.below(20)
    if kind < 12 and space.groups:
        group = draws.one(space.groups)
        if all(t < len(every) and d < len(every[t]["shape"]) for t, d in group):
            return resized(call, group, _size(draws, every[group[0][0]]["shape"][group[0][1]]))
    if kind < 15 and every:
        number = draws.below(len(every))
        stride, offset = draws.one(list(views(every[number])))
        if stride is None and kind == 14:
            stride = every[number].get("stride")
        every[number].update(stride=stride, offset=offset)
        return call
    if kind == 15 and space.forms:
        return _formed(call, *draws.one(space.forms))
    if kind == 16:
        return _typed(call, draws.one(FLOATS))
    others = [*_dims(Space(call, dim_place=space.dim_place, is_list=space.is_list, rank=space.rank)), *_numbers(call)]
    others += [*_ranks(call)] if kind == 17 else [*_highs(call)]
    return draws.one(others) if others else call


def _size(draws: Draws, now: int) -> int:
    """A size: a telling one, one near the present one, or any, small ones as often as large ones."""
    kind = draws.below(6)
    if kind == 0:
        return max(1, now + draws.below(9) - 4)
    if kind <= 2:
        return int(draws.one(SIZES[:-2]))
    if kind == 3:
        return 64 * (1 + draws.below(20))
    return 1 + draws.below(1 << (1 + draws.below(11)))
