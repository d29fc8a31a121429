"""Eager kernels are compiled functions: one torch.compile per op, made at its first call, compiled anew for each shape."""

import functools
import os
import threading
import types

import torch

from torch_spyre import limits
from torch_spyre.constants import COMPILE_VARIABLE

CACHE_LIMIT = 1024


def compiling():
    """False where SPYRE_SIM_COMPILE=0 asks for the short way, which no real card has."""
    return os.environ.get(COMPILE_VARIABLE, "1") != "0"


def _named(name):
    op = torch.ops
    for part in name.split("."):
        op = getattr(op, part)
    return op


def _own_code(op):
    """A function with a code object of its own: dynamo keeps compiled entries by code object and searches them in line."""

    def call(*args, **kwargs):
        return op(*args, **kwargs)

    name = str(op).replace(".", "_")
    code = call.__code__.replace(co_name=name, co_qualname=name)
    return types.FunctionType(code, call.__globals__, name, call.__defaults__, call.__closure__)


_limits = threading.local()


def raise_limit():
    """Past dynamo's limit a kernel would call itself; a value set in one thread is not seen in another."""
    if getattr(_limits, "raised", False):
        return
    _limits.raised = True
    import torch._dynamo

    config = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, CACHE_LIMIT)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, CACHE_LIMIT)


def compile_once(target, *, dynamic=False):
    """A function that calls the op compiled; as a decorator it replaces the body below."""
    made = {}

    def call(*args, **kwargs):
        op = _named(target) if isinstance(target, str) else target
        if not compiling():
            from torch_spyre._inductor import direct

            return direct.call(op, args, kwargs)
        raise_limit()
        any_shape = dynamic or not limits.has("recompile_per_shape")
        if any_shape not in made:
            made[any_shape] = torch.compile(_own_code(op), dynamic=any_shape)
        with torch.no_grad():
            return made[any_shape](*args, **kwargs)

    def replace(fn):
        return functools.wraps(fn)(call)

    return replace if isinstance(target, str) else call
