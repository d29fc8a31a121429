"""The runtime: device tensors over host memory, without C++.

A tensor gets on the device by a change of the device tag in a DLPack capsule. It is a plain tensor of the
PrivateUse1 key whose storage is host memory; the way back changes the tag again. Neither way copies.
"""

import ctypes
import os

import torch

from . import _device, vendor_log
from .constants import BYTES_IN_STICK, DEVICE_NAME

_CPU_TAG, _EXTENSION_TAG = 1, 12
_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = [ctypes.py_object, ctypes.c_char_p]
_export, _import = torch._C._to_dlpack, torch._C._from_dlpack


class _Head(ctypes.Structure):
    """The first three fields of a managed DLPack tensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


_head_at = _Head.from_address
stats = {"launch": 0, "compile": 0, "fallback": 0, "h2d": 0, "d2h": 0, "d2d": 0}


def _tagged(tensor, tag):
    capsule = _export(tensor)
    head = _head_at(_pointer_in(capsule, b"dltensor"))
    head.device_type = tag
    head.device_id = 0
    return _import(capsule)


def to_device(host):
    """A device tensor over the memory of a host tensor."""
    return _tagged(host.detach() if host.requires_grad else host, _EXTENSION_TAG)


def to_host(dev):
    """A host tensor over the memory of a device tensor, with its sizes and strides; conj and neg bits are kept."""
    plain = dev.detach() if dev.requires_grad else dev
    conj, neg = plain.is_conj(), plain.is_neg()
    if conj:
        plain = torch._conj(plain)
    if neg:
        plain = torch._neg_view(plain)
    if offset := plain.storage_offset():  # a capsule starts at the data; the view keeps its offset in the whole storage
        room = plain.untyped_storage().nbytes() // plain.element_size()
        whole = _tagged(plain.as_strided((room,), (1,), 0), _CPU_TAG)
        host = whole.as_strided(plain.shape, plain.stride(), offset)
    else:
        host = _tagged(plain, _CPU_TAG)
    if conj:
        host = torch._conj(host)
    return torch._neg_view(host) if neg else host


def is_spyre(value):
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE_NAME


def start_runtime():
    """Own the card; the first device op of a process does this, an import does not."""
    if _device.open_once():
        from . import faults

        if "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(
                1
            )  # tensors are small; on a busy machine threads that wait for each other cost milliseconds
        vendor_log.say("sendnn", f"runtime up, device {_device.path()}")
        vendor_log.say("dtlog", f"senlib: opened {_device.path()} cores={os.environ.get('SENCORES', '32')}")
        faults.runtime_started()


def is_available():
    return True


def device_count():
    return 1


def get_elem_in_stick(dtype):
    """Elements of this dtype that fit one stick; bool and bfloat16 are held as the card's float16."""
    return BYTES_IN_STICK // _HELD_AS.get(dtype, (None, dtype.itemsize))[1]


_HELD_AS = {
    torch.float16: ("SEN169_FP16", 2),
    torch.bfloat16: ("SEN169_FP16", 2),
    torch.bool: ("SEN169_FP16", 2),
    torch.float32: ("IEEE_FP32", 4),
    torch.int64: ("IEEE_INT32", 4),
    torch.int32: ("IEEE_INT32", 4),
    torch.int16: ("SENINT16", 2),
    torch.int8: ("SENINT8", 1),
    torch.uint8: ("SENUINT8", 1),
    torch.float8_e4m3fn: ("SEN143_FP8", 1),
    torch.float8_e5m2: ("SEN152_FP8", 1),
}


def get_device_dtype(dtype):
    """The name of the format in which the card holds this dtype."""
    if dtype not in _HELD_AS:
        raise RuntimeError(f"Spyre backend does not support dtype {dtype}")
    return _HELD_AS[dtype][0]


class SpyreTensorLayout:
    """How a host shape lies in sticks: the last dimension is cut into sticks, the stick index goes outermost but one."""

    def __init__(self, host_size, dtype, dim_order=None):
        sizes = [int(n) for n in host_size]
        order = list(range(len(sizes))) if dim_order is None else list(dim_order)
        if sorted(order) != list(range(len(sizes))):
            raise RuntimeError(f"Incompatible host_size and dim_order: {sizes} and {order}")
        self.host_size, self.dim_order, self.dtype = sizes, order, dtype
        self.device_dtype = get_device_dtype(dtype)
        self.elems_per_stick = get_elem_in_stick(dtype)
        ordered = [sizes[d] for d in order] or [1]
        sticks = -(-ordered[-1] // self.elems_per_stick)
        self.device_size = [*ordered[:-2], sticks, *ordered[-2:-1], self.elems_per_stick]

    def __repr__(self):
        return f"SpyreTensorLayout(device_size={self.device_size}, device_dtype={self.device_dtype})"

    def __eq__(self, other):
        return isinstance(other, SpyreTensorLayout) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))
