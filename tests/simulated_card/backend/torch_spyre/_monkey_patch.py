"""Changes to torch.Tensor, torch.empty and torch.UntypedStorage without which the device cannot be used; applied once."""

import contextlib
import functools
import sys

import torch

from .constants import DEVICE_NAME


def _patch_tensor_for_spyre():
    if getattr(torch.Tensor, "_spyre_tensor_patched", False):
        return
    torch.Tensor._spyre_tensor_patched = True
    _patch_repr()
    _patch_storage()
    _patch_to()
    _patch_empty()
    torch.Tensor.device_tensor_layout = _device_tensor_layout


def _on_spyre(device):
    return device is not None and torch.device(device).type == DEVICE_NAME


def _device_tensor_layout(self):
    """The layout of a device tensor, None for one that is elsewhere."""
    from . import _C

    if self.device.type != DEVICE_NAME:
        return None
    return getattr(self, "_spyre_layout", None) or _C.SpyreTensorLayout(self.shape, self.dtype)


def _patch_repr():
    original = torch.Tensor.__repr__

    def spyre_repr(self, *, tensor_contents=None):
        plain = type(self) in (torch.Tensor, torch.nn.Parameter)  # a FakeTensor prints itself
        if not plain or self.device.type != DEVICE_NAME:
            return original(self, tensor_contents=tensor_contents)
        text = original(self.detach().cpu())
        if self.requires_grad:
            text = text[:-1] + ", requires_grad=True)"
        if type(self) is torch.nn.Parameter:
            text = "Parameter containing:\n" + text
        return text[:-1] + f", device='{self.device}')"

    torch.Tensor.__repr__ = spyre_repr


def _patch_storage():
    """PrivateUse1 has no allocator without C++, and torch dies of a signal where deepcopy or torch.load ask for a storage."""
    original = torch.UntypedStorage.__new__

    def new(cls, *args, device=None, **kwargs):
        if _on_spyre(device):
            from . import _C

            _C.start_runtime()
            size = args[0] if args else kwargs.get("size", 0)
            return _C.to_device(torch.empty(size, dtype=torch.uint8, device="cpu")).untyped_storage()
        if device is not None:
            kwargs["device"] = device
        return original(cls, *args, **kwargs)

    torch.UntypedStorage.__new__ = staticmethod(new)


def _patch_to():
    original = torch.Tensor.to

    def to(self, *args, device_layout=None, **kwargs):
        moved = original(self, *args, **kwargs)
        if device_layout is not None:
            if moved.device.type != DEVICE_NAME:
                raise RuntimeError("device_layout is for tensors that go to the spyre device")
            moved._spyre_layout = device_layout
        return moved

    torch.Tensor.to = to


def _patch_empty():
    original = torch.empty

    def empty(*args, device_layout=None, **kwargs):
        made = original(*args, **kwargs)
        if device_layout is not None:
            made._spyre_layout = device_layout
        return made

    torch.empty = empty


def _disabled_when_dynamo_is_there(fn):
    made = []

    @functools.wraps(fn)
    def kernel(*args, **kwargs):
        if not made:
            disable = getattr(sys.modules.get("torch._dynamo"), "disable", None)
            if disable is None:
                return fn(*args, **kwargs)
            made.append(disable(fn))
        return made[0](*args, **kwargs)

    return kernel


@contextlib.contextmanager
def kernels_without_dynamo():
    """Kernels registered in the block do not import dynamo to be hidden from it: that costs a second at the first op."""
    original = torch._disable_dynamo
    torch._disable_dynamo = lambda fn=None, recursive=True: (
        original(recursive=recursive) if fn is None else _disabled_when_dynamo_is_there(fn)
    )
    try:
        yield
    finally:
        torch._disable_dynamo = original
