"""The tensors that a failed comparison saw, taken from the frames' locals and written in the safetensors format.

Standard library only: torch is used where the test has loaded it, never imported. 64 MB a tensor, a budget a session.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EACH = 64 * 1024 * 1024
SESSION = 1024 * 1024 * 1024
MAX_PAIRS = 8
MAX_OTHERS = 16
_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
}  # fmt: skip
_ACTUAL = ("actual", "act", "output", "out", "result", "res", "got", "spyre_out", "device_out", "y", "a", "x")
_EXPECTED = ("expected", "exp", "reference", "ref", "golden", "want", "cpu_out", "desired", "target", "b")
_TEST_LIKE = re.compile(r"(^|[/\\])(test_[^/\\]*|[^/\\]*_test|conftest)\.py$")


class Keeper:
    """Keeps pairs of compared tensors below `folder`/tensors until the budget is used up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left = int(os.environ.get("DEBUG_SPYRE_TENSOR_BUDGET") or SESSION)
        self.number = 0

    def keep(self, item: Any, error: BaseException, compared: bool) -> dict[str, Any] | None:
        """Write what the failed comparison saw; the fields of a `tensors` line, or None where it saw none."""
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "Tensor") or not (compared or isinstance(error, AssertionError)):
            return None
        # only after a failure: each catch_warnings starts Python's "once" bookkeeping anew
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frames = _frames(error)
            pairs, shown = _compared(torch, frames)
            if not pairs and not compared:
                return None
            others = _selectors(torch, frames, item, {id(t) for pair in pairs for t in pair[1:3]})
            return self._write(torch, item.nodeid, pairs, others, shown)

    def _write(
        self, torch: Any, nodeid: str, pairs: list[Any], others: list[tuple[str, Any]], shown: dict[str, Any]
    ) -> dict[str, Any] | None:
        self.number += 1
        name = f"tensors/{self.number:03d}-{re.sub(r'[^A-Za-z0-9]+', '-', nodeid)[-60:].strip('-')}.safetensors"
        entries: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
        omitted: list[dict[str, str]] = []
        written_pairs, written_others = [], []
        for number, (names, actual, expected) in enumerate(pairs):
            keys = f"actual{number}", f"expected{number}"
            data = [self._data(torch, t, key, omitted) for t, key in zip((actual, expected), keys, strict=True)]
            if data[0] is not None and data[1] is not None:
                entries[keys[0]], entries[keys[1]] = data[0], data[1]
                written_pairs.append({"file": name, "actual": keys[0], "expected": keys[1], "names": names, **shown})
        for number, (label, tensor) in enumerate(others):
            found = self._data(torch, tensor, label, omitted)
            if found is not None:
                entries[f"other{number}"] = found
                written_others.append({"file": name, "key": f"other{number}", "name": label})
        if entries:
            (self.folder / "tensors").mkdir(exist_ok=True)
            _write_safetensors(self.folder / name, entries, {"nodeid": nodeid})
        elif not omitted:
            return None
        return {"pairs": written_pairs, "others": written_others, "omitted": omitted}

    def _data(
        self, torch: Any, tensor: Any, label: str, omitted: list[dict[str, str]]
    ) -> tuple[str, tuple[int, ...], bytes] | None:
        """dtype, shape and bytes; a reason in `omitted` where they can't be had."""
        try:
            dtype = _DTYPES.get(str(tensor.dtype).removeprefix("torch."))
            size = tensor.numel() * tensor.element_size()
            if dtype is None or tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor":
                reason = f"{tensor.dtype} on {tensor.device} has no bytes to keep"
            elif size > EACH:
                reason = f"{size} bytes are more than {EACH}"
            elif size > self.left:
                reason = f"the session's budget for tensors is used up ({self.left} bytes left, {size} needed)"
            else:
                self.left -= size
                return dtype, tuple(int(n) for n in tensor.shape), _bytes_of(torch, tensor, size)
        except Exception as error:  # noqa: BLE001  a broken device: the rest is still worth keeping
            reason = f"{type(error).__name__}: {str(error)[:200]}"
        omitted.append({"name": label, "reason": reason})
        return None


def _frames(error: BaseException) -> list[types.FrameType]:
    """The frames of the exception and of what caused it, innermost first, the harness left out."""
    found: list[types.FrameType] = []
    link: BaseException | None = error
    for _ in range(4):
        if link is None:
            break
        frames = []
        trace = link.__traceback__
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        found += [f for f in reversed(frames) if "/_pytest/" not in f.f_code.co_filename and f not in found]
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return found


def _compared(torch: Any, frames: list[types.FrameType]) -> tuple[list[Any], dict[str, Any]]:
    """[names, actual, expected] of each compared pair, and the tolerances of the frame that compared them."""
    own = [f for f in frames if f.f_code.co_name == "assert_close" and "actual" in f.f_locals]
    for frame in own:
        values = frame.f_locals
        pairs = list(_matched(torch, ["actual", "expected"], values.get("actual"), values.get("expected")))
        if pairs:
            return pairs[:MAX_PAIRS], _tolerances(values)
    for frame in frames:
        if "torch/testing" in frame.f_code.co_filename or "/torch/" in frame.f_code.co_filename:
            continue
        pair = _pair_of_frame(torch, frame)
        if pair:
            return [pair], _tolerances(frame.f_locals)
    return [], {"rtol": None, "atol": None}


def _matched(torch: Any, names: list[str], actual: Any, expected: Any) -> Iterator[list[Any]]:
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        yield [names, actual, expected]
    elif isinstance(actual, dict) and isinstance(expected, dict):
        for key in actual:
            if key in expected:
                yield from _matched(torch, [f"{n}[{key!r}]" for n in names], actual[key], expected[key])
    elif isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        for number, (one, other) in enumerate(zip(actual, expected, strict=False)):
            yield from _matched(torch, [f"{n}[{number}]" for n in names], one, other)


def _pair_of_frame(torch: Any, frame: types.FrameType) -> list[Any] | None:
    """A helper's own pair: by usual names, else the first two arguments or locals of one shape."""
    arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    tensors = {
        name: value
        for name, value in frame.f_locals.items()
        if isinstance(value, torch.Tensor)
        and not name.startswith("@")
        and value.dim()
        and (value.is_floating_point() or value.is_complex())
    }
    ordered = [n for n in arguments if n in tensors] + [n for n in tensors if n not in arguments]
    actual = next((n for n in _ACTUAL if n in tensors), None)
    expected = next((n for n in _EXPECTED if n in tensors), None)
    if actual and expected and tensors[actual].shape == tensors[expected].shape:
        return [[actual, expected], tensors[actual], tensors[expected]]
    for position, one in enumerate(ordered):
        for other in ordered[position + 1 :]:
            if tensors[one] is not tensors[other] and tensors[one].shape == tensors[other].shape:
                first, second = (other, one) if one in _EXPECTED else (one, other)
                return [[first, second], tensors[first], tensors[second]]
    return None


def _tolerances(values: dict[str, Any]) -> dict[str, Any]:
    def number(name: str) -> float | None:
        value = values.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    return {"rtol": number("rtol"), "atol": number("atol")}


def _selectors(torch: Any, frames: list[types.FrameType], item: Any, taken: set[int]) -> list[tuple[str, Any]]:
    """Masks, indices, selectors: integer and bool tensors of the test's own frames."""
    path = str(getattr(item, "path", ""))
    found: list[tuple[str, Any]] = []
    for frame in frames:
        if frame.f_code.co_filename != path and not _TEST_LIKE.search(frame.f_code.co_filename):
            continue
        for name, value in frame.f_locals.items():
            if name.startswith("@"):
                continue  # made by pytest's assertion rewriting
            for label, tensor in _tensors_in(torch, name, value):
                plain = not tensor.is_floating_point() and not tensor.is_complex()
                if plain and id(tensor) not in taken and len(found) < MAX_OTHERS:
                    taken.add(id(tensor))
                    found.append((label, tensor))
    return found


def _tensors_in(torch: Any, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        yield from ((f"{name}[{k!r}]", v) for k, v in list(value.items())[:32] if isinstance(v, torch.Tensor))
    elif isinstance(value, list | tuple):
        yield from ((f"{name}[{n}]", v) for n, v in enumerate(value[:32]) if isinstance(v, torch.Tensor))
    elif hasattr(type(value), "__dataclass_fields__"):
        for field in type(value).__dataclass_fields__:
            inner = getattr(value, field, None)
            if isinstance(inner, torch.Tensor):
                yield f"{name}.{field}", inner


def _bytes_of(torch: Any, tensor: Any, size: int) -> bytes:
    with torch.no_grad():
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        if sys.byteorder == "big" and plain.element_size() > 1:
            plain = plain.view(torch.uint8).reshape(-1, tensor.element_size()).flip(1).contiguous()
        return ctypes.string_at(plain.data_ptr(), size) if size else b""


def _write_safetensors(
    path: Path, entries: dict[str, tuple[str, tuple[int, ...], bytes]], notes: dict[str, str]
) -> None:
    """Eight bytes of header length, the JSON header padded to eight, then the data, little-endian."""
    header: dict[str, Any] = {"__metadata__": notes}
    start = 0
    for key, (dtype, shape, data) in entries.items():
        header[key] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, start + len(data)]}
        start += len(data)
    text = json.dumps(header, ensure_ascii=True).encode()
    text += b" " * (-len(text) % 8)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in entries.values():
            stream.write(data)
