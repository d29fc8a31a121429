"""Allocation, views and copies; on the real card these kernels are C++."""

import inspect
import os

import torch

from torch_spyre import _C, limits
from torch_spyre.execution import launch
from torch_spyre.ops import fallbacks

aten = torch._ops.ops.aten
CPU = torch._C.DispatchKey.CPU


@torch.library.register_kernel("aten::empty.memory_format", ["spyre"])
def empty(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    _C.start_runtime()
    host = torch._ops.ops.aten.empty.memory_format(
        size, dtype=dtype, device="cpu", memory_format=memory_format or torch.contiguous_format
    )
    return _C.to_device(host)


@torch.library.register_kernel("aten::empty_strided", ["spyre"])
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    _C.start_runtime()
    return _C.to_device(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


# Views copy the key set of their input and read no data, so ATen's own CPU kernels serve.


@torch.library.register_kernel("aten::view", ["spyre"])
def view(self, size):
    return aten.view.default._op_dk(CPU, self, size)


@torch.library.register_kernel("aten::_unsafe_view", ["spyre"])
def _unsafe_view(self, size):
    return aten.view.default._op_dk(CPU, self, size)


@torch.library.register_kernel("aten::_reshape_alias", ["spyre"])
def _reshape_alias(self, size, stride):
    return aten._reshape_alias.default._op_dk(CPU, self, size, stride)


@torch.library.register_kernel("aten::as_strided", ["spyre"])
def as_strided(self, size, stride, storage_offset=None):
    return aten.as_strided.default._op_dk(CPU, self, size, stride, storage_offset)


@torch.library.register_kernel("aten::unfold", ["spyre"])
def unfold(self, dimension, size, step):
    return aten.unfold.default._op_dk(CPU, self, dimension, size, step)


@torch.library.register_kernel("aten::set_.source_Storage_storage_offset", ["spyre"])
def set_storage_offset(self, source, storage_offset, size, stride=()):
    return aten.set_.source_Storage_storage_offset._op_dk(CPU, self, source, storage_offset, size, stride)


@torch.library.register_kernel("aten::set_.source_Storage", ["spyre"])
def set_storage(self, source):
    return aten.set_.source_Storage._op_dk(CPU, self, source)


@torch.library.register_kernel("aten::set_.source_Tensor", ["spyre"])
def set_tensor(self, source):
    return aten.set_.source_Tensor._op_dk(CPU, self, source)


@torch.library.register_kernel("aten::resize_", ["spyre"])
def resize_(self, size, *, memory_format=None):
    shape = torch.empty(size, device="meta", dtype=self.dtype)
    storage = self.untyped_storage()
    if (shape.numel() + self.storage_offset()) * self.element_size() > storage.nbytes():
        bigger = torch.empty(size, dtype=self.dtype, device="spyre")
        _C.to_host(bigger).view(-1)[: self.numel()].copy_(_C.to_host(self).reshape(-1))
        return self.set_(bigger.untyped_storage(), 0, bigger.size(), bigger.stride())
    return self.set_(storage, self.storage_offset(), shape.size(), shape.stride())


def _host(value):
    return _C.to_host(value) if _C.is_spyre(value) else value


def _warn_downcast():
    if _warned or os.environ.get("TORCH_SPYRE_DOWNCAST_WARN", "1").lower() in {"0", "false", "off"}:
        return
    _warned.append(True)
    fallbacks.warn_at_caller("Backend Spyre does not support int64; downcasting to int32 may overflow", UserWarning)


_warned = []


def _narrowed(source):
    """int64 is held as int32; values beyond it wrap."""
    if source.dtype != torch.int64 or not limits.has("int64_downcast"):
        return source
    _warn_downcast()
    return source.to(torch.int32).to(torch.int64)


def copy_within_device(source, target):
    """A copy on the card is a kernel and needs a layout, as a compiled one does."""
    from torch_spyre._inductor import propagate_layouts

    try:
        propagate_layouts.check_copy(source)
    except Exception as error:
        from torch._inductor.exc import InductorError

        raise InductorError(error, inspect.currentframe()).with_traceback(error.__traceback__) from None
    launch.run_copy("d2d", _host(source), _host(target))


@torch.library.register_kernel("aten::_copy_from", ["spyre"])
def _copy_from(self, dst, non_blocking=False):
    if self.numel() == 0:
        return dst
    if _C.is_spyre(self) and _C.is_spyre(dst):
        if self.dtype != dst.dtype and limits.has("d2d_cast_via_cpu"):
            fallbacks.warn_at_caller(
                "D2D dtype conversion on Spyre is not directly supported. Using CPU as an intermediate for the cast.",
                UserWarning,
            )
        copy_within_device(self, dst)
        return dst
    kind = "d2h" if _C.is_spyre(self) else "h2d"
    if self.dtype != dst.dtype and limits.has("combined_to"):
        raise RuntimeError(f"Unsupported dtype change in a DMA transfer: {self.dtype} to {dst.dtype}")
    source = _narrowed(_host(self)) if kind == "h2d" else _host(self)
    launch.run_copy(kind, source, _host(dst))
    return dst


@torch.library.register_kernel("aten::_copy_from_and_resize", ["spyre"])
def _copy_from_and_resize(self, dst):
    if dst.shape != self.shape:
        dst.resize_(self.shape)
    return aten._copy_from(self, dst)


# Resolving a conj or neg view copies from that view; without these it would call itself until the stack ends.
_lazy = torch.library.Library("aten", "IMPL")
for _key in ("Conjugate", "Negative"):
    _lazy.impl("_copy_from", torch.library.fallthrough_kernel, _key)
_autocast = torch.library.Library("_", "IMPL")
_autocast.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
