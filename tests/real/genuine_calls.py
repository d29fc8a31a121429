"""Calls of the package's own op list, found and judged without debug-spyre. Runs in the environment of the real package.

genuine_calls.py find FOLDER < NAMES     torch's own samples of every op are made on the CPU; each aten call below them whose overload is
                                         in NAMES (one a line, as aten::add.Tensor) becomes FOLDER/N.pt
genuine_calls.py judge FOLDER FIRST END  makes these again on the card, a line of FOLDER/calls.jsonl each:
                                         {"call", "op", "what": healthy | raises | differs, "error"}
Nothing is planted. A process judges at most 100 calls: eager kernels share one code object, and dynamo gives up at 256 forms of it.
"""

import itertools
import json
import os
import sys
import warnings
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

TYPES = (torch.float16, torch.int64, torch.float32, torch.bool)
LARGEST, SAMPLES, EACH = 1 << 14, 12, 4
FAR = 0.05  # of the largest value: what differs by less is rounding
UNKNOWN_VALUES = {
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.new_empty.default,
}
STANDIN = ("stand-in card", "no pointwise op", "no reduction", "no arithmetic for the format", "CardError")


class Calls(TorchDispatchMode):
    """Writes down each call below it, with its arguments as they were."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.seen.append((func, tree_map_only(torch.Tensor, copied, (args, kwargs))))
        return func(*args, **kwargs)


def copied(tensor):
    """The tensor by itself; its strides and offset are kept."""
    if tensor.numel() > LARGEST or tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise OverflowError
    whole = tensor.untyped_storage().nbytes() // tensor.element_size()
    base = torch.as_strided(tensor.detach(), (whole,), (1,), 0).clone()
    return torch.as_strided(base, tensor.shape, tensor.stride(), tensor.storage_offset())


def name_of(func):
    namespace, _, rest = str(func).partition(".")
    base, _, overload = rest.rpartition(".")
    return f"{namespace}::{base}" + ("" if overload == "default" else f".{overload}")


def found(names):
    """Each call once a form; at most EACH a name and type."""
    from torch.testing._internal.common_methods_invocations import op_db

    counts = {}
    for info, dtype in itertools.product(op_db, TYPES):
        if dtype not in info.dtypes:
            continue
        for func, arguments in _of(info, dtype):
            name = name_of(func)
            known = counts.setdefault((name, dtype), set())
            form = str(tree_map_only(torch.Tensor, lambda t: (t.dtype, t.shape, t.stride()), arguments))
            if name in names and form not in known and len(known) < EACH:
                known.add(form)
                yield func, arguments


def _of(info, dtype):
    try:
        samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES))
    except Exception:  # noqa: BLE001  an op without samples of this type
        return
    for sample in samples:
        mode = Calls()
        try:
            with mode:
                info.op(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # noqa: BLE001  too large, or the CPU refuses it
            continue
        yield from mode.seen


def on_card(tensor):
    """On the card with the same strides, where it can be had."""
    whole = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.is_contiguous() and tensor.numel() == whole:
        return tensor.to("spyre")
    base = torch.as_strided(tensor, (whole,), (1,), 0).to("spyre")
    return torch.as_strided(base, tensor.shape, tensor.stride(), tensor.storage_offset())


def flat(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def make(func, arguments, place=on_card):
    """The call's tensors, on the host."""
    args, kwargs = tree_map_only(torch.Tensor, place, arguments)
    return [t.cpu() for t in flat(func(*args, **kwargs))]


def far(got, want):
    """How they differ, or None: only what no rounding explains counts."""
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)} for {tuple(want.shape)}"
    a, b = got.double(), want.double()
    if not torch.isfinite(b).all() or not b.numel():
        return None  # infinities and NaN are no evidence on the stand-in
    off = float((a - b).abs().max())
    limit = FAR * max(float(b.abs().max()), 1e-2)
    return None if off <= limit else f"off by {off:.3g} where values reach {float(b.abs().max()):.3g}"


def compared(got, want):
    if len(got) != len(want):
        return f"{len(got)} tensors for {len(want)}"
    return next((text for a, b in zip(got, want, strict=True) if (text := far(a, b))), None)


def again(folder, number):
    """The call as a test: raises what it raises, fails where it differs."""
    func, arguments = read(folder, number)
    want = make(func, tree_map_only(torch.Tensor, torch.clone, arguments), place=lambda t: t)
    assert compared(make(func, arguments), want) is None


def judged(func, arguments):
    """(what, error) of one call; None where it says nothing."""
    try:
        want = make(func, tree_map_only(torch.Tensor, torch.clone, arguments), place=lambda t: t)
    except Exception:  # noqa: BLE001  the CPU refuses it
        return None
    try:
        arguments_there = tree_map_only(torch.Tensor, on_card, arguments)
    except Exception:  # noqa: BLE001  the arguments can't be had: another fault than this op's
        return None
    try:
        got = make(func, arguments_there, place=lambda t: t)
    except Exception as error:  # noqa: BLE001
        said = f"{type(error).__name__}: {error}"
        return None if any(word in said for word in STANDIN) else ("raises", said[:4000])
    said = compared(got, want)
    return ("differs", said) if said else ("healthy", None)


def find(folder):
    """Write the calls; prints how many."""
    names, number = set(sys.stdin.read().split()), 0
    for func, arguments in found(names):
        if func in UNKNOWN_VALUES or torch.Tag.nondeterministic_seeded in func.tags:
            continue
        torch.save((name_of(func), arguments), Path(folder) / f"{number}.pt")
        number += 1
    print(number)


def read(folder, number):
    """(op, arguments) of a call that was found."""
    name, arguments = torch.load(Path(folder) / f"{number}.pt", weights_only=False)
    base, _, overload = name.partition("::")[2].partition(".")
    return getattr(getattr(getattr(torch.ops, name.partition("::")[0]), base), overload or "default"), arguments


def judge(folder, first, end):
    with open(Path(folder) / "calls.jsonl", "a", encoding="utf-8", buffering=1) as out:
        for number in range(first, end):
            func, arguments = read(folder, number)
            what, error = judged(func, arguments) or (None, None)
            if what:
                out.write(json.dumps({"call": number, "op": str(func), "what": what, "error": error}) + "\n")


def main(what, folder, *numbers):
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    find(folder) if what == "find" else judge(folder, *map(int, numbers))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
