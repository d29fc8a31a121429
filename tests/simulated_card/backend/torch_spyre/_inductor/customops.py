"""Custom ops of the card, each with the fake function that a trace needs."""

import torch

from torch_spyre._inductor.errors import Unsupported
from torch_spyre.execution.compile_once import compile_once

Tensor = torch.Tensor


@torch.library.custom_op("spyre::batched_matmul", mutates_args=(), device_types="spyre")
@compile_once("spyre.batched_matmul")
def batched_matmul(a: Tensor, b: Tensor) -> Tensor: ...


@batched_matmul.register_fake
def _(a, b):
    return torch.matmul(a, b)


@torch.library.custom_op("spyre::silu", mutates_args=(), device_types="spyre")
@compile_once("spyre.silu")
def silu(x: Tensor) -> Tensor: ...


@silu.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("spyre::gelu", mutates_args=(), device_types="spyre")
@compile_once("spyre.gelu")
def gelu(x: Tensor, approximate: str = "none") -> Tensor: ...


@gelu.register_fake
def _(x, approximate="none"):
    return torch.empty_like(x)


@torch.library.custom_op("spyre::softplus", mutates_args=(), device_types="spyre")
@compile_once("spyre.softplus")
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor: ...


@softplus.register_fake
def _(x, beta=1.0, threshold=20.0):
    return torch.empty_like(x)


@torch.library.custom_op("spyre::clamp", mutates_args=(), device_types="spyre")
@compile_once("spyre.clamp")
def clamp(x: Tensor, low: float, high: float) -> Tensor: ...


@clamp.register_fake
def _(x, low, high):
    return torch.empty_like(x)


@torch.library.custom_op("spyre::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    if x.device.type != "spyre":
        raise Unsupported("spyre_rms_norm: only supports spyre device with normalized_shape of length 1")
    scale = torch.rsqrt(torch.mean(x * x, [-1], keepdim=True) + eps)
    return x * scale if weight is None else x * scale * weight


@rms_norm.register_fake
def _(x, weight=None, eps=1e-5):
    return torch.empty_like(x)


@torch.library.custom_op("spyre::layer_norm", mutates_args=())
def layer_norm(
    x: Tensor, normalized_shape: list[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    if len(normalized_shape) != 1:
        raise Unsupported("spyre_layer_norm: only supports spyre device with normalized_shape of length 1")
    centred = x - torch.mean(x, [-1], keepdim=True)
    normal = centred * torch.rsqrt(torch.mean(centred * centred, [-1], keepdim=True) + eps)
    normal = normal if weight is None else normal * weight
    return normal if bias is None else normal + bias


@layer_norm.register_fake
def _(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return torch.empty_like(x)


@torch.library.custom_op("spyre::copy_from_d2d", mutates_args=("target",), device_types="spyre")
def copy_from_d2d(source: Tensor, target: Tensor) -> None:
    from torch_spyre.ops import memory

    memory.copy_within_device(source, target)


@copy_from_d2d.register_fake
def _(source, target):
    return None


@torch.library.custom_op("spyre::overwrite", mutates_args=("target",), device_types="spyre")
def overwrite(source: Tensor, target: Tensor) -> None:
    target.copy_(source)


@overwrite.register_fake
def _(source, target):
    return None


@torch.library.register_kernel("spyre::overwrite", ["cpu"])
def _(source, target):
    target.copy_(source)


@torch.library.custom_op("spyre::max_dim_int64_fallback", mutates_args=())
def max_dim_int64_fallback(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    raise Unsupported("spyre::max_dim_int64_fallback should be handled by CPU fallback registration")


@max_dim_int64_fallback.register_fake
def _(x, dim, keepdim=False):
    values = torch.amax(x, dim, keepdim)
    return values, torch.empty_like(values, dtype=torch.int64)


@torch.library.custom_op("spyre::min_dim_int64_fallback", mutates_args=())
def min_dim_int64_fallback(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    raise Unsupported("spyre::min_dim_int64_fallback should be handled by CPU fallback registration")


@min_dim_int64_fallback.register_fake
def _(x, dim, keepdim=False):
    values = torch.amin(x, dim, keepdim)
    return values, torch.empty_like(values, dtype=torch.int64)
