"""The gated activation: silu of the first half of a row times the second half."""

import torch

from spyre_inference.config import maybe_compile
from spyre_inference.custom_ops.utils import convert
from spyre_inference.platform import DEVICE


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """silu(x[..., :half]) * x[..., half:]; the second half starts inside the storage of x."""
    half = x.shape[-1] // 2
    return torch.nn.functional.silu(x[..., :half]) * x[..., half:]


class SpyreSiluAndMul(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._target_device = DEVICE
        self._act = maybe_compile(silu_and_mul)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] % 2:
            raise ValueError(f"the last dimension must be even, not {x.shape[-1]}")
        return self._act(convert(x, self._target_device, torch.float16))
