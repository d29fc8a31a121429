"""Ops that leave the card: copied to the CPU with a warning, run there, copied back.

To move an op here: name it in one of the two forms below, and take it out of eager.py.
"""

import os
import sys
import warnings

import torch

from torch_spyre import _C, faults, limits

aten = torch._ops.ops.aten
fallback_ops = []


class FallbackWarning(UserWarning):
    """An op ran on the CPU instead of on the card."""


warnings.simplefilter("once", FallbackWarning)

_OWN = tuple(os.path.dirname(os.path.abspath(f)) + os.sep for f in (os.path.dirname(__file__), torch.__file__))


def _outside_frame():
    """The first frame that is not this package's, torch's or inductor's; warnings.warn can skip files from 3.12 on only."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OWN) or frame.f_code.co_filename.startswith("<eval_with_key>")
    ):
        frame = frame.f_back
    return frame


def warn_fallback(op, device="cpu"):
    """Warn at the caller's line that an op runs elsewhere."""
    _C.stats["fallback"] += 1
    warn_at_caller(f"{op} is falling back to {device}", FallbackWarning)


def warn_at_caller(text, category):
    """A warning whose place is the program's line, not one of this package."""
    frame = _outside_frame()
    warnings.warn_explicit(
        text,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def is_fallback(op):
    """Whether an overload goes to the CPU, in eager code and in graphs."""
    return op in fallback_ops


def _moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device) if value.device.type != device else value
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(v, device) for v in value)
    return value


def _runs_elsewhere(fn, op, device):
    def wrapper(*args, **kwargs):
        warn_fallback(op, device)
        out = kwargs.pop("out", None)
        if out is not None and not isinstance(out, torch.Tensor):
            raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
        if kwargs.get("device") is not None:
            kwargs["device"] = device
        args = faults.fallback_arguments(op, args)
        moved = {k: _moved(v, device) for k, v in kwargs.items()}
        result = fn(*_moved(tuple(args), device), **moved)
        if out is None:
            return _moved(result, "spyre")
        if out.shape != result.shape:
            out.resize_(result.shape)
        return out.copy_(result)

    return wrapper


def register_fallback(ops, device="cpu"):
    """The function below runs on the CPU in place of each op."""

    def register(fn):
        for op in ops:
            name = op if isinstance(op, str) else op.name()
            fallback_ops.append(_overload(name))
            torch.library.register_kernel(name, ["spyre"])(_runs_elsewhere(fn, op, device))
        return fn

    return register


def _overload(name):
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")


def register_fallback_default(ops):
    """Each overload of each op runs its own CPU kernel."""
    for op in ops:
        overloads = [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, name) for name in op.overloads()]
        for overload in overloads:
            if overload is aten.index_copy.out and not limits.has("index_copy_fallback"):
                continue
            schema = str(overload._schema)
            functional = any(a.is_out for a in overload._schema.arguments) or not overload._schema.is_mutable
            if functional and "Dimname" not in schema and "str_name" not in schema:
                fallback_ops.append(overload)
                torch.library.register_kernel(overload.name(), ["spyre"])(
                    _runs_elsewhere(_cpu(overload), overload, "cpu")
                )


def _cpu(overload):
    def run(*args, **kwargs):
        return overload(*args, **kwargs)

    if not any(a.is_out for a in overload._schema.arguments):
        return run
    return getattr(torch.ops.aten, overload._schema.name.partition("::")[2])  # the wrapper stores the result in out


register_fallback_default(
    [
        aten.cumsum,
        aten.repeat,
        aten.arange,
        aten.sin,
        aten.cos,
        aten.ne.Scalar_out,
        aten.isin,
        aten.tril,
        aten.triu,
        aten.bitwise_xor.Tensor,
        aten.bitwise_xor.Tensor_out,
        aten.bitwise_or.Tensor,
        aten.bitwise_or.Tensor_out,
        aten.argmax.default,
        aten.argmin.default,
        aten.any.all_out,
        aten.any.dim,
        aten.all.default,
        aten.all.dim,
        aten.where.default,
        aten.index_copy.out,
    ]
)

fallback_ops.append(aten.normal_.default)
fallback_ops.append(getattr(aten.random_, "from"))


@register_fallback(["spyre::max_dim_int64_fallback"])
def max_dim_on_cpu(x, dim, keepdim=False):
    return tuple(torch.max(x, dim, keepdim))


@register_fallback(["spyre::min_dim_int64_fallback"])
def min_dim_on_cpu(x, dim, keepdim=False):
    return tuple(torch.min(x, dim, keepdim))
