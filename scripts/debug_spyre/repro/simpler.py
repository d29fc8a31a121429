"""Simpler forms of a program, each to be tried: views, arguments, types, dimensions, values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from debug_spyre.examine.call import RTOL, SCALE_TOL, Call, Program, Tensor, Word
from debug_spyre.repro.writing import by_seed

NATIVE = "float16"  # the type that the card computes in (torch-spyre, 2026)
SEEDED = {"randn", "rand", "last", "spread", "nan", "inf"}
SPREAD_MOST = 256  # more values than that lie closer together than the comparison's tolerance
SPECIAL = ("nan", "inf", "ones")

Form = tuple[str, Program]


def simplifications(program: Program) -> tuple[Form, ...]:
    """Simpler forms of the judged call: contiguous, no offset, the native type, fewer arguments and dimensions."""
    call = program.call
    found = [*_layouts(call), *_views(call), *_types(call), *_arguments(call), *_dimensions(call)]
    seen = {str(program)}
    forms = []
    for text, simpler in found:
        form = replace(program, call=simpler)
        if str(form) not in seen:
            seen.add(str(form))
            forms.append((text, form))
    return tuple(forms)


def _layouts(call: Call) -> Iterator[tuple[str, Call]]:
    if any(t.layout for t in call.tensors()):
        yield "the card's default layout", call.map_tensors(lambda t: replace(t, layout=None))


def _views(call: Call) -> Iterator[tuple[str, Call]]:
    if any(_is_seeded_view(t) for t in call.tensors()):
        yield "contiguous inputs", call.map_tensors(lambda t: _plain(t) if _is_seeded_view(t) else t)
    for number, tensor in enumerate(call.tensors()):
        if _is_seeded_view(tensor):
            yield f"{_letter(number)} contiguous", _with(call, number, _plain)
        if tensor.offset and tensor.fill != "file":
            yield f"{_letter(number)} without storage offset", _with(call, number, lambda t: replace(t, offset=0))


def _is_seeded_view(tensor: Tensor) -> bool:
    return (tensor.stride is not None or bool(tensor.offset)) and tensor.fill != "file"


def _plain(tensor: Tensor) -> Tensor:
    return replace(tensor, stride=None, offset=0)


def _types(call: Call) -> Iterator[tuple[str, Call]]:
    """The native float type in place of others, with room for its rounding; torch's ordinary integer in place of others."""
    if any(t.is_float and t.dtype != NATIVE for t in call.tensors()):
        native = _retyped(call, lambda t: t.is_float, NATIVE)
        yield NATIVE, replace(native, rtol=max(call.rtol, 2 * RTOL), scale_tol=max(call.scale_tol, SCALE_TOL))
    if any(_is_integer(t) and t.dtype != "int64" for t in call.tensors()):
        yield "int64", _retyped(call, _is_integer, "int64")
    for text, high in (("integers 0", 1), ("integers below 2", 2)):
        if any(_is_integer(t) and t.fill != "file" and not 0 <= t.low < t.high <= high for t in call.tensors()):
            yield text, call.map_tensors(partial(_bounded, high))


def _bounded(high: int, tensor: Tensor) -> Tensor:
    return replace(tensor, low=0, high=high) if _is_integer(tensor) else tensor


def _is_integer(tensor: Tensor) -> bool:
    return tensor.dtype.removeprefix("u").startswith("int")


def _retyped(call: Call, chosen: Callable[[Tensor], bool], dtype: str) -> Call:
    old = {f"torch.{t.dtype}" for t in call.tensors() if chosen(t)}
    changed = call.map_tensors(lambda t: replace(t, dtype=dtype) if chosen(t) and t.fill != "file" else t)
    words = {
        k: Word(f"torch.{dtype}") if isinstance(v, Word) and v.text in old else v for k, v in changed.kwargs.items()
    }
    return replace(changed, kwargs=words)


def _arguments(call: Call) -> Iterator[tuple[str, Call]]:
    for name in call.kwargs:
        yield f"without {name}=", replace(call, kwargs={k: v for k, v in call.kwargs.items() if k != name})
    for place, value in enumerate(call.args):
        if isinstance(value, tuple) and len(value) > 1 and all(isinstance(item, Tensor) for item in value):
            for number in range(len(value)):
                fewer = value[:number] + value[number + 1 :]
                args = (*call.args[:place], fewer, *call.args[place + 1 :])
                yield f"without tensor {number} of the list", replace(call, args=args)


def _dimensions(call: Call) -> Iterator[tuple[str, Call]]:
    """Without leading dimensions of size 1, of all tensors at once or of one."""
    droppable = [n for n, t in enumerate(call.tensors()) if len(t.shape) > 1 and t.shape[0] == 1 and t.fill != "file"]
    deepest = max((len(t.shape) for t in call.tensors()), default=0)
    together = [n for n in droppable if len(call.tensors()[n].shape) == deepest]
    if len(together) > 1:
        simpler = call
        for number in together:
            simpler = _with(simpler, number, _without_first)
        yield "one dimension less", simpler
    for number in droppable:
        yield f"{_letter(number)} with one dimension less", _with(call, number, _without_first)


def _without_first(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tensor.shape[1:], stride=tensor.stride[1:] if tensor.stride else None)


def _with(call: Call, wanted: int, change: Callable[[Tensor], Tensor]) -> Call:
    counter = iter(range(len(call.tensors())))
    return call.map_tensors(lambda t: change(t) if next(counter) == wanted else t)


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number % 26]


def variants(program: Program, kinds: tuple[str, ...] = ()) -> tuple[Program, ...]:
    """The same program with other values that may show a fault where these do not.

    Near a threshold an element that is left out drowns among random ones: a one in the last place of each row can't.
    Two random elements may happen to be equal: evenly spread ones can't. NaN and infinity become rare in small tensors.
    """
    seeded = [n for n, t in enumerate(program.call.tensors()) if t.is_float and t.fill in SEEDED]
    if not seeded:
        return (program,)
    found = [program, _filled(program, seeded, "last")]
    found += [_filled(program, [n], "last") for n in seeded if len(seeded) > 1]
    if sum(program.call.tensors()[n].numel for n in seeded) <= SPREAD_MOST:
        found.append(_filled(program, seeded, "spread"))
    if "lost" in kinds:
        found += [_filled(program, seeded, fill) for fill in ("nan", "inf")]
    return tuple(p for n, p in enumerate(found) if p not in found[:n])


def _filled(program: Program, chosen: list[int], fill: str) -> Program:
    counter = iter(range(len(program.call.tensors())))
    return program.map_tensors(lambda t: replace(t, fill=fill) if next(counter) in chosen else t)


def plain_values(program: Program) -> Program | None:
    """Ones for random numbers: easier to read, tried once everything else is small."""
    if not any(t.is_float and t.fill in SEEDED for t in program.tensors()):
        return None
    return program.map_tensors(lambda t: replace(t, fill="ones") if t.is_float and t.fill in SEEDED else t)


def with_fills(program: Program) -> tuple[Form, ...]:
    """The program with values that need no file, the most ordinary first; integers within their bounds."""
    forms = [(f"values by seed ({fill})", program.map_tensors(_by(fill))) for fill in ("randn", "rand")]
    if any(not t.is_float and t.fill == "file" for t in program.call.tensors()):
        forms.append(("values by seed, integers as saved", program.map_tensors(_by("randn", floats_only=True))))
    forms += [(f"nothing but {fill}", program.map_tensors(_by(fill))) for fill in SPECIAL]
    return tuple(forms)


def _by(fill: str, *, floats_only: bool = False) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        if not tensor.is_float:
            return tensor if floats_only else by_seed(tensor, "randint")
        return by_seed(tensor, fill)

    return change
