"""Ops that become other ops: in a graph when it is compiled, and in eager code by a kernel of the same function."""

import functools

import torch

from torch_spyre.constants import DEVICE_NAME

aten = torch.ops.aten
spyre_decompositions = {}
spyre_decompositions_to_exclude = [torch.ops.aten.triu, torch.ops.aten.tril]


def register_spyre_decompositions(ops):
    """Register the function below for each op; a packet stands for its overloads in graphs, and has no eager kernel."""

    def register(fn):
        for op in ops:
            spyre_decompositions[op] = fn
        return fn

    return register


@register_spyre_decompositions([torch.ops.aten.silu.default])
def spyre_silu(x):
    return torch.ops.spyre.silu(x)


@register_spyre_decompositions([torch.ops.aten.gelu.default])
def spyre_gelu(x, *, approximate="none"):
    return torch.ops.spyre.gelu(x, approximate)


@register_spyre_decompositions([torch.ops.aten.softplus.default])
def spyre_softplus(x, beta=1, threshold=20):
    return torch.ops.spyre.softplus(x, float(beta), float(threshold))


@register_spyre_decompositions([torch.ops.aten.sign.default])
def spyre_sign(x):
    return torch.where(x > 0, torch.ones_like(x), torch.where(x < 0, -torch.ones_like(x), torch.zeros_like(x)))


@register_spyre_decompositions([torch.ops.aten.ceil.default])
def spyre_ceil(x):
    return -torch.floor(-x)


@register_spyre_decompositions([torch.ops.aten.amin.default])
def spyre_amin(x, dim=(), keepdim=False):
    return -torch.amax(-x, dim, keepdim)


@register_spyre_decompositions([torch.ops.aten.bitwise_and])
def spyre_bitwise_and(a, b):
    return a * b


@register_spyre_decompositions([torch.ops.aten.linear.default])
def spyre_linear(x, weight, bias=None):
    flat = x.reshape(-1, x.shape[-1])
    out = torch.mm(flat, weight.t()) if bias is None else torch.addmm(bias, flat, weight.t())
    return out.reshape(*x.shape[:-1], weight.shape[0])


@register_spyre_decompositions([torch.ops.aten.rms_norm.default])
def spyre_rms_norm(x, normalized_shape, weight=None, eps=None):
    return torch.ops.spyre.rms_norm(x, weight, torch.finfo(x.dtype).eps if eps is None else eps)


@register_spyre_decompositions([torch.ops.aten.layer_norm.default])
def spyre_layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return torch.ops.spyre.layer_norm(x, normalized_shape, weight, bias, eps)


@register_spyre_decompositions([torch.ops.aten.max.dim])
def spyre_max_dim(x, dim, keepdim=False):
    return torch.ops.spyre.max_dim_int64_fallback(x, dim, keepdim)


@register_spyre_decompositions([torch.ops.aten.min.dim])
def spyre_min_dim(x, dim, keepdim=False):
    return torch.ops.spyre.min_dim_int64_fallback(x, dim, keepdim)


@register_spyre_decompositions([torch.ops.aten.flip.default])
def spyre_flip(x, dims):
    for dim in dims:
        order = torch.arange(x.shape[dim] - 1, -1, -1, device="cpu").to(x.device)
        x = torch.index_select(x, dim, order)
    return x


@register_spyre_decompositions(
    [
        torch.ops.aten.where.ScalarOther,
        torch.ops.aten.where.ScalarSelf,
        torch.ops.aten.where.Scalar,
    ]
)
def spyre_where_scalar(condition, a, b):
    like = a if isinstance(a, torch.Tensor) else b if isinstance(b, torch.Tensor) else None
    dtype, device = (like.dtype, like.device) if like is not None else (torch.get_default_dtype(), condition.device)
    a = a if isinstance(a, torch.Tensor) else torch.full((), a, dtype=dtype, device=device)
    b = b if isinstance(b, torch.Tensor) else torch.full((), b, dtype=dtype, device=device)
    return torch.where(condition, a, b)


@functools.cache
def _table():
    table = {}
    for op, fn in spyre_decompositions.items():
        for overload in [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, o) for o in op.overloads()]:
            if "Tensor" in str(overload._schema) and not overload.name().endswith("out"):
                table[overload] = fn
    return table


def compile_time_table():
    """What aot_autograd decomposes: ours, less the excluded ones and less every op that falls back."""
    from torch_spyre.ops import fallbacks

    excluded = {getattr(p, o) for p in spyre_decompositions_to_exclude for o in p.overloads()}
    return {op: fn for op, fn in _table().items() if op not in excluded and not fallbacks.is_fallback(op)}


_spyre_lib = torch.library.Library("aten", "IMPL")


def register_spyre_decompositions_via_dispatchkey():
    """Install the functions as eager kernels where the slot is empty; only overloads of aten have one."""
    for op, fn in spyre_decompositions.items():
        if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
            continue
        if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "PrivateUse1"):
            continue
        _spyre_lib.impl(op._name, _eager(fn), "PrivateUse1")
        if op._can_decompose():
            _spyre_lib.impl(op._name, torch.library.fallthrough_kernel, "AutogradPrivateUse1")


def _eager(fn):
    @functools.wraps(fn)
    def kernel(*args, **kwargs):
        for value in args:
            if isinstance(value, torch.Tensor) and value.dim() and value.device.type != DEVICE_NAME:
                raise RuntimeError("Spyre decomposition function called with inputs on a different device!")
        return fn(*args, **kwargs)

    return kernel
