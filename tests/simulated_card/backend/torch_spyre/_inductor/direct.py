"""The short way for an eager kernel, without dynamo: the same checks, then the host; only where SPYRE_SIM_COMPILE=0 asks."""

import torch

from torch_spyre._inductor import lowering, propagate_layouts, spyre_kernel
from torch_spyre.execution.kernel_runner import _device, _host
from torch_spyre.execution.launch import run_on_host


def call(op, args, kwargs):
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = op.default
    back = {}
    host_args = _host(tuple(args), back)
    host_kwargs = {k: _host(v, back) for k, v in kwargs.items()}
    inputs = [v for v in host_args if isinstance(v, torch.Tensor)]
    try:
        lowering.check(op.name(), inputs[0] if inputs else None, inputs)
        propagate_layouts.compute_layouts(op.name(), inputs[0] if inputs else None, inputs)
        spyre_kernel.check(op.name(), inputs[0] if inputs else None, inputs)
    except Exception as error:
        from torch._inductor.exc import InductorError

        from torch_spyre.profiler import _ffdc

        _ffdc.report("compile_frontend", error)
        raise InductorError(error, None).with_traceback(error.__traceback__) from None
    return _device(run_on_host(op, host_args, host_kwargs), back)
