"""Faults of the closed parts, in the words of the simulated card: SPYRE_STANDIN_FAULTS=name:parameter=value:...,name...

`op` is an op of the card (mul, exp, sum, batchmatmul ...), one of WORDS, or * for every op; a+b means several. Dimensions are those
of the op's iteration space. Off, a fault changes nothing.
"""

import os
import signal
import sys
import time
from dataclasses import dataclass

import numpy as np

from spyre_standin.formats import CardError

VARIABLE = "SPYRE_STANDIN_FAULTS"
WORDS = {name: "batchmatmul" for name in ("bmm", "mm", "matmul", "batched_matmul", "addmm")} | {
    "div": "realdiv",
    "relu": "relufwd",
}


@dataclass(frozen=True)
class Call:
    """An op about to run: its name, its iteration space, and whether it reads or writes at indices."""

    op: str
    sizes: tuple
    is_gather: bool


class Fault:
    """One fault with its parameters; text values become numbers by the type of their default."""

    def __init__(self, name, defaults, words):
        self.name, self.calls, self.others = name, 0, 0
        self.values = dict(defaults)
        for key, text in words.items():
            if key not in defaults:
                raise ValueError(f"{VARIABLE}: {name} has no parameter {key!r}; it has {', '.join(defaults)}")
            self.values[key] = type(defaults[key])(text)

    def __getitem__(self, key):
        return self.values[key]

    def touches(self, call, key="op"):
        """Whether the fault is about this op."""
        names = {WORDS.get(word, word) for word in self[key].split("+")}
        return (
            "*" in names
            or call.op in names
            or any(call.op.startswith(n) for n in names if n == "batchmatmul")
            or (call.is_gather and "gather" in names)
        )


def _set(array, dim, index, value):
    where = [slice(None)] * array.ndim
    where[dim] = index
    array[tuple(where)] = value
    return array


def _get(array, dim, index):
    where = [slice(None)] * array.ndim
    where[dim] = index
    return array[tuple(where)]


def _after_first_stick(f, x):
    stick, width = f["stick"], x.shape[-1]
    if width <= stick:
        return x
    rest = x[..., np.arange(width) % stick] if f["how"] == "repeat" else x * (0.0 if f["how"] == "zero" else 0.5)
    x[..., stick:] = rest[..., stick:]
    return x


def _swapped(f, x):
    dim, block = f["dim"] % x.ndim, f["block"]
    places = np.arange(x.shape[dim])
    pairs = len(places) // (2 * block) * 2 * block
    places[:pairs] = places[:pairs].reshape(-1, 2, block)[:, ::-1].reshape(-1)
    return np.take(x, places, axis=dim)


def _copied(f, x):
    dim = f["dim"]
    if x.shape[dim] > max(f["source"], f["target"]):
        _set(x, dim, f["target"], _get(x, dim, f["source"]))
    return x


def _overflow(f, x):
    dim = max((d for d in range(x.ndim - 1) if x.shape[d] > 1), default=0)
    return _set(x, dim, slice(f["phase"], None, f["every"]), f["value"])


def _shifted(f, x):
    x[..., f["start"] :] += 1
    return x


RESULTS = {
    "scaled": ({"op": "exp", "factor": 0.5, "over": 0}, lambda f, x: x * f["factor"] if x.shape[-1] > f["over"] else x),
    "after_first_stick": ({"op": "mul", "stick": 64, "how": "repeat"}, _after_first_stick),
    "broadcast_overflow": ({"op": "bmm", "every": 2, "phase": 1, "value": 65504.0}, _overflow),
    "copied_row": ({"op": "add", "dim": -1, "source": 0, "target": 3}, _copied),
    "flaky": ({"op": "mul", "one_in": 3}, lambda f, x: x + 1 if f.calls % f["one_in"] == 0 else x),
    "history": ({"op": "mul", "trigger": "exp", "times": 1, "factor": 1.5}, lambda f, x: x * f["factor"] if f.others >= f["times"] else x),
    "nan_to_finite": ({"op": "*", "value": 65504.0}, lambda f, x: np.where(np.isnan(x), np.float32(f["value"]), x)),
    "rolled": ({"op": "add", "dim": -1, "shift": 1}, lambda f, x: np.roll(x, f["shift"], axis=f["dim"])),
    "shifted_index": ({"op": "add", "start": 1}, _shifted),
    "swapped_blocks": ({"op": "mul", "dim": -1, "block": 64}, _swapped),
}  # fmt: skip
LAUNCHES = {
    "abort": {"op": "exp", "signal": "ABRT", "skip": 0},
    "hang": {"op": "exp", "seconds": 3600.0, "skip": 0},
    "ras_error": {"op": "exp", "kind": "timeout", "skip": 0},
    "slow": {"op": "*", "seconds": 0.05, "skip": 0},
}
INPUTS = {"partial_reduction": {"op": "mean", "width": 128, "keep": "half"}}
RAS = {
    "timeout": "RAS::CB::Timeout: control block did not complete",
    "busfence": "RAS::PCI::BusFence: bus fence, the card is gone",
    "mapdma": "RAS::VFIO::MapDmaFail: VFIO_IOMMU_MAP_DMA: Cannot allocate memory",
}
CATALOGUE = (
    {name: defaults for name, (defaults, _) in RESULTS.items()} | LAUNCHES | INPUTS | {"dxp_error": {"op": "exp"}}
)


def parse(text):
    """The faults of a specification."""
    found = []
    for part in filter(None, (word.strip() for word in (text or "").split(","))):
        name, *words = part.split(":")
        if name not in CATALOGUE:
            raise ValueError(f"{VARIABLE}: no fault {name!r}; there are {', '.join(sorted(CATALOGUE))}")
        found.append(Fault(name, CATALOGUE[name], dict(word.split("=", 1) for word in words)))
    return found


ACTIVE = parse(os.environ.get(VARIABLE))


def before(call):
    """A launch begins: it may fail, hang or take longer."""
    for fault in ACTIVE:
        if fault.name == "history" and fault.touches(call, "trigger"):
            fault.others += 1
        if fault.name not in LAUNCHES or not fault.touches(call):
            continue
        fault.calls += 1
        if fault.calls <= fault["skip"]:
            continue
        if fault.name in {"hang", "slow"}:
            time.sleep(fault["seconds"])
        elif fault.name == "ras_error":
            raise CardError(RAS[fault["kind"]])
        else:
            print("terminate called after throwing an instance of 'DtException'", file=sys.stderr, flush=True)
            os.kill(os.getpid(), getattr(signal, f"SIG{fault['signal']}"))


def shortened(call, values, axes):
    """What a reduction takes in: a partial one leaves out the end of a long dimension."""
    for fault in ACTIVE:
        if fault.name not in INPUTS or not fault.touches(call) or not axes:
            continue
        axis, length = axes[-1], call.sizes[axes[-1]]
        if length > fault["width"]:
            keep = length // 2 if fault["keep"] == "half" else fault["width"]
            kept = (np.arange(length) < keep).reshape([length if d == axis else 1 for d in range(len(call.sizes))])
            values = [np.where(kept, values[0], 0), *values[1:]]
    return values


def after(call, result):
    """The result as it comes out."""
    for fault in ACTIVE:
        if fault.name in RESULTS and fault.touches(call) and isinstance(result, np.ndarray) and result.ndim:
            fault.calls += 1
            result = RESULTS[fault.name][1](fault, np.array(result))
    return result
