"""Faults that the card can be told to have, for a whole run or for a block of a test.

    SPYRE_SIM_FAULTS=partial_reduction:op=mean:width=128,hang:op=exp pytest ...
    with faults.inject("partial_reduction:op=mean:width=128"): ...

Off, they change nothing. `draw(name, rng)` gives a fault with parameters drawn at random.
"""

import contextlib
import os

from torch_spyre.constants import FAULTS_VARIABLE

from . import copies, processes, refusals, results
from .kind import Fault, Parameter, draw

__all__ = ["CATALOGUE", "Fault", "Parameter", "active", "draw", "inject", "parse"]

CATALOGUE = {f.name: f for module in (results, copies, refusals, processes) for f in module.FAULTS}
_active = []


def parse(text):
    """The faults that a specification means: `name[:parameter=value]...`, separated by commas."""
    return [_one(part.strip()) for part in (text or "").split(",") if part.strip()]


def _one(spec):
    name, *words = spec.split(":")
    if name not in CATALOGUE:
        raise ValueError(f"{FAULTS_VARIABLE}: no fault {name!r}; there are {', '.join(sorted(CATALOGUE))}")
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{FAULTS_VARIABLE}: {word!r} in {spec!r} is not parameter=value")
        values[key] = value
    return CATALOGUE[name](**values)


def active():
    """The faults that are switched on, in order."""
    return tuple(_active)


@contextlib.contextmanager
def inject(*specs):
    """Switch faults on for a block; kernels compiled before are forgotten where a fault acts when compiling."""
    from torch_spyre import forget_compiled

    new = [fault for spec in specs for fault in ([spec] if isinstance(spec, Fault) else parse(spec))]
    compiling = any(fault.when_compiling for fault in new)
    _active.extend(new)
    if compiling:
        forget_compiled()
    try:
        yield new
    finally:
        for fault in new:
            _active.remove(fault)
        if compiling:
            forget_compiled()


def for_call(call):
    """The active faults that touch this launch."""
    return [fault for fault in _active if fault.applies(call)] if _active else ()


def ran(call, result):
    """Tell the faults that depend on history what ran."""
    for fault in _active:
        fault.ran(call, result)


def refuses(stage, name, output, inputs):
    """Whether a fault makes the compiler refuse this op at this stage."""
    return any(fault.refuses(stage, name, output, inputs) for fault in _active)


def fallback_arguments(op, args):
    """The arguments as a faulty fallback reads them."""
    name = op if isinstance(op, str) else op.name()
    for fault in _active:
        args = fault.fallback_arguments(name, args)
    return args


def runtime_started():
    """Called once, when the process has got the card."""
    for fault in _active:
        fault.started()


_active.extend(parse(os.environ.get(FAULTS_VARIABLE)))
