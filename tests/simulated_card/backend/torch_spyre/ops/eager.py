"""Ops that the card carries out, each by a compiled kernel; in-place and out= forms store the functional result."""

import torch

from torch_spyre import _C, limits
from torch_spyre.execution.compile_once import compile_once
from torch_spyre.execution.launch import entered

aten = torch._ops.ops.aten
compiled_names = set()  # overloads with a kernel of their own
graph_names = set()  # what the card carries out inside a graph

COMPILED_OPS = [
    aten.mm,
    aten.bmm,
    aten.addmm,
    aten.silu.out,
    aten.mish.out,
    aten.abs,
    aten.add,
    aten.sub,
    aten.mul,
    aten.div,
    aten.pow,
    aten.neg,
    aten.exp,
    aten.log,
    aten.sqrt,
    aten.rsqrt,
    aten.reciprocal,
    aten.floor,
    aten.sigmoid,
    aten.tanh,
    aten.relu,
    aten.sum,
    aten.mean,
    aten.amax,
    aten._softmax,
    aten.linalg_vector_norm,
    aten.cat,
    aten.stack,
    aten.constant_pad_nd,
    aten.index_select,
    aten.eq,
    aten.ne.Tensor,
    aten.ne.Tensor_out,
    aten.ne.Scalar,
    aten.ge,
    aten.gt,
    aten.le,
    aten.lt,
    aten.maximum,
    aten.minimum,
    aten.clamp,
    aten.where.self,
    aten.where.self_out,
    aten.logical_not,
    aten.bitwise_not,
    aten.embedding.default,
]


def overloads_of(op):
    """The overloads that get a kernel: those with a tensor, and not the ones that only exist to name a dtype."""
    found = [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, name) for name in op.overloads()]
    return [
        o for o in found if "Tensor" in str(o._schema) and "dtype" not in o.name() and "Dimname" not in str(o._schema)
    ]


def _store(target, result):
    if not torch.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    if target.shape != result.shape:
        target.resize_(result.shape)
    _C.to_host(target).copy_(_C.to_host(result))
    return target


def _functional(op):
    """The overload whose result an out= or in-place overload stores."""
    packet = op.overloadpacket
    name = packet.__name__
    if op._schema.is_mutable and name.endswith("_"):
        packet = getattr(aten, name[:-1])
    names = [a.type for a in op._schema.arguments if not a.is_out]
    for other in packet.overloads():
        found = getattr(packet, other)
        if not found._schema.is_mutable and [str(a.type) for a in found._schema.arguments] == [str(t) for t in names]:
            return found
    return None


def _kernel(op, source, stores):
    run = compile_once(source, dynamic=False)

    def kernel(*args, **kwargs):
        target = kwargs.pop("out", None) if stores == "out" else args[0] if stores == "self" else None
        with entered(op.name()):
            result = run(*args, **kwargs)
        return result if target is None else _store(target, result)

    return kernel


def register_torch_compile_kernel(ops):
    """A compiled kernel for each overload of each op."""
    for op in ops:
        for overload in overloads_of(op):
            if overload is aten.embedding.default and limits.has("embedding_fallback"):
                continue
            stores = "out" if any(a.is_out for a in overload._schema.arguments) else None
            source = _functional(overload) if stores else overload
            if source is None or overload._schema.is_mutable and not stores:
                continue
            graph_names.add(source.name())
            compiled_names.add(overload.name())
            torch.library.register_kernel(overload.name(), ["spyre"], _kernel(overload, source, stores))


def register_inplace_kernels(ops):
    """`foo_` for each `foo` that has such a sibling with the same arguments; pow has none on the card."""
    for op in ops:
        packet = op.overloadpacket if isinstance(op, torch._ops.OpOverload) else op
        name = packet.__name__ + "_"
        if packet is aten.pow or name not in dir(aten) and not hasattr(aten, name):
            continue
        for overload in overloads_of(getattr(aten, name)):
            source = _functional(overload)
            if source is not None and source.name() in graph_names:
                torch.library.register_kernel(overload.name(), ["spyre"], _kernel(overload, source, "self"))


register_torch_compile_kernel(COMPILED_OPS)
register_inplace_kernels(COMPILED_OPS)


@torch.library.register_kernel("aten::fill_.Scalar", ["spyre"])
def fill_scalar(self, value):
    _C.to_host(self).fill_(value)
    return self


@torch.library.register_kernel("aten::fill_.Tensor", ["spyre"])
def fill_tensor(self, value):
    _C.to_host(self).fill_(_C.to_host(value) if _C.is_spyre(value) else value)
    return self


@torch.library.register_kernel("aten::zero_", ["spyre"])
def zero_(self):
    _C.to_host(self).zero_()
    return self


@torch.library.register_kernel("aten::normal_", ["spyre"])
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    _C.to_host(self).normal_(mean, std)
    return self


@torch.library.register_kernel("aten::uniform_", ["spyre"])
def uniform_(self, low=0.0, high=1.0, *, generator=None):
    _C.to_host(self).uniform_(low, high)
    return self


@torch.library.register_kernel("aten::random_.from", ["spyre"])
def random_from(self, low, high, *, generator=None):
    _C.to_host(self).random_(low, high)
    return self


@torch.library.register_kernel("aten::_local_scalar_dense", ["spyre"])
def _local_scalar_dense(self):
    return _C.to_host(self).item()
