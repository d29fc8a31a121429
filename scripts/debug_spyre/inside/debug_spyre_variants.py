"""Variants of a call: its other forms, and one-hot inputs that tell which elements of a sum count."""

from __future__ import annotations

from typing import Any

import torch
from debug_spyre_points import device_name, operation  # type: ignore[import-not-found]


def argument_place(op: str, name: str) -> int | None:
    """Where the op takes that argument by position."""
    for place, argument in enumerate(operation(op)._schema.arguments):
        if argument.name == name and not argument.kwarg_only:
            return place
    return None


def missing_indices(packet: str, size: int) -> list[int] | None:
    """Indices along the summed dimension that do not count."""
    eye = torch.eye(size, dtype=torch.float16).to(device_name())
    try:
        if packet == "sum":
            counts = torch.ops.aten.sum.dim_IntList(eye, [-1], True)
        elif packet == "mean":
            counts = torch.ops.aten.mean.dim(eye, [-1], True) * float(size)
        elif packet == "bmm":
            counts = torch.bmm(eye[None], torch.ones(1, size, 64, dtype=torch.float16).to(device_name()))[0]
        else:
            ones = torch.ones(size, 64, dtype=torch.float16).to(device_name())
            counts = torch.mm(eye, ones) if packet != "addmm" else torch.addmm(ones[:1], eye, ones) - 1
    except Exception:  # noqa: BLE001  then it is not known
        return None
    column = counts.cpu().float().reshape(size, -1)[:, 0]
    return [int(i) for i in (column < 0.5).nonzero().reshape(-1)]


def runs(indices: list[int]) -> list[list[int]]:
    """[start, stop) of consecutive indices."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])
    return runs


def siblings(op: Any) -> list[tuple[str, str, Any]]:
    """(name, form, transform) of the out= and in-place overloads with the same arguments, and the functional one."""
    packet = op.overloadpacket
    name = packet.__name__
    plain = name.rstrip("_") if name.endswith("_") and not name.startswith("_") else name
    types = [str(a.type) for a in op._schema.arguments if not a.is_out]
    found = []
    for base, form in ((plain, "functional"), (plain, "out="), (plain + "_", "in-place")):
        family = getattr(torch.ops.aten, base, None)
        for overload in family.overloads() if family is not None else ():
            other = getattr(family, overload)
            arguments = other._schema.arguments
            if [str(a.type) for a in arguments if not a.is_out] != types or (
                form == "functional"
            ) == other._schema.is_mutable:
                continue
            if (form == "out=") == any(a.is_out for a in arguments):
                found.append((f"aten.{base}.{overload}", form, _with_out if form == "out=" else None))
                break
            if form != "out=" and not any(a.is_out for a in arguments):
                found.append((f"aten.{base}.{overload}", form, None))
                break
    return found


def _with_out(given: Any) -> Any:
    args, kwargs = given
    first = next(v for v in args if isinstance(v, torch.Tensor) or (isinstance(v, list) and v))
    like = first if isinstance(first, torch.Tensor) else first[0]
    return args, {**kwargs, "out": torch.empty(0, dtype=like.dtype, device=like.device)}
