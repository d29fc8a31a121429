"""Code generation: an op must have a function of the card, and its dtype must be one that the function takes."""

import torch

from torch_spyre import _C, faults, limits
from torch_spyre._inductor.errors import Unsupported
from torch_spyre._inductor.propagate_layouts import MATMULS, inputs_of
from torch_spyre.constants import CORES, SPAN_LIMIT

_POINTWISE = (
    "abs add clamp eq exp exx2 floor ge gelu gt layernormnorm layernormscale le log logical_and lt maximum minimum mul ne "
    "neg reciprocal relu rsqrt sigmoid silu softplus sqrt square sub tanh to_dtype truediv where"
).split()


class SpyreOpFuncs:
    """The functions of the card by name; what is missing here is an AttributeError at code generation."""


for _name in _POINTWISE:
    setattr(SpyreOpFuncs, _name, staticmethod(lambda *args, _op=_name: (_op, args)))


def generate(graph_module, plan):
    """One function of the card for each node that is lowered."""
    for node, how in plan.items():
        if how == "host":
            check(node.target.name(), node.meta.get("val"), inputs_of(node))


def check(name, output, inputs):
    if faults.refuses("codegen", name, output, inputs):
        raise AttributeError(
            f"type object 'SpyreOpFuncs' has no attribute '{name.partition('::')[2].partition('.')[0]}'"
        )
    floats = [t for t in inputs if t.is_floating_point() and t.dim()]
    for value in floats:
        if limits.has("fp16_only") and value.dtype != torch.float16:
            raise Unsupported(f"{name} on {_C.get_device_dtype(value.dtype)}")
        if limits.has("fp32_matmul") and name in MATMULS and value.dtype == torch.float32:
            raise Unsupported(f"batchmatmul on {_C.get_device_dtype(value.dtype)}")
    check_span(name, inputs)


def check_span(name, inputs):
    """A core can address 256 MB; a gather cannot be divided among the cores."""
    if not limits.has("span_256mb") or name not in {"aten::index_select", "aten::embedding"}:
        return
    table = inputs[0]
    if table.numel() * table.element_size() > SPAN_LIMIT:
        raise Unsupported(
            f"Cannot satisfy hardware memory span limit (256MB) for {name} on {CORES} cores with size={list(table.shape)}"
        )
