"""Which ops of a graph the card carries out itself, and what it refuses about them."""

import operator

import torch

from torch_spyre import faults, limits
from torch_spyre._inductor.errors import Unsupported
from torch_spyre._inductor.propagate_layouts import inputs_of

spyre_lowerings = {}


def register_spyre_lowering(op):
    """The function below checks the nodes of this op; the node is then carried out by the card."""

    def register(fn):
        for overload in [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, o) for o in op.overloads()]:
            spyre_lowerings[overload] = fn
        return fn

    return register


@register_spyre_lowering(torch.ops.aten.mm.default)
def lower_mm(node):
    a, b = inputs_of(node)[:2]
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"Unsupported tensor dimensions for mm: {a.dim()} and {b.dim()}")


@register_spyre_lowering(torch.ops.aten.bmm.default)
@register_spyre_lowering(torch.ops.spyre.batched_matmul.default)
def lower_bmm(node):
    values = inputs_of(node)
    if len(values) < 2:
        return
    a, b = values[:2]
    one_sided = any(x != y and 1 in (x, y) for x, y in zip(a.shape[:-2], b.shape[:-2], strict=False))
    if limits.has("broadcast_4d_matmul") and one_sided:
        raise Unsupported(f"BMM with input shapes {tuple(a.shape)} and {tuple(b.shape)}")


@register_spyre_lowering(torch.ops.aten.mean.dim)
@register_spyre_lowering(torch.ops.aten.mean.default)
@register_spyre_lowering(torch.ops.aten.cat.default)
@register_spyre_lowering(torch.ops.aten.add.Tensor)
@register_spyre_lowering(torch.ops.aten.sub.Tensor)
@register_spyre_lowering(torch.ops.aten.mul.Tensor)
@register_spyre_lowering(torch.ops.aten.minimum.default)
@register_spyre_lowering(torch.ops.aten.maximum.default)
@register_spyre_lowering(torch.ops.aten.constant_pad_nd.default)
def lower_pointwise(node):
    """Nothing of its own to check."""


@register_spyre_lowering(torch.ops.aten.clone.default)
@register_spyre_lowering(torch.ops.aten.copy.default)
@register_spyre_lowering(torch.ops.aten.copy_.default)
@register_spyre_lowering(torch.ops.aten._to_copy.default)
@register_spyre_lowering(torch.ops.aten.slice_scatter.default)
@register_spyre_lowering(torch.ops.aten.select_scatter.default)
@register_spyre_lowering(torch.ops.aten.index_copy.default)
@register_spyre_lowering(torch.ops.prims.convert_element_type.default)
def lower_copy(node):
    """Copies are checked by their layout."""


@register_spyre_lowering(torch.ops.aten.full.default)
@register_spyre_lowering(torch.ops.aten.full_like.default)
@register_spyre_lowering(torch.ops.aten.empty.memory_format)
@register_spyre_lowering(torch.ops.aten.zeros_like.default)
@register_spyre_lowering(torch.ops.aten.ones_like.default)
@register_spyre_lowering(torch.ops.aten.scalar_tensor.default)
def lower_full(node):
    value = node.meta.get("val")
    if limits.has("int64_constants") and isinstance(value, torch.Tensor) and value.dtype == torch.int64:
        raise Unsupported(f"{node.target.name()} on IEEE_INT32: an int64 constant")


@register_spyre_lowering(torch.ops.aten.slice.Tensor)
def lower_slice(node):
    value = node.meta.get("val")
    if limits.has("row_slices_in_graph") and value.dim() == 2 and value.shape[-1] == 1:
        raise Unsupported(f"aten.slice.Tensor to size={list(value.shape)}: a row slice inside a graph")


@register_spyre_lowering(torch.ops.aten.index_select.default)
def lower_index_select(node):
    index = inputs_of(node)[-1]
    if limits.has("single_index") and index.numel() == 1:
        raise Unsupported(f"aten.index_select with an index of size {list(index.shape)}")


@register_spyre_lowering(torch.ops.spyre.silu.default)
@register_spyre_lowering(torch.ops.spyre.gelu.default)
@register_spyre_lowering(torch.ops.spyre.softplus.default)
@register_spyre_lowering(torch.ops.spyre.clamp.default)
@register_spyre_lowering(torch.ops.spyre.rms_norm.default)
@register_spyre_lowering(torch.ops.spyre.layer_norm.default)
@register_spyre_lowering(torch.ops.spyre.copy_from_d2d.default)
@register_spyre_lowering(torch.ops.spyre.overwrite.default)
def lower_custom(node):
    """The function of the card with the same name."""


_CLAMP_FUNC_OVS = ["default", "Tensor"]


def enable_spyre_lowerings():
    """The clamp family, by a loop over its overloads."""
    for overload in _CLAMP_FUNC_OVS:
        for packet in (torch.ops.aten.clamp, torch.ops.aten.clamp_min, torch.ops.aten.clamp_max):
            spyre_lowerings[getattr(packet, overload)] = lower_pointwise


enable_spyre_lowerings()

_VIEWS = {"aten::_unsafe_view", "aten::detach", "aten::lift_fresh", "aten::alias"}


def _is_view(op):
    if op.name() in _VIEWS:
        return True
    first = op._schema.arguments[0] if op._schema.arguments else None
    info = first.alias_info if first is not None else None
    return info is not None and not info.is_write


def _how(target):
    from torch_spyre.ops import eager, fallbacks

    if not isinstance(target, torch._ops.OpOverload):
        return "view" if target is operator.getitem or not hasattr(target, "overloads") else "device"
    if fallbacks.is_fallback(target):
        return "device"
    if _is_view(target):
        return "view"
    if target in spyre_lowerings or target.name() in eager.graph_names:
        return "host"
    return "device"


def check(name, output, inputs):
    """Refuse an op whose lowering is missing."""
    if faults.refuses("lowering", name, output, inputs):
        raise Unsupported(f"lowering of {name} with shapes {[tuple(t.shape) for t in inputs]}")


def lower_graph(graph_module):
    """A plan for each op node: carried out by the card (`host`), a view, or handed to the eager kernel (`device`)."""
    from torch._inductor.exc import LoweringException

    plan = {}
    for node in graph_module.graph.nodes:
        if node.op != "call_function":
            continue
        plan[node] = how = _how(node.target)
        name = node.target.name() if isinstance(node.target, torch._ops.OpOverload) else str(node.target)
        try:
            if how == "host":
                check(name, node.meta.get("val"), inputs_of(node))
            if node.target in spyre_lowerings:
                spyre_lowerings[node.target](node)
        except Exception as error:
            raise LoweringException(error, name, [str(a) for a in node.args], {}).with_traceback(
                error.__traceback__
            ) from None
    return plan
