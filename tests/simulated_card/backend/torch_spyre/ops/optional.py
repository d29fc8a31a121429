"""Kernels that the card has or lacks by the limitations it was given; their names are not constants for that reason."""

import torch

from torch_spyre import limits
from torch_spyre.execution.compile_once import compile_once
from torch_spyre.ops import eager, fallbacks

aten = torch._ops.ops.aten


def _kernel(name, op):
    eager.graph_names.add(name)
    torch.library.register_kernel(name, ["spyre"])(compile_once(op))


def _stored(op):
    run = compile_once(op)
    return lambda target, *args: target.copy_(run(target, *args))


def _put(target, indices, values, accumulate=False, unsafe=False):
    return target.copy_(aten.index_put.default(target, indices, values, accumulate))


def register():
    """Called at import; what is not registered gives torch's own error."""
    if not limits.has("advanced_indexing"):
        _kernel(aten.index.Tensor.name(), aten.index.Tensor)
    if not limits.has("boolean_index_put"):
        _kernel(aten.index_put.default.name(), aten.index_put.default)
        torch.library.register_kernel(aten._index_put_impl_.default.name(), ["spyre"])(_put)
    if not limits.has("index_add"):
        _kernel(aten.index_add.default.name(), aten.index_add.default)
    if limits.has("embedding_fallback"):
        fallbacks.register_fallback_default([aten.embedding.default])
    if not limits.has("index_copy_fallback"):
        _kernel(aten.index_copy.default.name(), aten.index_copy.default)
        torch.library.register_kernel(aten.index_copy_.default.name(), ["spyre"])(_stored(aten.index_copy.default))


register()
