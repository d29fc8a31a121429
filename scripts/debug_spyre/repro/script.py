"""The text of the scripts: tier 1 with torch and torch_spyre alone, tier 2 inside vLLM's contexts.

Contract of every script: exit status 0 = the fault shows, 3 = it does not, any other = something else went wrong
(an uncaught error ends Python with 1, so that 1 can't mean "does not show").
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from debug_spyre.examine.call import Arg, Call, Program, Tensor, Word
from debug_spyre.repro.writing import by_seed, number, written

MOST_LINES = 20
WIDTH = 88  # the line length that a formatter keeps unless told otherwise (ruff, black)
Placing = Callable[[Tensor], str]
SHOWN, NOT_SHOWN = 0, 3
CONTRACT = f"exit status 0: the fault shows; {NOT_SHOWN}: it does not; other: something else failed"
_VLLM = (
    "from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config",
    "from vllm.forward_context import set_forward_context",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What the script shall show: an error whose text holds `words`, a result that differs, or a fallback to the CPU.

    `kinds` says in which way the result is wrong (inside/debug_spyre_trial.py); a smaller call must share one of them.
    """

    words: str | None = None
    error_class: str | None = None
    kinds: tuple[str, ...] = ()
    fallback: bool = False

    @property
    def is_difference(self) -> bool:
        """A result that differs: the values decide whether it is seen."""
        return self.words is None and self.error_class is None and not self.fallback


def script(
    program: Program, fault: Fault, *, device: str = "spyre", vllm: bool = False, inputs: str | None = None
) -> str:
    """The script's text.

    `inputs` names a file beside the script with the saved tensors; without it they are read from where they lie.
    """
    writer = _Writer(device)
    head = [f'"""{_title(program.call, fault)} {CONTRACT}."""']
    head += ["import warnings", ""] if fault.fallback else []
    head += ["import torch", "import torch_spyre  # noqa: F401"]
    if device == "spyre" and any(t.layout for t in program.tensors()):
        head.append("from torch_spyre._C import DataFormats, ElementArrangement, SpyreTensorLayout")
    if vllm:
        head += _VLLM
    body: list[str] = []
    tensors = program.tensors()
    if device == "spyre" and any(t.layout for t in tensors):
        body.append('torch.zeros(1).to("spyre")  # starts the runtime')
    if any(t.fill in {"randn", "rand", "randint"} for t in tensors):
        body.append("torch.manual_seed(0)")
    if any(t.file for t in tensors):
        body.append(_loader(tensors, inputs))
    body += writer.before(program.prelude)
    body += writer.names_of(program.call)
    body += _showing(writer, program, fault)
    if vllm:
        inside = 'config = VllmConfig(device_config=DeviceConfig(device="cpu"))\nwith set_current_vllm_config(config), set_forward_context(None, config):'
        body = [inside, *(f"    {line}" for item in body for line in item.split("\n"))]
    return "\n".join([*head, "", *body]) + "\n"


def host_script(call: Call) -> str:
    """Only the call on the host, with values by seed: its legality is tried on the meta device."""
    call = call.map_tensors(lambda t: by_seed(t) if t.fill == "file" else t)
    writer = _Writer("meta")
    return "\n".join(["import torch", *writer.names_of(call), f"want = {writer.on_device(call)}"]) + "\n"


def storage_script(program: Program) -> str:
    """The storages of the saved tensors that a script needs, by their place among all tensors, in the dict `wanted`."""
    tensors = program.tensors()
    places = [n for n, t in enumerate(tensors) if t.fill == "file"]
    words = ", ".join(f"{n}: {written(tensors[n]).base}" for n in places)
    return "\n".join(["import torch", _loader(tensors, None), f"wanted = {{{words}}}"]) + "\n"


def count_lines(text: str) -> int:
    """Lines that are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def _title(call: Call, fault: Fault) -> str:
    if fault.fallback:
        return f"{call.op} on Spyre falls back to the CPU;"
    return f"{call.op} on Spyre {'raises' if fault.words is not None else 'differs from the CPU'};"


def saved_files(program: Program) -> tuple[str, ...]:
    """The files that hold saved tensors, in order of their use."""
    return tuple(dict.fromkeys(t.file for t in program.tensors() if t.file))


def _loader(tensors: Sequence[Tensor], inputs: str | None) -> str:
    if inputs is not None:
        return f'saved = torch.load(__file__.rpartition("/")[0] + "/{inputs}", weights_only=True)'
    files = list(dict.fromkeys(t.file for t in tensors if t.file))
    if len(files) == 1:
        return f"saved = torch.load({files[0]!r}, weights_only=True)"
    return f"saved = {{k: v for f in {files!r} for k, v in torch.load(f, weights_only=True).items()}}"


def _showing(writer: _Writer, program: Program, fault: Fault) -> list[str]:
    if fault.fallback:
        return _fallback_lines(writer, program.call)
    if fault.words is not None:
        return _error_lines(writer, program.call, fault)
    if "form" in fault.kinds:
        return _form_lines(writer, program.call)
    return _difference_lines(writer, program)


def _form_lines(writer: _Writer, call: Call) -> list[str]:
    pick = "" if call.output is None else f"[{call.output}]"
    return [
        f"want = {writer.on_host(call)}{pick}",
        f"got = {writer.on_device(call)}{pick}.cpu()",
        'print(f"{got.dtype} {tuple(got.shape)} instead of {want.dtype} {tuple(want.shape)}")',
        f"raise SystemExit(0 if (got.dtype, got.shape) != (want.dtype, want.shape) else {NOT_SHOWN})",
    ]


def _difference_lines(writer: _Writer, program: Program) -> list[str]:
    call = program.call
    pick = "" if call.output is None else f"[{call.output}]"
    want = f"want = {writer.on_host(call)}{pick}"
    got = [f"got = {writer.on_device(call)}{pick}.cpu()", *_comparison(call)]
    scale = "scale = float(want.double().nan_to_num(0, 0, 0).abs().max()) if want.numel() else 0.0"
    lines = [want] if call.exact else [want, scale]
    if program.repeat > 1:
        lines += [f"for number in range({program.repeat}):", *(f"    {line}" for line in got)]
        lines += ["    if wrong.any():", "        break"]
        told = "{int(wrong.sum())} of {wrong.numel()} elements are wrong in call {number + 1}"
    else:
        lines += got
        told = "{int(wrong.sum())} of {wrong.numel()} elements are wrong"
    values = "got {got[wrong][:3].tolist()}, wanted {want[wrong][:3].tolist()}"
    return [*lines, f'print(f"{told}: {values}")', f"raise SystemExit(0 if wrong.any() else {NOT_SHOWN})"]


def _comparison(call: Call) -> list[str]:
    if call.exact:
        return ["wrong = got != want"]
    return [
        f"rtol, atol = {call.rtol:g}, {call.scale_tol:g} * scale",
        "wrong = ~torch.isclose(got.double(), want.double(), rtol, atol, equal_nan=True)",
    ]


def _error_lines(writer: _Writer, call: Call, fault: Fault) -> list[str]:
    return [
        f"{writer.on_host(call)}  # the CPU carries it out",
        "try:",
        f"    {writer.on_device(call)}",
        "except Exception as error:",
        '    print(f"{type(error).__name__}: {error}"[:2000])',
        f"    raise SystemExit(0 if {json.dumps(fault.words, ensure_ascii=False)} in str(error) else 2)",
        'print("no error")',
        f"raise SystemExit({NOT_SHOWN})",
    ]


def _fallback_lines(writer: _Writer, call: Call) -> list[str]:
    return [
        writer.on_host(call),
        "with warnings.catch_warnings(record=True) as caught:",
        '    warnings.simplefilter("always")',
        f"    {writer.on_device(call)}",
        'fell = [w for w in caught if w.category.__name__ == "FallbackWarning"]',
        'print("\\n".join(str(w.message) for w in fell) or "no fallback")',
        f"raise SystemExit(0 if fell else {NOT_SHOWN})",
    ]


class _Writer:
    """Gives the tensors of the judged call their names, in order, and writes the calls with them."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.names: dict[int, str] = {}
        self.made = 0

    def names_of(self, call: Call) -> list[str]:
        """A line for each storage."""
        lines = []
        for tensor in call.tensors():
            if id(tensor) in self.names:  # the same tensor twice, as in mul(x, x)
                continue
            name = f"{'abcdefghijklmnopqrstuvwxyz'[self.made % 26]}{self.made // 26 or ''}"
            self.made += 1
            self.names[id(tensor)] = name
            lines.append(f"{name} = {written(tensor).base}")
        return lines

    def before(self, prelude: tuple[Call, ...]) -> list[str]:
        """The earlier calls; equal ones in a row become a loop."""
        lines: list[str] = []
        for text, group in itertools.groupby(self._call(call, self._inline, self.device) for call in prelude):
            times = len(list(group))
            lines += [text] if times == 1 else [f"for _ in range({times}):", f"    {text}"]
        return lines

    def _inline(self, tensor: Tensor) -> str:
        words = written(tensor)
        return f"{words.base}{'' if tensor.host else self._moved(tensor)}{words.view}"

    def on_host(self, call: Call) -> str:
        """The call on the CPU."""
        copied = ".clone()" if _writes(call.op) else ""
        return self._call(call, lambda t: f"{self.names[id(t)]}{copied}{written(t).view}", "cpu")

    def on_device(self, call: Call) -> str:
        """The call on the card."""

        def place(tensor: Tensor) -> str:
            return f"{self.names[id(tensor)]}{'' if tensor.host else self._moved(tensor)}{written(tensor).view}"

        return self._call(call, place, self.device)

    def _moved(self, tensor: Tensor) -> str:
        if tensor.layout is not None and self.device == "spyre":
            return f'.to("{self.device}", device_layout={tensor.layout.words()})'
        return f'.to("{self.device}")'

    def _call(self, call: Call, place: Placing, device: str) -> str:
        words = [self._word(a, place, device) for a in call.args]
        words += [f"{k}={self._word(v, place, device)}" for k, v in call.kwargs.items()]
        return f"torch.ops.{call.op}({', '.join(words)})"

    def _word(self, value: Arg, place: Placing, device: str) -> str:
        if isinstance(value, Tensor):
            return place(value)
        if isinstance(value, Word):
            return _device(value.text, device) if value.text.startswith("torch.device") else value.text
        if isinstance(value, tuple):
            return "[" + ", ".join(self._word(item, place, device) for item in value) + "]"
        return number(value) if isinstance(value, float) else repr(value)


def _writes(op: str) -> bool:
    """In-place and out= variants change their argument: the host side works on a copy."""
    name = op.split(".")[1] if "." in op else op
    return name.endswith("_") or op.endswith(("out", "_out"))


def _device(text: str, device: str) -> str:
    """Where the result shall lie: a copy to the host stays one, except where no values exist."""
    return text if "cpu" in text and device != "meta" else f'torch.device("{device}")'
