"""Moving tensors to and from the card.

A change of dtype together with a change of device is not trusted: the dtype changes on the CPU, on either way.
"""

import torch

CPU = torch.device("cpu")


def convert(tensor: torch.Tensor | None, device: torch.device | str | None = None, dtype: torch.dtype | None = None):
    """The tensor with this device and dtype; None passes through, a tensor that has both already comes back unchanged."""
    if tensor is None:
        return None
    device = torch.device(device) if device is not None else tensor.device
    dtype = dtype or tensor.dtype
    if tensor.dtype != dtype:
        tensor = tensor.to(CPU).to(dtype)
    return tensor if tensor.device.type == device.type else tensor.to(device)


def pad_to(tensor: torch.Tensor, dim: int, size: int, value: float = 0.0) -> torch.Tensor:
    """The tensor with zeros (or `value`) behind it up to `size` along `dim`; runs where the tensor is."""
    missing = size - tensor.shape[dim]
    if missing < 0:
        raise ValueError(f"cannot pad a dimension of {tensor.shape[dim]} to {size}")
    if not missing:
        return tensor
    after = [0, 0] * (tensor.dim() - 1 - dim % tensor.dim())
    return torch.constant_pad_nd(tensor, [*after, 0, missing], value)


def round_up(size: int, multiple: int) -> int:
    """The next multiple."""
    return -(-size // multiple) * multiple
