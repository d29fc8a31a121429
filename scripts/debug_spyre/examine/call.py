"""Calls of ops as data: enough to write a script, to make it smaller, and to make them again on another device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from debug_spyre.vocabulary.errors import BadInputError

RTOL = 4e-3  # four units of fp16's last place (2^-10), two of the card's DLF16 (2^-9)
SCALE_TOL = 8e-3


@dataclass(frozen=True, slots=True)
class Layout:
    """How an allocation of this shape lies in the card's memory, where that is not the default of its shape."""

    shape: tuple[int, ...]
    device_size: tuple[int, ...]
    stride_map: tuple[int, ...]
    device_dtype: str
    arrangement: str

    def words(self) -> str:
        """The expression that makes it; its names come from torch_spyre._C."""
        return (
            f"SpyreTensorLayout({list(self.device_size)}, {list(self.stride_map)}, DataFormats.{self.device_dtype}, "
            f"ElementArrangement.{self.arrangement})"
        )


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument. `fill`: randn, rand, ones, arange, last, spread, nan, inf, values, or file (at `file` and `key`).

    `stride` is in elements, None for contiguous; `offset` in elements; `low`/`high` bound the values of an integer tensor.
    `host`: it lies on the CPU in the call, too. `cut`: only the first part of a saved tensor, of this shape.
    """

    shape: tuple[int, ...]
    dtype: str = "float16"
    stride: tuple[int, ...] | None = None
    offset: int = 0
    fill: str = "randn"
    file: str | None = None
    key: str | None = None
    low: int = 0
    high: int = 2
    host: bool = False
    cut: bool = False
    values: tuple[float, ...] = ()
    layout: Layout | None = None

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def span(self) -> int:
        """Elements of storage that the view reaches, offset included."""
        if self.stride is None or not self.numel:
            return self.offset + self.numel
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def is_float(self) -> bool:
        """Values are real numbers."""
        return self.dtype.startswith(("float", "bfloat"))


@dataclass(frozen=True, slots=True)
class Word:
    """A value that is written as a torch word: a dtype, a layout, a memory format, a device."""

    text: str  # "torch.float16"


Arg = Any  # Tensor | Word | int | float | bool | str | None | tuple of these


@dataclass(frozen=True, slots=True)
class Call:
    """`op` is dotted below torch.ops: aten.mean.dim. `output` picks one of several results.

    A result is wrong where it differs by more than `rtol` of the element plus `scale_tol` of the largest element:
    rounding grows with the size of what was summed, not with what is left of it. `exact`: integers and bools, any
    difference is one.
    """

    op: str
    args: tuple[Arg, ...]
    kwargs: dict[str, Arg] = field(default_factory=dict)
    output: int | None = None
    rtol: float = RTOL
    scale_tol: float = SCALE_TOL
    exact: bool = False

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensor arguments in order."""
        return tuple(_walk((*self.args, *self.kwargs.values())))

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> Call:
        """The call with each tensor replaced."""
        return replace(
            self,
            args=tuple(_mapped(a, change) for a in self.args),
            kwargs={k: _mapped(v, change) for k, v in self.kwargs.items()},
        )


@dataclass(frozen=True, slots=True)
class Program:
    """What a script does: the calls of `prelude` in order, then `call`, whose result is judged, up to `repeat` times."""

    call: Call
    prelude: tuple[Call, ...] = ()
    repeat: int = 1

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls, the judged one last."""
        return (*self.prelude, self.call)

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensor arguments in order."""
        return tuple(t for call in self.calls for t in call.tensors())

    def with_calls(self, calls: Sequence[Call]) -> Program:
        """The same with other calls, the judged one last."""
        return replace(self, prelude=tuple(calls[:-1]), call=calls[-1])

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> Program:
        """The program with each tensor of the judged call replaced."""
        return replace(self, call=self.call.map_tensors(change))


def _walk(values: tuple[Arg, ...]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from _walk(value)


def _mapped(value: Arg, change: Callable[[Tensor], Tensor]) -> Arg:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    return value


def arg_to_json(value: Arg) -> Any:
    """JSON form of one argument; inverse of arg_from_json."""
    if isinstance(value, Tensor):
        body = {name: getattr(value, name) for name in Tensor.__slots__}
        return {
            "tensor": {
                **body,
                "shape": list(value.shape),
                "stride": list(value.stride) if value.stride else None,
                "values": list(value.values),
                "layout": asdict(value.layout) if value.layout else None,
            }
        }
    if isinstance(value, Word):
        return {"word": value.text}
    if isinstance(value, tuple):
        return [arg_to_json(item) for item in value]
    return value


def arg_from_json(data: Any) -> Arg:
    """An argument from its JSON form.

    Raises:
        BadInputError: it is of no known form.
    """
    if isinstance(data, list):
        return tuple(arg_from_json(item) for item in data)
    if isinstance(data, dict):
        if "word" in data:
            return Word(str(data["word"]))
        if "tensor" in data:
            body = {k: v for k, v in data["tensor"].items() if k in Tensor.__slots__}
            stride = body.get("stride")
            lists = {"shape": tuple(body["shape"]), "stride": tuple(stride) if stride else None}
            return Tensor(
                **{**body, **lists, "values": tuple(body.get("values") or ()), "layout": _layout(body.get("layout"))}
            )
        raise BadInputError(f"an argument of unknown form: {sorted(data)}", next="debug-spyre shadow")
    return data


def _layout(data: dict[str, Any] | None) -> Layout | None:
    if not data:
        return None
    return Layout(
        shape=tuple(data["shape"]),
        device_size=tuple(data["device_size"]),
        stride_map=tuple(data["stride_map"]),
        device_dtype=str(data["device_dtype"]),
        arrangement=str(data["arrangement"]),
    )


def call_to_json(call: Call) -> dict[str, Any]:
    """JSON form of a call."""
    return {
        "op": call.op,
        "args": [arg_to_json(a) for a in call.args],
        "kwargs": {k: arg_to_json(v) for k, v in call.kwargs.items()},
        "output": call.output,
        "rtol": call.rtol,
        "scale_tol": call.scale_tol,
        "exact": call.exact,
    }


def call_from_json(data: dict[str, Any]) -> Call:
    """Inverse of call_to_json."""
    return Call(
        op=data["op"],
        args=tuple(arg_from_json(a) for a in data["args"]),
        kwargs={k: arg_from_json(v) for k, v in (data.get("kwargs") or {}).items()},
        output=data.get("output"),
        rtol=data.get("rtol", RTOL),
        scale_tol=data.get("scale_tol", SCALE_TOL),
        exact=bool(data.get("exact")),
    )
