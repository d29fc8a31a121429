"""The text of the scripts: tier 1 with torch and torch_spyre alone, tier 2 inside vLLM's contexts.

Contract of every script: exit status 0 = the fault shows, 1 = it does not, 2 = something else went wrong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from debug_spyre.core.repro.call import Arg, Call, Tensor, Word

MOST_LINES = 20
CONTRACT = "exit status 0: the fault shows; 1: it does not; 2: something else failed"
_VLLM = (
    "from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config",
    "from vllm.forward_context import set_forward_context",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What the script shall show: an error whose text holds `words`, or a result that differs (`words` None)."""

    words: str | None = None
    error_class: str | None = None


def script(
    call: Call,
    fault: Fault,
    *,
    prelude: tuple[Call, ...] = (),
    device: str = "spyre",
    vllm: bool = False,
    inputs: str | None = None,
) -> str:
    """The script's text. `prelude` are calls made before, in the same process.

    `inputs` names a file beside the script with the saved tensors; without it they are read from where they lie.
    """
    writer = _Writer(device)
    head = [f'"""{_title(call, fault)} {CONTRACT}."""', "import torch", "import torch_spyre  # noqa: F401"]
    if vllm:
        head += _VLLM
    body: list[str] = []
    tensors = [t for c in (*prelude, call) for t in c.tensors()]
    if any(t.fill in {"randn", "rand", "randint"} for t in tensors):
        body.append("torch.manual_seed(0)")
    if any(t.file for t in tensors):
        body.append(_loader(tensors, inputs))
    for before in prelude:
        body += writer.names_of(before)
        body.append(writer.on_device(before))
    body += writer.names_of(call)
    body += _error_lines(writer, call, fault) if fault.words is not None else _difference_lines(writer, call)
    if vllm:
        inside = 'config = VllmConfig(device_config=DeviceConfig(device="cpu"))\nwith set_current_vllm_config(config), set_forward_context(None, config):'
        body = [inside, *(f"    {line}" for item in body for line in item.split("\n"))]
    return "\n".join([*head, "", *body]) + "\n"


def count_lines(text: str) -> int:
    """Lines that are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def _title(call: Call, fault: Fault) -> str:
    return f"{call.op} on Spyre {'raises' if fault.words is not None else 'differs from the CPU'};"


def saved_files(*calls: Call) -> tuple[str, ...]:
    """The files that hold saved tensors of these calls, in order of their use."""
    return tuple(dict.fromkeys(t.file for call in calls for t in call.tensors() if t.file))


def _loader(tensors: list[Tensor], inputs: str | None) -> str:
    if inputs is not None:
        return f'saved = torch.load(__file__.rpartition("/")[0] + "/{inputs}", weights_only=True)'
    files = list(dict.fromkeys(t.file for t in tensors if t.file))
    if len(files) == 1:
        return f"saved = torch.load({files[0]!r}, weights_only=True)"
    return f"saved = {{k: v for f in {files!r} for k, v in torch.load(f, weights_only=True).items()}}"


def _difference_lines(writer: _Writer, call: Call) -> list[str]:
    pick = "" if call.output is None else f"[{call.output}]"
    return [
        f"want = {writer.on_host(call)}{pick}",
        f"got = {writer.on_device(call)}{pick}.cpu()",
        "scale = float(want.double().nan_to_num(0, 0, 0).abs().max()) if want.numel() else 0.0",
        f"wrong = ~torch.isclose(got.double(), want.double(), rtol={call.rtol:g}, atol={call.scale_tol:g} * scale, equal_nan=True)",
        'print(f"{int(wrong.sum())} of {wrong.numel()} elements are wrong")',
        "raise SystemExit(0 if wrong.any() else 1)",
    ]


def _error_lines(writer: _Writer, call: Call, fault: Fault) -> list[str]:
    return [
        "try:",
        f"    {writer.on_device(call)}",
        "except Exception as error:",
        '    print(f"{type(error).__name__}: {error}"[:2000])',
        f"    raise SystemExit(0 if {json.dumps(fault.words, ensure_ascii=False)} in str(error) else 2)",
        'print("no error")',
        "raise SystemExit(1)",
    ]


class _Writer:
    """Gives the tensors of the calls their names, in order, and writes the calls with them."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.names: dict[int, str] = {}
        self.made = 0

    def names_of(self, call: Call) -> list[str]:
        lines = []
        for tensor in call.tensors():
            if id(tensor) in self.names:  # the same tensor twice, as in mul(x, x)
                continue
            name = f"{'abcdefghijklmnopqrstuvwxyz'[self.made % 26]}{self.made // 26 or ''}"
            self.made += 1
            self.names[id(tensor)] = name
            lines.append(f"{name} = {make(tensor)}")
        return lines

    def on_host(self, call: Call) -> str:
        return self._call(call, lambda name: f"{name}.clone()" if _writes(call.op) else name, device="cpu")

    def on_device(self, call: Call) -> str:
        return self._call(call, lambda name: f'{name}.to("{self.device}")', device=self.device)

    def _call(self, call: Call, place: object, *, device: str) -> str:
        words = [self._word(a, place, device) for a in call.args]
        words += [f"{k}={self._word(v, place, device)}" for k, v in call.kwargs.items()]
        return f"torch.ops.{call.op}({', '.join(words)})"

    def _word(self, value: Arg, place: object, device: str) -> str:
        if isinstance(value, Tensor):
            return str(place(self.names[id(value)]))  # type: ignore[operator]
        if isinstance(value, Word):
            return f'torch.device("{device}")' if value.text.startswith("torch.device") else value.text
        if isinstance(value, tuple):
            return "[" + ", ".join(self._word(item, place, device) for item in value) + "]"
        if isinstance(value, float):
            return _number(value)
        return repr(value)


def _writes(op: str) -> bool:
    """In-place and out= variants change their argument: the host side works on a copy."""
    name = op.split(".")[1] if "." in op else op
    return name.endswith("_") or op.endswith(("out", "_out"))


def _number(value: float) -> str:
    text = repr(value)
    return f'float("{text}")' if text in {"inf", "-inf", "nan"} else text


def make(tensor: Tensor) -> str:
    """The expression that makes the tensor on the host."""
    if tensor.fill == "file":
        base = f"saved[{tensor.key!r}]"
        return base if tensor.stride is None and not tensor.offset else f"{base}.as_strided({_view(tensor)})"
    if tensor.stride is None and not tensor.offset:
        return _filled(tensor, tensor.shape)
    transposed = _transposed(tensor)
    if transposed:
        return transposed
    return f"{_filled(tensor, (tensor.span,))}.as_strided({_view(tensor)})"


def _view(tensor: Tensor) -> str:
    stride = tensor.stride if tensor.stride is not None else contiguous(tensor.shape)
    return f"{tuple(tensor.shape)}, {tuple(stride)}, {tensor.offset}"


def _transposed(tensor: Tensor) -> str | None:
    """The last two dimensions swapped: the commonest view, and readable as `.mT`."""
    if tensor.offset or tensor.stride is None or len(tensor.shape) < 2:
        return None
    shape = (*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2])
    stride = contiguous(shape)
    if (*stride[:-2], stride[-1], stride[-2]) != tensor.stride:
        return None
    return f"{_filled(tensor, shape)}.mT"


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _filled(tensor: Tensor, shape: tuple[int, ...]) -> str:
    sizes = ", ".join(map(str, shape)) or "()"
    dtype = f"dtype=torch.{tensor.dtype}"
    if tensor.dtype == "bool":
        return f"(torch.rand({sizes}) > 0.5)"
    if not tensor.is_float and not tensor.dtype.startswith("complex"):
        return (
            f"torch.randint({tensor.low}, {max(tensor.high, tensor.low + 1)}, ({sizes}{',' if shape else ''}), {dtype})"
        )
    if tensor.fill == "ones":
        return f"torch.ones({sizes}, {dtype})"
    if tensor.fill == "last" and shape and shape[-1]:
        return f"torch.zeros({sizes}, {dtype}).index_fill_(-1, torch.tensor({shape[-1] - 1}), 1)"
    if tensor.fill == "last":
        return f"torch.ones({sizes}, {dtype})"
    if tensor.fill == "arange":
        count = 1
        for size in shape:
            count *= size
        return f"torch.arange({count}, {dtype}).view({sizes})" if len(shape) != 1 else f"torch.arange({count}, {dtype})"
    if re.fullmatch(r"float8\w*", tensor.dtype):
        return f"torch.{tensor.fill}({sizes}).to(torch.{tensor.dtype})"
    return f"torch.{tensor.fill}({sizes}, {dtype})"
