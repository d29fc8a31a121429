"""Kernels that the card has or lacks by the limitations it was given at import; what it lacks gives torch's own error.

The ops are named by strings in a table: which of them are registered is not to be read from the source.
"""

import torch

from torch_spyre import limits
from torch_spyre.execution.compile_once import compile_once
from torch_spyre.ops import eager, fallbacks

WITHOUT = {  # limitation -> overloads with a kernel on a card without it
    "advanced_indexing": ("index.Tensor",),
    "boolean_index_put": ("index_put.default", "_index_put_impl_.default"),
    "index_add": ("index_add.default",),
    "index_copy_fallback": ("index_copy.default", "index_copy_.default"),
}
WITH = {"embedding_fallback": ("embedding.default",)}  # limitation -> overloads that fall back on a card with it


def _overload(dotted):
    packet, _, name = dotted.partition(".")
    return getattr(getattr(torch.ops.aten, packet), name)


def _functional(dotted):
    return {"_index_put_impl_.default": "index_put.default"}.get(dotted, dotted.replace("_.", "."))


def _stored(run, arguments):
    return lambda target, *args: target.copy_(run(target, *args[: arguments - 1]))


def register():
    """Called once."""
    for limitation, names in WITHOUT.items():
        for dotted in () if limits.has(limitation) else names:
            op, source = _overload(dotted), _overload(_functional(dotted))
            run = compile_once(source)
            eager.graph_names.add(source.name())
            kernel = run if op is source else _stored(run, len(source._schema.arguments))
            torch.library.register_kernel(op.name(), ["spyre"])(kernel)
    for limitation, names in WITH.items():
        if limits.has(limitation):
            fallbacks.register_fallback_default(list(map(_overload, names)))


register()
