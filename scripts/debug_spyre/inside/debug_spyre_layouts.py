"""How a tensor lies in the card's memory: recorded where it is not the default of its shape, and made again.

`Module.to` gives weights a transposed layout (torch-spyre, 2026-08): a call rebuilt without it is another call. A layout
belongs to the whole allocation, so the shape of that is recorded beside it.
"""

from __future__ import annotations

from typing import Any

import torch


def recorded_layout(given: Any) -> dict[str, Any] | None:
    """The layout of a device tensor's allocation as data; None where it is the default one, or the backend has none."""
    base = given._base if getattr(given, "_base", None) is not None else given
    read = getattr(base, "device_tensor_layout", None)
    if read is None:
        return None
    try:
        layout = read()
        if layout is None:
            return None
        found = _described(layout)
        kind = type(layout)
        if found == _described(kind(list(base.shape), base.dtype)):
            return None
        return {"shape": list(base.shape), **found}
    except (RuntimeError, TypeError, ValueError, AttributeError):  # a version that makes layouts in another way
        return None


def _described(layout: Any) -> dict[str, Any]:
    return {
        "device_size": [int(n) for n in layout.device_size],
        "stride_map": [int(n) for n in layout.stride_map],
        "device_dtype": str(layout.device_dtype.name),
        "arrangement": str(layout.element_arrangement.name),
    }


def with_layout(values: torch.Tensor, told: dict[str, Any], device: str) -> torch.Tensor:
    """The allocation on the card, laid out as recorded; `values` are its first elements in order."""
    from torch_spyre._C import DataFormats, ElementArrangement, SpyreTensorLayout

    torch.zeros(1).to(device)  # starts the runtime, which a transfer with a layout of its own does not
    base = torch.zeros(told["shape"], dtype=values.dtype)
    flat = values.reshape(-1)[: base.numel()]
    base.reshape(-1)[: flat.numel()] = flat
    layout = SpyreTensorLayout(
        told["device_size"], told["stride_map"], getattr(DataFormats, told["device_dtype"]),
        getattr(ElementArrangement, told["arrangement"]),
    )  # fmt: skip
    moved: torch.Tensor = base.to(device, device_layout=layout)
    return moved
