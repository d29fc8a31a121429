"""Asks the card whether it has one limitation: python debug_spyre_probe.py NAME... Tiny tensors, one process each.

The last line of the output is JSON: {"answer": "holds" | "lifted" | "unknown", "why": ...}. A probe that can't tell the
limitation from another failure answers unknown. Imports torch only.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

HOLDS, LIFTED, UNKNOWN = "holds", "lifted", "unknown"
WRONG = "it runs, and the result is wrong"
DEVICE = "spyre"
PROBES: dict[str, Callable[[Any], tuple[str, str]]] = {}


def probe(function: Callable[[Any], tuple[str, str]]) -> Callable[[Any], tuple[str, str]]:
    """Register a probe by its function's name."""
    PROBES[function.__name__] = function
    return function


def refused(torch: Any, run: Callable[[], Any], expected: Any = None) -> tuple[str, str]:
    """Holds if the card refuses, lifted if it gives the expected result, unknown if it gives another."""
    try:
        result = run()
        if isinstance(result, torch.Tensor):
            result = result.cpu()
    except Exception as error:  # noqa: BLE001  a refusal may have any class
        text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        if is_trouble(str(error)):
            return UNKNOWN, f"the device itself failed: {text}"
        return (HOLDS, text) if is_refusal(error) else (UNKNOWN, f"another failure: {text}")
    if expected is None or same(torch, result, expected):
        return LIFTED, "it works and the result is right"
    return UNKNOWN, WRONG


def is_trouble(text: str) -> bool:
    """The device, and not the limitation, is what failed."""
    return any(
        word in text for word in ("RAS::", "busy", "vfio", "No Spyre devices", "Failed to initialize", "dxp_standalone")
    )


def is_refusal(error: BaseException) -> bool:
    """The backend or the dispatcher said no; running out of stack or memory and a fault in its code are no refusals."""
    classes = {cls.__name__ for cls in type(error).__mro__}
    if classes & {"RecursionError", "MemoryError", "OutOfMemoryError"}:
        return False
    if "TypeError" in classes and any(word in str(error) for word in ("keyword argument", "positional argument")):
        return False  # a call that this Python or this torch does not know
    return bool(classes & {"NotImplementedError", "RuntimeError", "ValueError", "TypeError"})


def same(torch: Any, result: Any, expected: Any) -> bool:
    """Equal within the card's precision."""
    if result.dtype.is_floating_point:
        return bool(torch.allclose(result.float(), expected.float(), rtol=2e-2, atol=2e-2))
    return bool(torch.equal(result.to(torch.int64), expected.to(torch.int64)))


def warned(run: Callable[[], Any], word: str) -> tuple[bool, list[str]]:
    """(a warning with that word was given, all messages, those with the word first)."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    texts = sorted((f"{w.category.__name__}: {w.message}" for w in seen), key=lambda text: word not in text)
    return any(word in text for text in texts), texts


def values(torch: Any, *shape: int, dtype: Any = None) -> Any:
    """Small numbers that float16 holds exactly."""
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count) % 7).reshape(shape).to(dtype or torch.float16)


@probe
def advanced_indexing(torch: Any) -> tuple[str, str]:
    """x[tensor of indices], eager."""
    x, index = values(torch, 8, 64), torch.tensor([1, 3, 5, 7])
    return refused(torch, lambda: x.to(DEVICE)[index.to(DEVICE)], x[index])


@probe
def boolean_index_put(torch: Any) -> tuple[str, str]:
    """A value put where a mask is set, eager."""
    x = values(torch, 4, 64)
    mask, value = x > 3, torch.tensor(0.0, dtype=torch.float16)
    put = partial(_applied, lambda y, m, v: y.index_put((m,), v), x, mask, value)
    return refused(torch, put, x.index_put((mask,), value))


@probe
def index_add(torch: Any) -> tuple[str, str]:
    """index_add, eager."""
    x, index, more = values(torch, 8, 64), torch.tensor([0, 2]), values(torch, 2, 64)
    return refused(
        torch, lambda: x.to(DEVICE).index_add(0, index.to(DEVICE), more.to(DEVICE)), x.index_add(0, index, more)
    )


@probe
def index_copy_fallback(torch: Any) -> tuple[str, str]:
    """Eager index_copy warns that it runs on the CPU."""
    x, index, rows = values(torch, 8, 64), torch.tensor([0, 2]), values(torch, 2, 64)
    return falls_back(lambda: x.to(DEVICE).index_copy(0, index.to(DEVICE), rows.to(DEVICE)).cpu())


@probe
def embedding_fallback(torch: Any) -> tuple[str, str]:
    """Eager embedding warns that it runs on the CPU."""
    table, index = values(torch, 8, 64), torch.tensor([0, 2])
    return falls_back(lambda: torch.nn.functional.embedding(index.to(DEVICE), table.to(DEVICE)).cpu())


def falls_back(run: Callable[[], Any]) -> tuple[str, str]:
    """Holds if a FallbackWarning is given, whatever comes after it."""
    trouble = ""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            run()
        except Exception as error:  # noqa: BLE001
            trouble = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    texts = [f"{w.category.__name__}: {w.message}" for w in seen]
    found = [text for text in texts if "FallbackWarning" in text]
    if found:
        return HOLDS, found[0][:200]
    return (UNKNOWN, f"it fails instead: {trouble}") if trouble else (LIFTED, "no FallbackWarning")


@probe
def single_index(torch: Any) -> tuple[str, str]:
    """index_select with one index in a graph."""
    x, index = values(torch, 8, 64), torch.tensor([3])

    def run() -> Any:
        return torch.compile(lambda a, i: torch.index_select(a, 0, i))(x.to(DEVICE), index.to(DEVICE))

    return refused(torch, run, x[3:4])


@probe
def row_slices_in_graph(torch: Any) -> tuple[str, str]:
    """A slice of rows of a [n, 1] tensor in a graph."""
    x = values(torch, 64, 1)
    return refused(torch, lambda: torch.compile(lambda a: a[8:24] + 1)(x.to(DEVICE)), x[8:24] + 1)


@probe
def transpose_contiguous(torch: Any) -> tuple[str, str]:
    """A contiguous copy of a transposed tensor."""
    x = values(torch, 64, 128)
    return refused(torch, lambda: x.to(DEVICE).transpose(0, 1).contiguous(), x.T.contiguous())


@probe
def combined_to(torch: Any) -> tuple[str, str]:
    """Device and dtype in one .to()."""
    x = values(torch, 4, 64, dtype=torch.float32)
    return refused(torch, lambda: x.to(device=DEVICE, dtype=torch.float16), x.to(torch.float16))


@probe
def d2d_cast_via_cpu(torch: Any) -> tuple[str, str]:
    """A cast on the device warns that it goes through the CPU."""
    x = values(torch, 4, 64).to(DEVICE)
    ways = (lambda: x.to(torch.float32).cpu(), lambda: x.to(device=DEVICE, dtype=torch.float32).cpu())
    for way in ways:
        try:
            found, texts = warned(way, "intermediate")
        except Exception as error:  # noqa: BLE001
            return UNKNOWN, f"it fails instead: {type(error).__name__}: {error}".splitlines()[0][:200]
        if found:
            return HOLDS, texts[0][:200]
    return LIFTED, "the cast gives no warning, with and without a device"


@probe
def recompile_per_shape(torch: Any) -> tuple[str, str]:
    """Each further shape gives a further graph."""
    from torch._dynamo.utils import counters

    def graphs_after(rows: int) -> int:
        torch.add(values(torch, rows, 64).to(DEVICE), 1).cpu()
        return int(counters["stats"].get("unique_graphs", 0))

    graphs_after(4)
    before = graphs_after(4)
    if not before:
        return UNKNOWN, "eager ops are not compiled here, or dynamo does not count them"
    counted = [graphs_after(rows) - before for rows in (8, 12, 16)]
    said = f"three further shapes gave {counted[-1]} further graphs"
    return (HOLDS, said) if counted[-1] >= 3 else (LIFTED, said)


@probe
def fp16_only(torch: Any) -> tuple[str, str]:
    """A pointwise op on float32."""
    x = values(torch, 4, 64, dtype=torch.float32)
    return refused(torch, lambda: x.to(DEVICE) + x.to(DEVICE), x + x)


@probe
def fp32_matmul(torch: Any) -> tuple[str, str]:
    """A matrix product in float32."""
    a, b = values(torch, 64, 64, dtype=torch.float32), values(torch, 64, 64, dtype=torch.float32)
    return refused(torch, lambda: a.to(DEVICE) @ b.to(DEVICE), a @ b)


@probe
def unaligned_width(torch: Any) -> tuple[str, str]:
    """A matrix product with an inner size of 72."""
    a, b = values(torch, 64, 72) / 8, values(torch, 72, 64) / 8
    return refused(torch, lambda: a.to(DEVICE) @ b.to(DEVICE), a @ b)


@probe
def matmul_out_1(torch: Any) -> tuple[str, str]:
    """A matrix product with one output column."""
    a, b = values(torch, 64, 64) / 8, values(torch, 64, 1) / 8
    return refused(torch, lambda: a.to(DEVICE) @ b.to(DEVICE), a @ b)


@probe
def broadcast_4d_matmul(torch: Any) -> tuple[str, str]:
    """A 4-D product whose second operand has one head for four."""
    a, b = values(torch, 2, 4, 64, 64) / 8, values(torch, 2, 1, 64, 64) / 8
    ways = [torch.compile(torch.matmul)]
    if hasattr(torch.ops.spyre, "batched_matmul"):  # what the backend makes of it, without torch's own expansion
        ways.append(torch.compile(torch.ops.spyre.batched_matmul))
    return first_refusal(refused(torch, partial(_applied, way, a, b), a @ b) for way in ways)


def _applied(way: Callable[..., Any], *tensors: Any) -> Any:
    return way(*(tensor.to(DEVICE) for tensor in tensors))


def first_refusal(answers: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Holds if one way is refused or wrong, else the last answer."""
    last = (UNKNOWN, "nothing was tried")
    for answer, why in answers:
        if answer == HOLDS or "wrong" in why:
            return HOLDS, why
        last = (answer, why)
    return last


@probe
def int64_downcast(torch: Any) -> tuple[str, str]:
    """A number beyond 2**31 goes there and back."""
    x = torch.full((64,), 2**40 + 5, dtype=torch.int64)
    back = x.to(DEVICE).cpu()
    return (
        (LIFTED, "2**40 + 5 comes back") if torch.equal(back, x) else (HOLDS, f"2**40 + 5 comes back as {int(back[0])}")
    )


@probe
def int64_constants(torch: Any) -> tuple[str, str]:
    """An int64 constant made inside a graph."""
    x = torch.ones(64, dtype=torch.int64)

    def inner(a: Any) -> Any:
        return a + torch.full((64,), 3, dtype=torch.int64, device=a.device)

    def run() -> Any:
        found, texts = warned(lambda: results.append(torch.compile(inner)(x.to(DEVICE)).cpu()), "FallbackWarning")
        if found:
            raise RuntimeError(texts[0])
        return results[0]

    results: list[Any] = []
    return refused(torch, run, x + 3)


@probe
def int32_storage_offset(torch: Any) -> tuple[str, str]:
    """The second half of an int32 tensor, in arithmetic or, where the card has none for int32, as an index."""
    x, table = torch.arange(128, dtype=torch.int32), values(torch, 128, 64)
    ways: list[Any] = [
        (lambda y, _t: y[64:] + 1, x[64:] + 1, lambda back: f"element 64 is read as {int(back[0]) - 1}"),
        (lambda y, t: t.index_select(0, y[64:]), table[64:], lambda _back: "other rows than those from 64 on are read"),
    ]
    refusals = []
    for way, expected, wrong in ways:
        try:
            back = _applied(way, x, table).cpu()
        except Exception as error:  # noqa: BLE001  a refusal may have any class
            refusals.append(f"{type(error).__name__}: {error}".splitlines()[0][:140])
            continue
        return (LIFTED, "the slice is read where it is") if same(torch, back, expected) else (HOLDS, wrong(back))
    return UNKNOWN, f"no op takes it: {'; '.join(refusals)}"


@probe
def fp16_storage_offset(torch: Any) -> tuple[str, str]:
    """An op on a float16 slice that begins inside a stick."""
    x = values(torch, 256)
    ways: list[Callable[[Any], Any]] = [lambda y: y[32:96] + 1, torch.compile(lambda y: y[32:96] + 1)]
    return first_refusal(refused(torch, partial(_applied, way, x), x[32:96] + 1) for way in ways)


@probe
def mask_value(torch: Any) -> tuple[str, str]:
    """The lowest float16 goes there and back."""
    x = torch.full((64,), -65504.0, dtype=torch.float16)
    back = x.to(DEVICE).cpu()
    return (LIFTED, "-65504 comes back") if torch.equal(back, x) else (HOLDS, f"-65504 comes back as {float(back[0])}")


@probe
def scalar_index_gather(torch: Any) -> tuple[str, str]:
    """A row chosen by an index without dimensions."""
    x, index = values(torch, 8, 64), torch.tensor(3, dtype=torch.int32)
    return misread(
        torch, lambda: torch.index_select(x.to(DEVICE), 0, index.to(DEVICE)), torch.index_select(x, 0, index)
    )


@probe
def strided_offset_compiled(torch: Any) -> tuple[str, str]:
    """A view with a stride and an offset as an input of a compiled function."""
    x = values(torch, 8, 128)
    double = torch.compile(lambda t: t + t, dynamic=False)
    return misread(torch, lambda: double(x.to(DEVICE)[1::2, 64:]), x[1::2, 64:] * 2)


@probe
def to_dtype_alone(torch: Any) -> tuple[str, str]:
    """A dtype change without a device."""
    x = values(torch, 4, 64)
    return misread(torch, lambda: x.to(DEVICE).to(torch.float32), x.to(torch.float32))


@probe
def unaligned_join(torch: Any) -> tuple[str, str]:
    """Cat of pieces that are no stick wide."""
    a, b = values(torch, 2, 40), values(torch, 2, 88)
    return refused(torch, lambda: torch.cat([a.to(DEVICE), b.to(DEVICE)], dim=1), torch.cat([a, b], dim=1))


def misread(torch: Any, run: Callable[[], Any], expected: Any) -> tuple[str, str]:
    """Holds if the values are wrong or the card refuses, lifted if they are right."""
    answer, why = refused(torch, run, expected)
    return (HOLDS, why) if why == WRONG else (answer, why)


@probe
def alive(torch: Any) -> tuple[str, str]:
    """Not a limitation: the card takes a tensor, adds, and gives it back."""
    x = values(torch, 4, 64)
    answer, why = refused(torch, lambda: x.to(DEVICE) + x.to(DEVICE), x + x)
    return (LIFTED, "a tensor went to the card, was added there and came back") if answer == LIFTED else (UNKNOWN, why)


def load() -> Any:
    """Torch with the backend."""
    import torch

    try:
        torch.device(DEVICE)
    except RuntimeError:
        import torch_spyre

        torch_spyre._autoload()
    return torch


def main() -> None:
    """Run the probes named and print the answer of each as a line; `limits` asks one in a process."""
    try:
        torch = load()
    except Exception as error:  # noqa: BLE001  a backend that does not load is an answer
        for name in sys.argv[1:]:
            say(name, UNKNOWN, error)
        return
    for name in sys.argv[1:]:
        try:
            answer, why = PROBES[name](torch)
        except Exception as error:  # noqa: BLE001  whatever goes wrong is an answer: unknown
            say(name, UNKNOWN, error)
        else:
            say(name, answer, why)


def say(name: str, answer: str, why: str | Exception) -> None:
    """One line of JSON."""
    text = why if isinstance(why, str) else f"{type(why).__name__}: {why}".splitlines()[0]
    print("\n" + json.dumps({"probe": name, "answer": answer, "why": text[:300]}), flush=True)


if __name__ == "__main__":
    main()
