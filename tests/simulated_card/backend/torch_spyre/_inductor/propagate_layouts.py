"""Give every node of a graph a layout in sticks; what has none is refused here."""

import torch

from torch_spyre import faults, limits
from torch_spyre._inductor.errors import Unsupported
from torch_spyre.constants import STICK

MATMULS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::matmul", "spyre::batched_matmul"}


def inputs_of(node):
    """The fake tensors that a node reads, in order; one that is read twice counts twice."""
    nodes = []
    torch.fx.map_arg((node.args, node.kwargs), nodes.append)
    return [n.meta["val"] for n in nodes if isinstance(n.meta.get("val"), torch.Tensor)]


def propagate_spyre_tensor_layouts(graph_module, plan):
    """One layout per node, in order."""
    for node, how in plan.items():
        if how == "host":
            node.meta["spyre_layout"] = compute_layouts(node.target.name(), node.meta.get("val"), inputs_of(node))


def compute_layouts(name, output, inputs):
    """The layout of an op's output, by the kind of op."""
    if name in MATMULS:
        _matmul_layouts(name, output, inputs)
    elif name in {"aten::clone", "aten::contiguous", "spyre::copy_from_d2d"}:
        check_copy(inputs[0] if inputs else output)
    else:
        _pointwise_layouts(name, output, inputs)
    return _sticks(output)


def _sticks(output):
    first = output[0] if isinstance(output, (list, tuple)) and output else output
    return [*first.shape[:-1], first.shape[-1]] if isinstance(first, torch.Tensor) and first.dim() else None


def _refused(name, output, inputs):
    return faults.refuses("layout", name, output, inputs)


def _pointwise_layouts(name, output, inputs):
    size = list(output.shape) if isinstance(output, torch.Tensor) else None
    if _refused(name, output, inputs):
        raise Unsupported(
            f"Multi-arg pointwise ({name}): no supported output layout found with size={size} "
            f"and coordinates={[f'd{i}' for i in range(len(size or []))]}"
        )
    if limits.has("fp16_storage_offset"):
        for value in inputs:
            offset = int(value.storage_offset()) if value.dtype == torch.float16 else 0
            if offset % STICK:
                raise Unsupported(
                    f"{name} has stick expression with offset {offset} (likely from slicing the stick dimension)"
                )


def _matmul_layouts(name, output, inputs):
    shapes = [tuple(t.shape) for t in inputs]
    if _refused(name, output, inputs):
        raise Unsupported(f"{name}: cannot restickify any input layout of {shapes} to carry a stick of {STICK}")
    if limits.has("matmul_out_1") and 1 in output.shape[-2:]:
        raise Unsupported(
            f"{name}: no mechanism to resolve stick incompatibility for an output of {tuple(output.shape)}"
        )
    if limits.has("unaligned_width") and inputs[-2].shape[-1] % STICK:
        raise Unsupported(f"{name}: Unexpected stick expression for an inner size of {inputs[-2].shape[-1]}")


def check_copy(source):
    """A contiguous copy keeps the stick dimension or is refused."""
    if _refused("spyre::copy_from_d2d", source, [source]):
        raise Unsupported(f"spyre.copy_from_d2d: no supported output layout found with size={list(source.shape)}")
    if (
        limits.has("transpose_contiguous")
        and source.dim() > 1
        and source.shape[-1] > 1
        and source.stride(-1) not in (0, 1)
    ):
        raise Unsupported(
            f"copy of size={list(source.shape)} stride={list(source.stride())}: no mechanism to resolve stick incompatibility"
        )
