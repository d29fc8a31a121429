"""RMS norm from single device ops: the card has no kernel for the whole of it in eager mode.

The squares are scaled before they are added, else a row of large float16 values overflows.
"""

import torch

from spyre_inference.config import maybe_compile
from spyre_inference.custom_ops.utils import convert
from spyre_inference.platform import DEVICE

RANGE = 16.0


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / rms(x) * weight over the last dimension."""
    small = x * (1.0 / RANGE)
    mean = torch.mean(small * small, dim=-1, keepdim=True)
    return small * torch.rsqrt(mean + eps / (RANGE * RANGE)) * weight


def fused_add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float):
    """The norm of x + residual, and the sum itself."""
    total = x + residual
    return rms_norm(total, weight, eps), total


class SpyreRMSNorm(torch.nn.Module):
    """RMS norm on the card; `_target_device` may be set to the CPU to run the same steps there."""

    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, dtype=torch.float16), requires_grad=False)
        self.eps = eps
        self._target_device = DEVICE
        self._norm = maybe_compile(rms_norm)
        self._fused = maybe_compile(fused_add_rms_norm)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None):
        x = convert(x, self._target_device, torch.float16)
        weight = convert(self.weight.data, self._target_device)
        if residual is None:
            return self._norm(x, weight, self.eps)
        return self._fused(x, convert(residual, self._target_device, torch.float16), weight, self.eps)
