"""One call of an op, taken down: its arguments on the CPU with their strides, and as data from which it can be made again.

Lives in the test process. Copies never write to the device's tensors.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
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


HOST = {"cpu", "meta"}
EACH = 64 << 20
DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip


def run_folder() -> Path:
    """Where this run's machine files go."""
    results, folder = os.environ.get("DEBUG_SPYRE_RESULTS"), os.environ.get("DEBUG_SPYRE_RUN_FOLDER")
    return Path(results).parent if results else Path(folder) if folder else Path.cwd()


def is_device(value: Any) -> bool:
    """A tensor that lies on the card."""
    return isinstance(value, torch.Tensor) and value.device.type not in HOST


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with each leaf changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return change(value)


class Copier:
    """Copies device tensors to the CPU.

    A strided view is rebuilt from its contiguous base, so that a faulty strided copy can't spoil the reference.
    Tensors that share storage share it in the copy, too.
    """

    def __init__(self) -> None:
        self.bases: dict[int, weakref.ref[torch.Tensor]] = {}

    def saw(self, tensor: torch.Tensor) -> None:
        """Remember a fresh contiguous tensor as the base of later views."""
        if tensor.is_contiguous() and not tensor.storage_offset() and tensor.numel():
            if len(self.bases) > 4096:
                self.bases = {key: ref for key, ref in self.bases.items() if ref() is not None}
            self.bases[tensor.untyped_storage().data_ptr()] = weakref.ref(tensor)

    def base_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A contiguous tensor over the same storage from its start, of the same type."""
        known = self.bases.get(tensor.untyped_storage().data_ptr())
        for base in (tensor._base, known() if known else None):
            if base is None or base is tensor or base.dtype != tensor.dtype or base.storage_offset():
                continue
            if base.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr() or not base.is_contiguous():
                continue
            if _reach(tensor) <= base.numel():
                return base
        return None

    def copies(self, value: Any) -> Any:
        """Arguments on the CPU."""
        shared: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        single: dict[int, torch.Tensor] = {}

        def change(item: Any) -> Any:
            if isinstance(item, torch.device):
                return torch.device("cpu") if item.type not in HOST else item
            if not isinstance(item, torch.Tensor):
                return item
            if id(item) not in single:
                single[id(item)] = self._copy(item, shared)
            return single[id(item)]

        return mapped(value, change)

    def _copy(self, tensor: torch.Tensor, shared: dict[tuple[int, torch.dtype], torch.Tensor]) -> torch.Tensor:
        if tensor.device.type in HOST:
            return tensor.detach().clone() if tensor.device.type == "cpu" else tensor
        base = self.base_of(tensor)
        if base is None:
            return _resolved(tensor).cpu().clone()
        key = tensor.untyped_storage().data_ptr(), tensor.dtype
        if key not in shared:
            shared[key] = _resolved(base).cpu().clone()
        return shared[key].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg() if tensor.is_complex() or tensor.is_neg() else tensor.detach()


def _reach(tensor: torch.Tensor) -> int:
    if not tensor.numel():
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return int(tensor.storage_offset() + 1 + sum((n - 1) * s for n, s in steps))


def name_of(op: Any) -> str:
    """aten.mean.dim."""
    return f"{op.namespace}.{op.overloadpacket.__name__}.{op._overloadname}"


def described(value: Any, key: str, kept: dict[str, torch.Tensor], file: str, given: Any = None) -> Any:
    """An argument as data; tensors go to `kept` by key (the form that `repro` and `sweep` read).

    `value` is its copy on the CPU, `given` what the op got: only that tells what lay on the CPU from the start.
    """
    if isinstance(value, torch.Tensor):
        contiguous = value.is_contiguous() and not value.storage_offset()
        small = value.numel() * value.element_size() <= EACH
        if small:
            kept[key] = value
        low, high = _bounds(value)
        body = {
            "shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch."),
            "stride": None if contiguous else list(value.stride()), "offset": value.storage_offset(),
            "fill": "file" if small else "randn", "file": file if small else None, "key": key if small else None,
            "low": low, "high": high, "host": isinstance(given, torch.Tensor) and given.device.type == "cpu",
        }  # fmt: skip
        layout = recorded_layout(given) if is_device(given) else None
        return {"tensor": {**body, "layout": layout} if layout else body}
    if isinstance(value, (list, tuple)):
        other = given if isinstance(given, (list, tuple)) else [None] * len(value)
        pairs = zip(value, other, strict=True)
        return [described(item, f"{key}.{place}", kept, file, there) for place, (item, there) in enumerate(pairs)]
    if isinstance(value, torch.device):
        there = given if isinstance(given, torch.device) else value
        return {"word": f'torch.device("{there.type}")'}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"word": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"word": f"None  # {type(value).__name__}"}


def call_of(op: str, host: Any, given: Any, kept: dict[str, torch.Tensor], file: str) -> dict[str, Any]:
    """One call as data: (args, kwargs) on the CPU, and as the op got them."""
    args, kwargs = host
    return {
        "op": op,
        "args": [described(v, f"arg{n}", kept, file, g) for n, (v, g) in enumerate(zip(args, given[0], strict=True))],
        "kwargs": {key: described(value, key, kept, file, given[1].get(key)) for key, value in kwargs.items()},
    }


def _bounds(value: torch.Tensor) -> tuple[int, int]:
    if value.is_floating_point() or value.is_complex() or not value.numel() or value.dtype is torch.bool:
        return 0, 2
    return int(value.min()), int(value.max()) + 1


def save_suspect(
    folder: Path, facts: dict[str, Any], host: Any, given: Any, results: dict[str, torch.Tensor]
) -> dict[str, Any]:
    """Write call.json (returned), inputs.pt (a strided input as its storage) and tensors.safetensors (contiguous).

    `facts["judged"]` is what the call's judgement needs: output, exact, rtol, scale_tol (examine/call.py).
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, torch.Tensor] = {}
    call = {**call_of(facts["op"], host, given, kept, str(folder / "inputs.pt")), **facts.pop("judged")}
    torch.save({key: _whole(value) for key, value in kept.items()}, folder / "inputs.pt")
    named = {f"input.{key}": value for key, value in kept.items()} | results
    write_safetensors(folder / "tensors.safetensors", named)
    data = {"schema": 1, **facts, "call": call}
    write_json(folder / "call.json", data)
    return data


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """What `as_strided` with the recorded strides and offset can be applied to."""
    if tensor.is_contiguous() and not tensor.storage_offset():
        return tensor.clone()
    return tensor.as_strided((_reach(tensor),), (1,), 0).clone()


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """Little-endian bytes of a CPU tensor."""
    plain = tensor.detach().contiguous().reshape(-1)
    if not plain.numel():
        return b""
    data = plain.view(torch.uint8)
    if os.sys.byteorder == "big" and plain.element_size() > 1:  # type: ignore[attr-defined]
        data = data.reshape(-1, plain.element_size()).flip(1).contiguous().reshape(-1)
    return bytes(data.numpy().tobytes()) if _has_numpy() else bytes(data.tolist())


def _has_numpy() -> bool:
    try:
        import numpy  # noqa: F401, ICN001
    except ImportError:
        return False
    return True


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Tensors of known types; others are left out."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    place = 0
    for key, tensor in tensors.items():
        dtype = DTYPES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is None or tensor.numel() * tensor.element_size() > EACH:
            continue
        raw = raw_bytes(tensor)
        header[key] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [place, place + len(raw)]}
        place += len(raw)
        parts.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    _replace(path, len(text).to_bytes(8, "little") + text + b"".join(parts))


def write_json(path: Path, data: Any) -> None:
    """Write and rename, so that a kill leaves the old file or the new one."""
    _replace(path, json.dumps(data, ensure_ascii=False).encode())


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(data)
    os.replace(temporary, path)
