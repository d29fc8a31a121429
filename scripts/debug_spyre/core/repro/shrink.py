"""The search for the smallest call that still shows the fault: pure steps, evaluated elsewhere in batches.

A size is searched k-ary: a batch of sizes is tried at once, so that a few processes suffice. Whether the fault is
monotone in the size is looked at, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.core.repro.call import Arg, Call, Tensor

BATCH = 8
STICK = 64  # fp16 elements of one 128-byte stick (torch-spyre, 2026)


@dataclass(frozen=True, slots=True)
class Place:
    """One number of a call that is a size: dimension `dim` of tensor `tensor`, or the integer at `path` of args."""

    tensor: int | None = None
    dim: int | None = None
    path: tuple[Any, ...] | None = None  # ("args", 1, 0) or ("kwargs", "name", 0)


Group = tuple[Place, ...]  # places that must change together for the call to stay legal


def places(call: Call) -> dict[Place, int]:
    """Every number that may be a size, with its value; integers only where they equal a dimension."""
    found = {
        Place(tensor=number, dim=dim): size
        for number, tensor in enumerate(call.tensors())
        for dim, size in enumerate(tensor.shape)
    }
    sizes = {size for size in found.values() if size > 1}
    for path, value in _integers(call):
        if value in sizes:
            found[Place(path=path)] = value
    return found


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


def resize(call: Call, group: Group, size: int) -> Call:
    """The call with each place of the group at that size. Views become contiguous in the dimensions' old order."""
    wanted: dict[int, dict[int, int]] = {}
    for place in group:
        if place.tensor is not None and place.dim is not None:
            wanted.setdefault(place.tensor, {})[place.dim] = size
    counter = iter(range(len(call.tensors())))

    def change(tensor: Tensor) -> Tensor:
        return _resized(tensor, wanted.get(next(counter), {}))

    changed = call.map_tensors(change)
    for place in group:
        if place.path is not None:
            changed = _set(changed, place.path, size)
    return changed


def _resized(tensor: Tensor, sizes: Mapping[int, int]) -> Tensor:
    if not sizes:
        return tensor
    shape = tuple(sizes.get(dim, old) for dim, old in enumerate(tensor.shape))
    if tensor.stride is None:
        return replace(tensor, shape=shape)
    # keep the order of the dimensions in memory, expanded ones (stride 0) included
    order = sorted(range(len(shape)), key=lambda d: -tensor.stride[d])  # type: ignore[index]
    stride = list(tensor.stride)
    step = 1
    for dim in reversed(order):
        if tensor.stride[dim] == 0:
            continue
        gap = tensor.stride[dim] // max(1, _old_step(tensor, dim))
        stride[dim] = step * max(1, gap)
        step = stride[dim] * max(1, shape[dim])
    return replace(tensor, shape=shape, stride=tuple(stride))


def _old_step(tensor: Tensor, dim: int) -> int:
    """What the stride of `dim` would be if the smaller ones were packed."""
    if tensor.stride is None:
        return 1
    inner = [d for d in range(len(tensor.shape)) if 0 < tensor.stride[d] < tensor.stride[dim]]
    if not inner:
        return 1
    widest = max(inner, key=lambda d: tensor.stride[d])  # type: ignore[index]
    return tensor.stride[widest] * max(1, tensor.shape[widest])


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


def candidate_groups(call: Call, legal: Iterable[Group]) -> tuple[Group, ...]:
    """The smallest legal sets of places, each place in one set at most, the largest sizes first."""
    sizes = places(call)
    chosen: list[Group] = []
    used: set[Place] = set()
    for group in sorted(legal, key=lambda g: (len(g), [_order(p) for p in g])):
        if used.isdisjoint(group):
            chosen.append(group)
            used.update(group)
    return tuple(sorted(chosen, key=lambda g: -sizes[g[0]]))


def _order(place: Place) -> tuple[int, int, str]:
    return (place.tensor if place.tensor is not None else 99, place.dim or 0, str(place.path))


def sizes_to_try(known: Mapping[int, bool], start: int) -> tuple[int, ...]:
    """The next batch for one size. `known`: size -> still shows the fault; `start` shows it.

    Empty when the smallest failing size is found: the size below it is known to be fine (or it is 1).
    """
    failing = min([s for s, shows in known.items() if shows] + [start])
    if failing <= 1:
        return ()
    fine = [s for s, shows in known.items() if not shows and s < failing]
    if not fine and len([s for s in known if s != start]) == 0:
        return _landmarks(start)
    below = max(fine, default=0)
    gap = failing - below
    if gap <= 1:
        return ()
    if gap - 1 <= BATCH:
        return tuple(range(below + 1, failing))
    step = gap / (BATCH + 1)
    return tuple(sorted({below + max(1, round(step * k)) for k in range(1, BATCH + 1)} - {below, failing}))


def _landmarks(start: int) -> tuple[int, ...]:
    """Sizes at which hardware likes to change its mind: one, sticks and their neighbours, powers of two."""
    marks = {1, 2, 3}
    power = 4
    while power < start:
        marks |= {power, power + 1}
        power *= 2
    marks |= {STICK - 1, STICK, STICK + 1, 2 * STICK, 2 * STICK + 1, start // 2, start - 1}
    return tuple(sorted(m for m in marks if 0 < m < start))


def threshold_in_words(known: Mapping[int, bool], start: int) -> str:
    """What the tried sizes say: "fails from 129", or where it is not that simple."""
    tried = {**known, start: True}
    failing = sorted(s for s, shows in tried.items() if shows)
    fine = sorted(s for s, shows in tried.items() if not shows)
    if not fine:
        return f"fails at every size tried ({failing[0]} to {failing[-1]})"
    above = [s for s in fine if s > failing[0]]
    if not above:
        return f"fails from {failing[0]} (fine at {max(fine)})"
    if all(s % STICK == 0 for s in fine) and all(s % STICK for s in failing):
        return f"fails at sizes that are no multiple of {STICK} (smallest tried: {failing[0]})"
    return f"fails at {failing[0]}, but not at {', '.join(map(str, above[:4]))}: not a simple threshold"


def simplifications(call: Call) -> tuple[tuple[str, Call], ...]:
    """Simpler forms of the call to try one by one: contiguous views, no offset, no keyword arguments."""
    found: list[tuple[str, Call]] = []
    if any(t.stride is not None or t.offset for t in call.tensors()):
        found.append(("contiguous inputs", call.map_tensors(lambda t: replace(t, stride=None, offset=0))))
    if any(t.offset for t in call.tensors()):
        found.append(("no storage offset", call.map_tensors(lambda t: replace(t, offset=0))))
    for name in call.kwargs:
        kept = {k: v for k, v in call.kwargs.items() if k != name}
        found.append((f"without {name}=", replace(call, kwargs=kept)))
    return tuple((text, c) for text, c in found if c != call)


def variants(call: Call) -> tuple[Call, ...]:
    """The same call with other values that may show a fault where these do not: a one in the last place of each row.

    Near a threshold an element that is left out drowns among random ones; alone it can't.
    """
    seeded = [t for t in call.tensors() if t.is_float and t.fill in {"randn", "rand", "last"}]
    if not seeded:
        return (call,)
    chosen = [seeded, *([t] for t in seeded if len(seeded) > 1)]
    found = [call, *(call.map_tensors(_with_last(some)) for some in chosen)]
    return tuple(c for n, c in enumerate(found) if c not in found[:n])


def _with_last(chosen: list[Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda t: replace(t, fill="last") if any(t is c for c in chosen) else t


def plain_values(call: Call) -> Call | None:
    """The call with ones for random numbers: easier to read, tried once everything else is small."""
    if not any(t.is_float and t.fill in {"randn", "rand"} for t in call.tensors()):
        return None
    return call.map_tensors(lambda t: replace(t, fill="ones") if t.is_float and t.fill != "file" else t)
