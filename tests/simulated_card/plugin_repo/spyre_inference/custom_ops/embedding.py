"""Token embedding: rows of a table by index, and positions."""

import warnings

import torch

from spyre_inference.custom_ops.utils import convert
from spyre_inference.platform import DEVICE


class SpyreEmbedding(torch.nn.Module):
    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self._target_device = DEVICE
        self.weight = weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        table = convert(self.weight, self._target_device, torch.float16)
        rows = torch.index_select(table, 0, convert(ids.reshape(-1), self._target_device, torch.int32))
        return rows.view(*ids.shape, table.shape[-1])


def positions(count: int, device: torch.device = DEVICE) -> torch.Tensor:
    """0 .. count - 1 on the card. The range is made on the CPU; that fallback is known and accepted."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"aten\.arange", category=UserWarning)
        return torch.arange(count, dtype=torch.int32, device=device)
