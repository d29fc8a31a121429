"""Names of ops in one normal form, whatever way they were written: `aten::mm.out`, `torch.ops.aten.mm`, a warning's text.

Normal form is `ns.packet` or `ns.packet.overload`, as torch prints an op; an overload that was not said is None.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

_MODULES = {
    "CrossEntropyLoss": "cross_entropy_loss", "NLLLoss": "nll_loss_nd", "MSELoss": "mse_loss", "Softmax": "softmax.int",
    "LogSoftmax": "log_softmax.int", "BatchNorm1d": "batch_norm", "BatchNorm2d": "batch_norm", "MaxPool2d": "max_pool2d",
    "SiLU": "silu", "GELU": "gelu", "ReLU": "relu", "PReLU": "prelu", "ELU": "elu", "RMSNorm": "rms_norm", "Hardswish": "hardswish",
}  # fmt: skip
_METHODS = {
    "float": "to.dtype", "half": "to.dtype", "bfloat16": "to.dtype", "int": "to.dtype", "long": "to.dtype", "bool": "to.dtype",
    "double": "to.dtype", "type": "to.dtype", "cpu": "to.device", "tolist": "_local_scalar_dense", "masked_fill": "masked_fill",
}  # fmt: skip
_OPERATORS = {
    "getitem": "index.Tensor", "setitem": "index_put_", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "invert": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "pos": "positive",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "float": "item", "int": "item", "bool": "item",
}  # fmt: skip
_FUNCTIONS = {
    "cross_entropy": "cross_entropy_loss", "sdpa": "scaled_dot_product_attention", "nll_loss": "nll_loss_nd",
    "softmax": "softmax.int", "log_softmax": "log_softmax.int",
}  # fmt: skip
_NAME = re.compile(
    r"(?:torch\.)?(?:(?P<module>nn)\.(?P<class>[A-Z]\w*)|(?P<operator>operator)\.(?P<op>\w+?)_?"
    r"|(?P<tensor>Tensor|[a-z])\.(?:__(?:[ri](?=\w{3,}__))?(?P<dunder>\w+?)__|(?P<method>\w+))"
    r"|(?P<family>linalg|fft|special)\.(?P<function>\w+)|(?P<home>F|nn\.functional)\.(?P<inner>\w+))(?:\(.*\))?$"
)


def op_behind(word: str) -> str | None:
    """The aten name of a Python spelling, with an overload where only one can be meant; None where it is no such spelling."""
    if word in {"sdpa", "F.sdpa"}:
        return _FUNCTIONS["sdpa"]
    found = _NAME.fullmatch(word)
    if found is None:
        return None
    part = found.groupdict()
    if part["class"]:
        return _MODULES.get(part["class"]) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part["class"]).lower()
    if part["op"] or part["dunder"]:
        name = part["op"] or part["dunder"]
        return _OPERATORS.get(name, name)
    if part["method"]:
        return _METHODS.get(part["method"]) or (
            part["method"] if part["tensor"] == "Tensor" or part["method"] == "item" else None
        )
    if part["function"]:
        return f"{part['family']}_{part['function']}"
    return _FUNCTIONS.get(part["inner"], part["inner"])


ATEN = "aten"
NAMESPACES = frozenset({ATEN, "prims", "spyre", "prim", "quantized", "vllm", "c10d", "_c10d_functional", "rngprims"})

_COULD_NOT_RUN = re.compile(r"Could not run '(?P<op>[^']+)' with arguments from")
_QUOTED_IN_TEXT = (
    re.compile(r"FallbackWarning:\s*(?P<op>.+?) is falling back to \w+", re.DOTALL),
    re.compile(r"^\s*(?P<op>.+?) is falling back to \w+", re.DOTALL),
    _COULD_NOT_RUN,
    re.compile(r"OpOverload\(op='(?P<op>[^']+)', overload='(?P<overload>[^']+)'\)"),
    re.compile(r"OpOverloadPacket\(op='(?P<op>[^']+)'\)"),
)
_CONVERSION = re.compile(r"conversion from torch\.\w+ to torch\.\w+")
_OPS_ROOT = re.compile(r"^(?:torch\.)?(?:_ops\.)?ops\.")
_PYTHON_HOMES = ("torch.nn.functional.", "nn.functional.", "F.", "torch.Tensor.", "Tensor.", "torch.linalg.", "torch.")
_CALL = re.compile(r"(?<=\w)\([^()]*\)$")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, order=True)
class OpName:
    """An op. `overload` None means the packet, so every overload of it."""

    ns: str
    packet: str
    overload: str | None = None

    @property
    def packet_name(self) -> str:
        """Without the overload."""
        return f"{self.ns}.{self.packet}"

    def __str__(self) -> str:
        return self.packet_name if self.overload is None else f"{self.packet_name}.{self.overload}"

    def bare(self) -> OpName:
        """The packet."""
        return OpName(self.ns, self.packet)


def from_schema_name(text: str) -> OpName | None:
    """`ns::name[.overload]` as registrations write it; without an overload it is the default one."""
    ns, found, rest = text.partition("::")
    packet, _, overload = rest.partition(".")
    if not found or not _WORD.fullmatch(ns) or not _WORD.fullmatch(packet):
        return None
    return OpName(ns, packet, overload or "default")


def from_path(path: str) -> OpName | None:
    """`torch.ops.ns.name[.overload]` (or the same by torch._ops) as an op; None for any other dotted path."""
    if not path.startswith(("torch.ops.", "torch._ops.ops.")):
        return None
    parts = _OPS_ROOT.sub("", path).split(".")
    if len(parts) not in {2, 3}:
        return None
    return OpName(*parts)


def op_in(text: str) -> str:
    """The op that a message speaks of, or the text itself where it is no message."""
    conversion = _CONVERSION.search(text)
    if conversion:
        return "spyre.to_dtype_cpu"
    for pattern in _QUOTED_IN_TEXT:
        found = pattern.search(text)
        if found:
            groups = found.groupdict()
            if pattern is _COULD_NOT_RUN and "." not in groups["op"]:
                return groups["op"] + ".default"  # the dispatcher's way to write it
            return groups["op"] + (f".{groups['overload']}" if groups.get("overload") else "")
    return text


def parse(text: str) -> tuple[OpName, bool] | None:
    """(name, whether its namespace was said) of an op in any spelling; None if it is no name at all."""
    word = op_in(text).strip().strip("'\"`<>,;").strip()
    word = word if _CALL.search(word) else word.strip("()")
    behind = op_behind(word)
    if behind is not None:
        found = _split(ATEN, behind)
        return (found[0], False) if found else None
    word = _CALL.sub("", word.removesuffix(".*").rstrip("."))
    word = word.removesuffix(":") if not word.endswith("::") else word
    if "::" in word:
        ns, _, rest = word.partition("::")
        return _split(ns.split(".")[-1], rest)
    rooted = _OPS_ROOT.sub("", word)
    if rooted != word:
        ns, _, rest = rooted.partition(".")
        return _split(ns, rest) if rest else None
    for home in _PYTHON_HOMES:
        if word.startswith(home):
            found = _split(ATEN, word.removeprefix(home))
            return (found[0], False) if found else None
    ns, _, rest = word.partition(".")
    if rest and (ns in NAMESPACES or rest.count(".") == 1):
        return _split(ns, rest)
    found = _split(ATEN, word)
    return (found[0], False) if found else None


def _split(ns: str, rest: str) -> tuple[OpName, bool] | None:
    packet, dot, overload = rest.partition(".")
    good = _WORD.fullmatch(ns) and _WORD.fullmatch(packet) and (not dot or _WORD.fullmatch(overload))
    return (OpName(ns, packet, overload or None), True) if good else None


def near(name: OpName, known: Iterable[str], *, most: int = 4) -> list[str]:
    """Known packets whose names look like this one, the nearest first."""
    by_packet: dict[str, list[str]] = {}
    for whole in known:
        by_packet.setdefault(whole.partition(".")[2], []).append(whole)
    alike = difflib.get_close_matches(name.packet, by_packet, n=most, cutoff=0.6)
    short = [p for p in by_packet if len(name.packet) <= 3 and len(p) <= 3 and _one_off(p, name.packet)]
    found = [whole for packet in dict.fromkeys((*short, *alike)) for whole in sorted(set(by_packet[packet]))]
    return found[:most]


def _one_off(one: str, other: str) -> bool:
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def name_in_words(text: str) -> str:
    """A text that is no name, short enough for a message."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


_NAMED = re.compile(
    r"(?P<warning>[\w:.]+) is falling back to \w+|(?P<refused>Could not run '[^']+' with arguments from)"
    r"|(?P<overload>OpOverload\(op='[^']+', overload='[^']+'\))|(?<![\w.:/])(?:torch\.ops\.)?(?P<plain>(?:aten|prims|spyre|vllm)(?:::|\.)[a-z_]\w*(?:\.[A-Za-z]\w*)?)"
)


def names_in(text: str) -> dict[str, int]:
    """Every op that the lines of a log name, as written, with the number of lines."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        for name in dict.fromkeys(op_in(f["plain"] or f.group(0)) for f in _NAMED.finditer(line)):
            counts[name] = counts.get(name, 0) + 1
    return counts
