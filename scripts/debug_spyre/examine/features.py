"""Features of a call: sizes, rows, sticks, strides, offsets, types, values; the words of a condition.

A call is the JSON form that the test process makes and reads (inside/debug_spyre_points.py); `out` are the shapes and
types of its results. A feature is a name with a number, a word or a bool; sizes are in elements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

JsonCall = dict[str, Any]
Value = float | str | bool
Features = dict[str, Value]

STICK_BYTES = 128
BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}
RAGGED = (64, 128, 32)
WORD = re.compile(r"(?P<name>[a-z0-9]+)\((?P<who>\w+)(?:,(?P<dim>-?\d+))?\)")


def tensor_specs(call: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tensor specifications in a call, in order; changing one changes the call."""
    return list(_specs([*call["args"], *(call.get("kwargs") or {}).values()]))


def _specs(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("tensor"), dict):
            yield value["tensor"]
        elif isinstance(value, list):
            yield from _specs(value)


def features(call: Mapping[str, Any], out: Sequence[Mapping[str, Any]], *, dim_place: int | None = None) -> Features:
    """All features of a call. `dim_place`: which positional argument names the dimensions, if one does."""
    every = tensor_specs(call)
    found: Features = {"op": str(call["op"]), "mode": str(call.get("mode") or "eager"), "form": form_of(call)}
    for place, spec in enumerate(every):
        found |= _of_tensor(str(place), spec)
        found |= _of_layout(str(place), spec)
    if out:
        found |= _of_tensor("out", out[0])
    found |= _of_all(every, out)
    found |= _of_arguments(call, every, dim_place)
    if every and out:
        have, left = math.prod(every[0]["shape"]), math.prod(out[0]["shape"])
        found["reduced"] = have // left if left and have % left == 0 else 0
    return found


def packet_of(op: str) -> str:
    """aten.mul of aten.mul_.Tensor: the op without its overload and form."""
    space, _, rest = op.partition(".")
    name = rest.partition(".")[0]
    return f"{space}.{name.rstrip('_') if not name.startswith('_') else name}"


def form_of(call: Mapping[str, Any]) -> str:
    """functional, in-place or out."""
    _, packet, overload = str(call["op"]).split(".")
    if overload == "out" or overload.endswith("_out") or call.get("form") == "out":
        return "out"
    return "in-place" if packet.endswith("_") and not packet.startswith("_") else "functional"


def _of_tensor(who: str, spec: Mapping[str, Any]) -> Features:
    shape = list(spec["shape"])
    last = shape[-1] if shape else 1
    per_stick = max(STICK_BYTES // BYTES.get(str(spec["dtype"]), 2), 1)
    rows = math.prod(shape[:-1])
    found: Features = {f"size({who},{d - len(shape)})": n for d, n in enumerate(shape)}
    found |= {
        f"rank({who})": len(shape),
        f"numel({who})": math.prod(shape),
        f"rows({who})": rows,
        f"sticks({who})": rows * -(-last // per_stick),
        f"dtype({who})": str(spec["dtype"]),
    }
    return found


def _of_layout(who: str, spec: Mapping[str, Any]) -> Features:
    return {
        f"offset({who})": int(spec.get("offset") or 0),
        f"strided({who})": is_strided(spec),
        f"expanded({who})": is_expanded(spec),
        f"host({who})": bool(spec.get("host")),
        f"layout({who})": bool(spec.get("layout")),
    }


def is_strided(spec: Mapping[str, Any]) -> bool:
    """Not contiguous; a dimension of one element has no stride that counts."""
    stride = spec.get("stride")
    if not stride:
        return False
    step = 1
    for size, given in zip(reversed(spec["shape"]), reversed(stride), strict=True):
        if size != 1 and given != step:
            return True
        step *= size
    return False


def is_expanded(spec: Mapping[str, Any]) -> bool:
    """A dimension is repeated without memory of its own."""
    stride = spec.get("stride") or ()
    return any(s == 0 and n > 1 for n, s in zip(spec["shape"], stride, strict=False))


def _of_all(every: Sequence[Mapping[str, Any]], out: Sequence[Mapping[str, Any]]) -> Features:
    """Of all arguments together: a fault may ask for one of them, whichever it is."""
    shapes = [list(s["shape"]) for s in every]
    found: Features = {
        "offset(any)": max((int(s.get("offset") or 0) for s in every), default=0),
        "strided(any)": any(map(is_strided, every)),
        "expanded(any)": any(map(is_expanded, every)),
    }
    for dim in (-1, -2, -3):
        sizes = [shape[dim] for shape in shapes if len(shape) >= -dim]
        if len(shapes) > 1 and sizes:
            found[f"size(any,{dim})"] = max(sizes)
    if len(shapes) > 1:
        found["numel(any)"] = max((math.prod(s) for s in shapes), default=0)
    for modulus in RAGGED:
        found[f"ragged{modulus}(any)"] = any(s and s[-1] != 1 and s[-1] % modulus for s in shapes)
    if out and shapes:
        found["broadcast(any)"] = any(s != list(out[0]["shape"]) for s in shapes)
    return found


def _of_arguments(call: Mapping[str, Any], every: Sequence[Mapping[str, Any]], dim_place: int | None) -> Features:
    found: Features = {}
    number = -1
    for place, value in enumerate(call["args"]):
        if isinstance(value, dict) and "tensor" in value:
            number += 1
            found[f"kind({place})"] = "tensor"
            spec = value["tensor"]
            if not str(spec["dtype"]).startswith(("float", "bfloat", "bool")):
                found[f"highest({number})"] = int(spec.get("high") or 2) - 1
        elif isinstance(value, bool) or value is None or isinstance(value, dict):
            found[f"value({place})"] = str(value.get("word")) if isinstance(value, dict) else str(value)
        elif isinstance(value, (int, float)) and place != dim_place:
            found[f"kind({place})"] = "number"
            found[f"value({place})"] = float(value)
        if place == dim_place and every:
            found |= _reduces(value, len(every[0]["shape"]))
    for key, value in (call.get("kwargs") or {}).items():
        if not isinstance(value, dict) or "word" in value:
            found[f"keyword({key})"] = str(value.get("word")) if isinstance(value, dict) else str(value)
    return found


def _reduces(value: Any, rank: int) -> Features:
    dims = (
        [value] if isinstance(value, int) and not isinstance(value, bool) else value if isinstance(value, list) else []
    )
    named = {d % rank - rank for d in dims if isinstance(d, int) and rank} or set(range(-rank, 0))
    return {f"reduces(0,{d})": d in named for d in range(-rank, 0)}


NAMES = {
    "size": "size", "rank": "number of dimensions", "numel": "number of elements", "rows": "number of rows",
    "sticks": "number of sticks", "dtype": "type", "offset": "storage offset", "highest": "largest index",
    "value": "value", "kind": "kind", "keyword": "keyword",
}  # fmt: skip


def feature_words(name: str) -> str:
    """A feature's name in plain English: the last dimension of argument 0."""
    found = WORD.fullmatch(name)
    if not found:
        return {"reduced": "the number of elements that make one result", "op": "the overload", "form": "the form",
                "mode": "the mode"}.get(name, name)  # fmt: skip
    who, dim = found["who"], found["dim"]
    whose = {"out": "the result", "any": "the largest argument" if found["name"] == "numel" else "some argument"}.get(
        who, f"argument {who}"
    )
    if found["name"] == "size":
        return ("the last dimension" if dim == "-1" else f"dimension {dim}") + f" of {whose}"
    if found["name"] == "keyword":
        return f"the keyword argument {who}"
    return f"the {NAMES.get(found['name'], found['name'])} of {whose}"
