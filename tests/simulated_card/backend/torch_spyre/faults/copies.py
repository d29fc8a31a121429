"""Faults of transfers, conversions and fallbacks."""

import torch

from .kind import Fault, Parameter, base_of, names_op, op_parameter


def in_storage_order(value):
    """The values of a strided tensor as a reader sees them that takes the storage in order."""
    if not isinstance(value, torch.Tensor) or value.is_contiguous() or not value.numel():
        return value
    if value.device.type == "spyre":
        from torch_spyre import _C

        return _C.to_device(in_storage_order(_C.to_host(value)))
    room = value.untyped_storage().nbytes() // value.element_size() - value.storage_offset()
    flat = value.as_strided((room,), (1,))
    lanes = torch.arange(value.numel()) % room
    return flat.index_select(0, lanes).view(value.shape)


class FallbackIgnoresStrides(Fault):
    name = "fallback_ignores_strides"
    text = "the op runs on the CPU with a FallbackWarning, and reads strided inputs in storage order"
    parameters = (op_parameter("cumsum", "cumsum", "repeat", "cat", "mul", "index_select"),)

    def applies(self, call):
        from torch_spyre.ops import fallbacks

        return super().applies(call) and not (call.op is not None and fallbacks.is_fallback(call.op))

    def before(self, call):
        from torch_spyre.ops.fallbacks import warn_fallback

        warn_fallback(call.op)
        call.args = self._read(call.args)

    def _read(self, args):
        return tuple(
            type(a)(map(in_storage_order, a)) if isinstance(a, (list, tuple)) else in_storage_order(a) for a in args
        )

    def fallback_arguments(self, name, args):
        return self._read(args) if names_op(self.op, name) else args


class SilentlyElsewhere(Fault):
    name = "falls_back"
    text = "the op runs on the CPU with a FallbackWarning although it has a kernel; its result is right"
    parameters = (op_parameter("rsqrt", "rsqrt", "mm", "cat", "mul", "index_select"),)

    def before(self, call):
        from torch_spyre.ops.fallbacks import warn_fallback

        warn_fallback(call.op)


class ClobberedCast(Fault):
    name = "clobbered_cast"
    text = "a transfer that changes dtype and device at once copies the raw bytes"
    parameters = (Parameter("way", "h2d", "`h2d` or `d2h`", ("h2d", "d2h")),)

    def applies(self, call):
        return call.name == f"spyre::copy_{self.way}" and call.args[0].dtype != call.args[1].dtype

    def after(self, call, result):
        raw = call.args[0].contiguous().view(-1).view(torch.uint8)
        need = result.numel() * result.element_size()
        raw = raw.repeat(-(-need // max(raw.numel(), 1)))[:need] if raw.numel() < need else raw[:need]
        return raw.clone().view(result.dtype).view(result.shape)


class CopyIgnoresStrides(Fault):
    name = "copy_ignores_strides"
    text = "a copy on the card reads a strided source in storage order (transpose and contiguous)"
    parameters = (Parameter("way", "d2d", "`d2d`, `h2d` or `d2h`", ("d2d", "d2h")),)

    def applies(self, call):
        return call.name == f"spyre::copy_{self.way}" or (self.way == "d2d" and base_of(call.name) == "clone")

    def before(self, call):
        call.args = (in_storage_order(call.args[0]), *call.args[1:])


class IgnoredArgument(Fault):
    name = "ignored_argument"
    text = "a keyword argument of the op is ignored"
    parameters = (
        op_parameter("add", "add", "sub", "addmm"),
        Parameter("argument", "alpha", "which", ("alpha",)),
    )

    def before(self, call):
        call.kwargs.pop(self.argument, None)


FAULTS = [FallbackIgnoresStrides, SilentlyElsewhere, ClobberedCast, CopyIgnoresStrides, IgnoredArgument]
