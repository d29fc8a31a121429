"""Compile one graph: decompose, check the lowering of each node, give each a layout, and make the runner."""

import inspect

import torch

from torch_spyre import _C, vendor_log
from torch_spyre._inductor import lowering, propagate_layouts, spyre_kernel
from torch_spyre.constants import DEVICE_NAME
from torch_spyre.execution.kernel_runner import SpyreKernelRunner


def _on_spyre(value):
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE_NAME


def concerns_spyre(graph, example_inputs):
    """Whether a graph has a tensor on the card."""
    if any(_on_spyre(value) for value in example_inputs):
        return True
    for node in graph.graph.nodes:
        device = node.kwargs.get("device") if node.op == "call_function" else None
        if device is not None and torch.device(device).type == DEVICE_NAME:
            return True
        if _on_spyre(node.meta.get("example_value", node.meta.get("val"))):
            return True
    return False


def compile_for_spyre(graph, example_inputs):
    """The backend's part of torch.compile; a failure arrives as InductorError, as from the real one."""
    from torch._dynamo.backends.common import aot_autograd

    from torch_spyre._inductor.decompositions import compile_time_table

    table = compile_time_table()
    backend = aot_autograd(fw_compiler=compile_inner, decompositions=table, keep_inference_input_mutations=True)
    return backend(graph, example_inputs)


def compile_inner(graph_module, example_inputs):
    """Stages in order; each raises from its own file."""
    from functorch.compile import make_boxed_func
    from torch._inductor.exc import InductorError

    from torch_spyre.profiler import _ffdc

    _C.stats["compile"] += 1
    vendor_log.say("sendnn", f"compile graph of {len(graph_module.graph.nodes)} nodes")
    try:
        plan = lowering.lower_graph(graph_module)
        propagate_layouts.propagate_spyre_tensor_layouts(graph_module, plan)
        spyre_kernel.generate(graph_module, plan)
    except Exception as error:
        _ffdc.report("compile_frontend", error)
        raise InductorError(error, inspect.currentframe()).with_traceback(error.__traceback__) from None
    return make_boxed_func(SpyreKernelRunner(graph_module, plan))
