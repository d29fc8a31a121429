"""The one place where an op of the card is carried out: on host memory, with the faults that are switched on.

Eager kernels, compiled graphs and copies all come through here, so a fault is seen alike by all of them.
"""

import threading
from dataclasses import dataclass, field

import torch

from torch_spyre import _C, faults, limits, vendor_log
from torch_spyre.execution import host_ops

_entry = threading.local()


@dataclass
class Call:
    """One launch: `name` is `aten::mean.dim` or a copy such as `spyre::copy_h2d`, `entry` the overload that eager code called."""

    name: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    entry: str | None = None
    compiled: bool = False  # inside a graph of more than one op
    op: object = None

    @property
    def tensors(self):
        flat = []
        for value in (*self.args, *self.kwargs.values()):
            flat += [value] if isinstance(value, torch.Tensor) else _tensors_in(value)
        return flat


def _tensors_in(value):
    return [v for v in value if isinstance(v, torch.Tensor)] if isinstance(value, (list, tuple)) else []


class entered:
    """Says which eager overload is being carried out, for faults that concern one overload only."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before = getattr(_entry, "name", None)
        _entry.name = self.name

    def __exit__(self, *_):
        _entry.name = self.before


def entry():
    return getattr(_entry, "name", None)


def run_on_host(op, args, kwargs, *, compiled=False):
    """Carry out one op on host tensors."""
    call = Call(op.name(), tuple(args), dict(kwargs), entry(), compiled, op)
    _C.stats["launch"] += 1
    vendor_log.say("deeprt", f"launch {call.name} {[tuple(t.shape) for t in call.tensors]}")
    if limits.has("int32_storage_offset"):
        call.args = tuple(_without_offset(a) for a in call.args)
    hits = faults.for_call(call)
    for fault in hits:
        fault.before(call)
    if call.kwargs.get("device") is not None:
        call.kwargs["device"] = torch.device("cpu")
    result = host_ops.implementation(op)(*call.args, **call.kwargs)
    for fault in hits:
        result = fault.after(call, result)
    faults.ran(call, result)
    return result


def _without_offset(value):
    if (
        isinstance(value, torch.Tensor)
        and value.dtype in (torch.int32, torch.int64)
        and value.dim()
        and value.storage_offset()
    ):
        return value.as_strided(value.shape, value.stride(), 0)
    return value


def run_copy(kind, source, target):
    """Copy between or within devices: `h2d`, `d2h` or `d2d`, on host tensors."""
    _C.stats[kind] += 1
    call = Call(f"spyre::copy_{kind}", (source, target), entry=entry())
    hits = faults.for_call(call)
    for fault in hits:
        fault.before(call)
    target.copy_(call.args[0])
    for fault in hits:
        changed = fault.after(call, target)
        if changed is not target:
            target.copy_(changed)
    faults.ran(call, target)
