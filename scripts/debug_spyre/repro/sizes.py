"""The numbers of a program that are sizes, which of them change together, and the program with other ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.examine.call import Arg, Call, Program, Tensor
from debug_spyre.repro.writing import contiguous


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
