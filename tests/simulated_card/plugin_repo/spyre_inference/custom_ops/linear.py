"""Linear layers. Weights are kept transposed on the card, so that a call is a plain matrix product."""

import torch

from spyre_inference.config import maybe_compile
from spyre_inference.custom_ops.utils import convert
from spyre_inference.platform import DEVICE


def linear(x: torch.Tensor, weight_t: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x @ weight_t (+ bias) over the last dimension, leading dimensions folded into rows."""
    rows = x.reshape(-1, x.shape[-1])
    out = torch.mm(rows, weight_t) if bias is None else torch.addmm(bias, rows, weight_t)
    return out.view(*x.shape[:-1], weight_t.shape[-1])


class SpyreLinear(torch.nn.Module):
    """One matrix; `load` takes the usual [out, in] weight from the CPU."""

    def __init__(self, in_features: int, out_features: int, bias: bool = False):
        super().__init__()
        self.weight = torch.zeros(out_features, in_features, dtype=torch.float16)
        self.bias = torch.zeros(out_features, dtype=torch.float16) if bias else None
        self._target_device = DEVICE
        self._placed = None
        self._linear = maybe_compile(linear)

    def load(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        if weight.shape != self.weight.shape:
            raise ValueError(f"weight of {tuple(weight.shape)} for a layer of {tuple(self.weight.shape)}")
        self.weight, self.bias, self._placed = weight, bias, None

    def _place(self):
        """The transposed weight is made contiguous on the CPU: the card refuses to copy it that way."""
        if self._placed is None or self._placed[0].device.type != self._target_device.type:
            weight_t = self.weight.to(torch.float16).t().contiguous()
            self._placed = (
                convert(weight_t, self._target_device),
                convert(self.bias, self._target_device, torch.float16),
            )
        return self._placed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._linear(convert(x, self._target_device, torch.float16), *self._place())


class MergedLinear(SpyreLinear):
    """Several outputs of one input in one product, split afterwards."""

    def __init__(self, in_features: int, sizes: list[int]):
        super().__init__(in_features, sum(sizes))
        self.sizes = sizes

    def forward(self, x: torch.Tensor):
        return torch.split(super().forward(x), self.sizes, dim=-1)
