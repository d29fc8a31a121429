"""The numbers of a program that are sizes, which change together, and the search for the smallest that still shows the fault."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from debug_spyre.examine.call import Arg, Call, Program, Tensor
from debug_spyre.repro.writing import contiguous

BATCH, DEAR = 8, 2
STICK = 64  # fp16 elements of one 128-byte stick (torch-spyre, 2026)
Item = TypeVar("Item")


def sizes_to_try(known: Mapping[int, bool], start: int, batch: int = BATCH) -> tuple[int, ...]:
    """The next batch for one size. `known`: size -> still shows the fault; `start` shows it.

    Empty when the smallest failing size is found: the size below it is known to be fine (or it is 1). A `batch` below
    BATCH means that each try is dear: the smallest sizes first, then few between.
    """
    failing = min([s for s, shows in known.items() if shows] + [start])
    if failing <= 1:
        return ()
    fine = [s for s, shows in known.items() if not shows and s < failing]
    if not fine and len([s for s in known if s != start]) == 0:
        return _landmarks(start) if batch >= BATCH else tuple(s for s in (1, 2) if s < start)
    below = max(fine, default=0)
    gap = failing - below
    if gap <= 1:
        return ()
    if gap - 1 <= batch:
        return tuple(range(below + 1, failing))
    step = gap / (batch + 1)
    return tuple(sorted({below + max(1, round(step * k)) for k in range(1, batch + 1)} - {below, failing}))


def _landmarks(start: int) -> tuple[int, ...]:
    """Sizes at which hardware likes to change its mind: one, sticks and their neighbours, powers of two."""
    marks = {1, 2, 3}
    power = 4
    while power < start:
        marks |= {power, power + 1}
        power *= 2
    marks |= {STICK - 1, STICK, STICK + 1, 2 * STICK, 2 * STICK + 1, start // 2, start - 1}
    return tuple(sorted(m for m in marks if 0 < m < start))


def sizes_above(known: Mapping[int, bool], smallest: int) -> tuple[int, ...]:
    """Larger sizes that tell a threshold from a multiple: sticks and their neighbours that were not tried."""
    whole = [(smallest // n + 1) * n for n in (STICK, 2 * STICK)]
    marks = {STICK - 1, STICK, STICK + 1, 2 * STICK, 2 * STICK + 1, 3 * STICK, *whole}
    return tuple(sorted(size for size in marks if size > smallest and size not in known))


def threshold_in_words(known: Mapping[int, bool]) -> str:
    """What the tried sizes say, one of which shows the fault: "fails from 129", or where it is not that simple."""
    failing = sorted(s for s, shows in known.items() if shows)
    fine = sorted(s for s, shows in known.items() if not shows)
    if not fine:
        return f"fails at every size tried ({failing[0]} to {failing[-1]})"
    above = [s for s in fine if s > failing[0]]
    if not above:
        return f"fails from {failing[0]} (fine at {max(fine)})"
    below = [s for s in fine if s < failing[0]]
    step = next((n for n in (STICK, 2 * STICK) if all(s % n == 0 for s in above) and all(s % n for s in failing)), None)
    if step:
        also = f", fine at {', '.join(map(str, below[-3:]))} too" if below else ""
        return f"fails at sizes that are no multiple of {step} (smallest tried: {failing[0]}{also})"
    return f"fails at {failing[0]}, but not at {', '.join(map(str, above[:4]))}: not a simple threshold"


def parts_to_try(items: Sequence[Item], pieces: int) -> tuple[tuple[Item, ...], ...]:
    """What delta debugging tries next: each piece alone, then all but each piece (Zeller and Hildebrandt, 2002)."""
    pieces = min(pieces, len(items))
    edges = [len(items) * n // pieces for n in range(pieces + 1)] if pieces else []
    chunks = [tuple(items[a:b]) for a, b in itertools.pairwise(edges)]
    rest = [tuple(items[:a]) + tuple(items[b:]) for a, b in itertools.pairwise(edges)]
    return tuple(part for part in (*chunks, *(rest if pieces > 2 else ())) if len(part) < len(items))


@dataclass(frozen=True, slots=True)
class Place:
    """One number of a call that is a size: dimension `dim` of tensor `tensor`, its offset, or the integer at `path`.

    `path` is ("args", 1, 0) or ("kwargs", "name", 0). `call` counts from the judged call, which is 0, backwards.
    """

    tensor: int | None = None
    dim: int | None = None
    path: tuple[Any, ...] | None = None
    call: int = 0

    @property
    def is_offset(self) -> bool:
        """The storage offset of a tensor."""
        return self.tensor is not None and self.dim is None

    def says(self) -> str:
        """As the script names it."""
        if self.tensor is None:
            return ".".join(map(str, self.path or ()))
        name = "abcdefghijklmnopqrstuvwxyz"[self.tensor % 26]
        return f"{name} storage offset" if self.is_offset else f"{name}.shape[{self.dim}]"


Group = tuple[Place, ...]  # places that must change together for the call to stay legal, or for the fault to show


def says(group: Group) -> str:
    """A group in words: the places of the judged call, and that earlier calls change with them."""
    own = " = ".join(place.says() for place in group if not place.call)
    before = len({place.call for place in group if place.call})
    if not before:
        return own
    also = f"{before} earlier call{'s' if before > 1 else ''}"
    return f"{own} (and of {also})" if own else f"sizes of {also}"


def places(call: Call, number: int = 0) -> dict[Place, int]:
    """Every number of one call that may be a size, with its value; integers only where they equal a dimension."""
    found = {
        Place(tensor=n, dim=dim, call=number): size
        for n, tensor in enumerate(call.tensors())
        for dim, size in enumerate(tensor.shape)
    }
    sizes = {size for size in found.values() if size > 1}
    for path, value in _integers(call):
        if value in sizes:
            found[Place(path=path, call=number)] = value
    return found


def offsets(call: Call) -> dict[Place, int]:
    """The storage offsets of a call."""
    return {Place(tensor=n): t.offset for n, t in enumerate(call.tensors()) if t.offset}


def value_at(program: Program, place: Place) -> int:
    """The number at that place."""
    call = program.calls[place.call - 1]
    if place.tensor is not None:
        tensor = call.tensors()[place.tensor]
        return tensor.offset if place.dim is None else tensor.shape[place.dim]
    return next(value for path, value in _integers(call) if path == place.path)


def _integers(call: Call) -> Iterable[tuple[tuple[Any, ...], int]]:
    def walk(value: Arg, path: tuple[Any, ...]) -> Iterable[tuple[tuple[Any, ...], int]]:
        if isinstance(value, int) and not isinstance(value, bool):
            yield path, value
        elif isinstance(value, tuple):
            for number, item in enumerate(value):
                yield from walk(item, (*path, number))

    for number, value in enumerate(call.args):
        yield from walk(value, ("args", number))
    for name, value in call.kwargs.items():
        yield from walk(value, ("kwargs", name))


def resize(program: Program, group: Group, size: int) -> Program:
    """The program with each place of the group at that size. Views keep the order of their dimensions."""
    calls = list(program.calls)
    for number in {place.call for place in group}:
        calls[number - 1] = _resize_call(calls[number - 1], [p for p in group if p.call == number], size)
    return program.with_calls(calls)


def _resize_call(call: Call, group: Iterable[Place], size: int) -> Call:
    wanted: dict[int, dict[int | None, int]] = {}
    for place in group:
        if place.tensor is not None:
            wanted.setdefault(place.tensor, {})[place.dim] = size
        elif place.path is not None:
            call = _set(call, place.path, size)
    counter = iter(range(len(call.tensors())))
    return call.map_tensors(lambda tensor: _resized(tensor, wanted.get(next(counter), {})))


def _resized(tensor: Tensor, sizes: Mapping[int | None, int]) -> Tensor:
    if not sizes:
        return tensor
    if None in sizes:
        return replace(tensor, offset=sizes[None])
    shape = tuple(sizes.get(dim, old) for dim, old in enumerate(tensor.shape))
    if tensor.fill == "file":  # the first part of what was saved
        return replace(tensor, shape=shape, cut=True)
    if tensor.fill == "values" and shape != tensor.shape:
        raise ValueError("a tensor of listed values has one size")
    if tensor.stride is None:
        return replace(tensor, shape=shape)
    stride = _restrided(tensor, shape)
    return replace(tensor, shape=shape, stride=None if stride == contiguous(shape) and not tensor.offset else stride)


def _restrided(tensor: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The order of the dimensions in memory stays, and so do the gaps between them, expanded ones (stride 0) too."""
    old = tensor.stride or contiguous(tensor.shape)
    stride = list(old)
    step = 1
    for dim in sorted(range(len(shape)), key=lambda d: (old[d], -d)):
        if old[dim] == 0:
            continue
        gap = old[dim] // max(1, _packed_step(tensor, old, dim))
        stride[dim] = step * max(1, gap)
        step = stride[dim] * max(1, shape[dim])
    return tuple(stride)


def _packed_step(tensor: Tensor, stride: tuple[int, ...], dim: int) -> int:
    """What the stride of `dim` would be if the smaller ones were packed."""
    inner = [d for d in range(len(stride)) if 0 < stride[d] < stride[dim]]
    if not inner:
        return 1
    widest = max(inner, key=lambda d: stride[d])
    return stride[widest] * max(1, tensor.shape[widest])


def _set(call: Call, path: tuple[Any, ...], size: int) -> Call:
    def put(value: Arg, rest: tuple[Any, ...]) -> Arg:
        if not rest:
            return size
        items = list(value)
        items[rest[0]] = put(items[rest[0]], rest[1:])
        return tuple(items)

    where, key, *rest = path
    if where == "args":
        args = list(call.args)
        args[key] = put(args[key], tuple(rest))
        return replace(call, args=tuple(args))
    return replace(call, kwargs={**call.kwargs, key: put(call.kwargs[key], tuple(rest))})


def smallest_groups(program: Program, legal: Iterable[Group]) -> tuple[Group, ...]:
    """The smallest legal sets of places of one call, each place in one set at most, the largest sizes first."""
    chosen: list[Group] = []
    used: set[Place] = set()
    for group in sorted(legal, key=lambda g: (len(g), [_order(p) for p in g])):
        if used.isdisjoint(group):
            chosen.append(group)
            used.update(group)
    return tuple(sorted(chosen, key=lambda g: -value_at(program, g[0])))


def _order(place: Place) -> tuple[int, int, str]:
    return (place.tensor if place.tensor is not None else 99, place.dim or 0, str(place.path))


def tied(program: Program, group: Group) -> tuple[Group, ...]:
    """The group with what may have to be of the same size in earlier calls, for the fault to show, the closest first.

    The same places of calls of the same form; then every dimension of that number and size.
    """
    alike, loose = list(group), list(group)
    dims, size = {p.dim for p in group if p.tensor is not None}, value_at(program, group[0])
    for number, call in enumerate(program.prelude):
        back = number - len(program.prelude)
        sizes = places(call, back)
        same = [replace(place, call=back) for place in group]
        if call.op == program.call.op and all(sizes.get(place) == size for place in same):
            alike += same
        loose += [place for place, value in sizes.items() if value == size and place.dim in dims]
    return tuple(g for g in dict.fromkeys((tuple(alike), tuple(loose))) if g != group)


def without_first(group: Group, lost: Sequence[int]) -> Group:
    """The group's places once each tensor of the judged call has lost so many leading dimensions."""
    found = []
    for place in group:
        if place.call or place.tensor is None or place.dim is None:
            found.append(place)
        elif place.dim >= lost[place.tensor]:
            found.append(replace(place, dim=place.dim - lost[place.tensor]))
    return tuple(found) if any(not p.call for p in found) or all(p.call for p in group) else ()
