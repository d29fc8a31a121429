"""One point of a sweep: a call with its sizes, views and types changed, made on the card and on the CPU and compared."""

from __future__ import annotations

import copy
import itertools
import math
import warnings
import zlib
from typing import Any

import torch
from debug_spyre_calls import (  # type: ignore[import-not-found]
    is_device,
    mapped,
    tensors_in,
    with_layout,
)
from debug_spyre_judging import SUMS, difference, pattern_of  # type: ignore[import-not-found]
from debug_spyre_ways import way_round  # type: ignore[import-not-found]

MOST_ELEMENTS = 1 << 22
REDUCTIONS = {"sum", "mean", "amax", "amin", "prod", "linalg_vector_norm", "var", "std", "any", "all", "max", "min"}
MATMULS = {"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "mv", "dot"}
LINEAR = {"sum", "mean"} | MATMULS  # a large element shows in proportion, and is never squared
SPIKE, MOST_SPIKES = 24.0, 8192.0
PROBE, LONGER, MOST_ONES = 97, 89, 6


def operation(name: str) -> Any:
    """The overload that the dotted name means."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def specs(call: dict[str, Any]) -> list[dict[str, Any]]:
    """The tensor specifications in a call, in order; changing one changes the call."""
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict) and isinstance(value.get("tensor"), dict):
            found.append(value["tensor"])
        elif isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(call["args"])
    walk(call.get("kwargs") or {})
    return found


def resized(call: dict[str, Any], places: list[tuple[int, int]], size: int) -> dict[str, Any]:
    """The call with these (tensor, dimension) places set to a size; what is strided keeps the order of its strides."""
    changed = copy.deepcopy(call)
    every = specs(changed)
    for tensor, dim in places:
        every[tensor]["shape"][dim] = size
    for tensor in {t for t, _ in places}:
        spec = every[tensor]
        spec["stride"] = _restrided(spec)
        spec.pop("layout", None)  # it is one of the old sizes
        spec["fill"], spec["file"], spec["key"] = "randn", None, None
    return changed


def _restrided(spec: dict[str, Any]) -> list[int] | None:
    old = spec.get("stride")
    if not old:
        return None
    order = sorted(range(len(old)), key=lambda d: -old[d])
    strides, step = [0] * len(old), 1
    for dim in reversed(order):
        if old[dim] == 0:
            continue
        strides[dim] = step
        step *= spec["shape"][dim]
    return strides


def is_legal(call: dict[str, Any]) -> bool:
    """Whether the op takes these shapes: tried on the meta device, where nothing is computed."""
    try:
        if any(math.prod(spec["shape"]) > MOST_ELEMENTS for spec in specs(call)):
            return False
        args, kwargs = _placed(
            made(call, lambda spec: torch.empty(spec["shape"], dtype=_dtype(spec), device="meta")), "meta"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operation(call["op"])(*args, **kwargs)
    except Exception:  # noqa: BLE001  whatever it raises, it doesn't take them
        return False
    return True


def _dtype(spec: dict[str, Any]) -> torch.dtype:
    found = getattr(torch, spec["dtype"])
    assert isinstance(found, torch.dtype)
    return found


def _word(text: str) -> Any:
    text = text.partition("  #")[0]
    if text.startswith("torch.device"):
        return torch.device("cpu" if "cpu" in text else device_name())
    return getattr(torch, text.removeprefix("torch."), None)


def made(call: dict[str, Any], make: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments with each tensor specification made into a tensor."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("tensor"), dict):
            return make(value["tensor"])
        if isinstance(value, dict) and "word" in value:
            return _word(value["word"])
        if isinstance(value, list):
            return [walk(item) for item in value]
        return value

    return [walk(v) for v in call["args"]], {k: walk(v) for k, v in (call.get("kwargs") or {}).items()}


def _placed(given: Any, device: str) -> Any:
    """The arguments with every device replaced by one that can be had."""
    return mapped(given, lambda v: torch.device(device) if isinstance(v, torch.device) else v)


class Maker:
    """Makes the tensors of a point: the base on the CPU, and views of it where the specification is strided."""

    def __init__(self, fill: str, key: str, *, linear: bool = False) -> None:
        self.fill = fill
        self.linear = linear
        self.generator = torch.Generator().manual_seed(zlib.crc32(key.encode()))
        self.count = 0

    def base(self, spec: dict[str, Any]) -> torch.Tensor:
        """The storage that the view reaches, in one dimension; contiguous tensors have their own shape."""
        self.count += 1
        if spec.get("fill") == "file" and spec.get("file"):
            saved = torch.load(spec["file"], weights_only=True)[spec["key"]]
            assert isinstance(saved, torch.Tensor)
            return saved
        dtype = _dtype(spec)
        shape = [_reach(spec)] if spec.get("stride") or spec.get("offset") else spec["shape"]
        if dtype.is_floating_point:
            values = torch.randn(shape, generator=self.generator)
            if self.fill == "spike" and values.numel() and self.count == 1:
                _spike(values, spec, linear=self.linear)
            return values.to(dtype)
        if dtype is torch.bool:
            return torch.randn(shape, generator=self.generator) > 0
        return torch.randint(spec.get("low") or 0, max(spec.get("high") or 2, 1), shape, generator=self.generator).to(
            dtype
        )


def _spike(values: torch.Tensor, spec: dict[str, Any], *, linear: bool) -> None:
    """Large values in the last place of each dimension of the view, so that a dropped one is seen.

    In a long mean a spike of fixed height drowns: for linear ops it grows with the length.
    All of them together stay far from what float16 can hold: a sum that runs over is no fault.
    """
    shape, stride = spec["shape"], spec.get("stride") or _plain(spec["shape"])
    sizes = [1 if s == 0 else n for n, s in zip(shape, stride, strict=True)]  # a repeated place is written once
    view = values.reshape(-1).as_strided(sizes, stride, spec.get("offset", 0))
    dims = [d for d in range(view.dim()) if view.size(d) > 1]
    wanted = max([SPIKE, *(view.size(d) / 2 for d in dims)]) if linear else SPIKE
    height = min(wanted, MOST_SPIKES / max(sum(view.numel() // view.size(d) for d in dims), 1))
    for dim in dims:
        view.select(dim, -1).abs_().add_(height)


def _reach(spec: dict[str, Any]) -> int:
    steps = zip(spec["shape"], spec.get("stride") or _plain(spec["shape"]), strict=True)
    return int(spec.get("offset", 0) + 1 + sum((n - 1) * s for n, s in steps))


def viewed(base: torch.Tensor, spec: dict[str, Any]) -> torch.Tensor:
    """The view of its base, by ordinary view ops where they make it."""
    stride, offset = spec.get("stride"), spec.get("offset", 0)
    if not stride and not offset:
        return base.reshape(spec["shape"]) if list(base.shape) != spec["shape"] else base
    if stride and not offset and 0 not in stride and base.numel() == math.prod(spec["shape"]):
        order = sorted(range(len(stride)), key=lambda d: -stride[d])
        back = [order.index(d) for d in range(len(stride))]
        plain = base.reshape([spec["shape"][d] for d in order]).permute(back)
        if list(plain.stride()) == list(stride):
            return plain
    return base.reshape(-1).as_strided(spec["shape"], stride or _plain(spec["shape"]), offset)


def _plain(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


def device_name() -> str:
    """What the card is called."""
    return str(torch._C._get_privateuse1_backend_name())


def _there(base: torch.Tensor, spec: dict[str, Any]) -> torch.Tensor:
    """On the card, but for what lies on the CPU in the call, too."""
    return base if spec.get("host") else base.to(device_name())


def _on_card(base: torch.Tensor, spec: dict[str, Any]) -> torch.Tensor:
    """The tensor on the card: its base laid out as it was recorded, then the view of it."""
    if not spec.get("layout") or spec.get("host"):
        return viewed(_there(base, spec), spec)
    whole = with_layout(base, spec["layout"], device_name())
    if list(whole.shape) == list(spec["shape"]) and not spec.get("stride") and not spec.get("offset"):
        return whole
    return whole.as_strided(spec["shape"], spec.get("stride") or _plain(spec["shape"]), spec.get("offset", 0))


def shapes_of(call: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Shape and type of each result, computed on the meta device; None where the op does not take such arguments."""
    try:
        if any(math.prod(spec["shape"]) > MOST_ELEMENTS for spec in specs(call)):
            return None
        given = _placed(made(call, viewed_meta), "meta")
        args, kwargs = _with_out(given) if call.get("form") == "out" else given
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described_results(operation(call["op"])(*args, **kwargs))
    except Exception:  # noqa: BLE001  whatever it raises, it doesn't take them
        return None


def viewed_meta(spec: dict[str, Any]) -> torch.Tensor:
    """The tensor without its values, its strides as they are."""
    stride = spec.get("stride") or _plain(spec["shape"])
    return torch.empty_strided(spec["shape"], stride, dtype=_dtype(spec), device="meta")


def described_results(result: Any) -> list[dict[str, Any]]:
    """Shape and type of each tensor."""
    return [{"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch.")} for t in tensors_in(result)]


def _with_out(given: Any) -> Any:
    """An empty tensor for the out= argument."""
    args, kwargs = given
    first = next(tensors_in((args, kwargs)))
    return args, {**kwargs, "out": torch.empty(0, dtype=first.dtype, device=first.device)}


def judged_point(call: dict[str, Any], *, key: str = "", times: int = 2, pattern: bool = False) -> dict[str, Any]:
    """The worst of what the call gives with the data that are tried: verdict, ratio, pattern, error, out, fallback."""
    transform = _with_out if call.get("form") == "out" else None
    worst: dict[str, Any] = {}
    for fill in fills_of(call["op"])[:times]:
        answer = run_point(call, fill=fill, key=key, transform=transform, pattern=pattern)
        verdict = (
            "refused" if answer.get("refused") else "illegal" if answer.get("illegal")
            else "uncompared" if answer["wrong"] is None or answer.get("unclear")
            else "wrong" if answer["wrong"] else "right"
        )  # fmt: skip
        if not worst or verdict != "right":
            worst = {**answer, "verdict": verdict}
        if verdict not in {"right", "uncompared"} or all(spec.get("fill") == "file" for spec in specs(call)):
            break
    return {**worst, "verdict": "uncompared"} if worst["verdict"] == "right" and worst.get("blind") else worst


def _is_blind(want: torch.Tensor) -> bool:
    """All slices along some dimension are equal: a fault that exchanges them would not show."""
    if not want.numel() or want.numel() > 1 << 20:
        return False
    return any(want.size(d) > 1 and bool((want == want.narrow(d, 0, 1)).all()) for d in range(want.dim()))


def _lengthened(call: dict[str, Any], places: list[tuple[int, int]]) -> dict[str, Any]:
    """The call with its dimensions of size 1 longer, as many as the op takes: only one that is broadcast stays as it is."""
    every = specs(call)
    ones = [(t, d) for t, d in places if every[t]["shape"][d] == 1][:MOST_ONES]
    for count in range(len(ones), 0, -1):
        for chosen in itertools.combinations(ones, count):
            longer = resized(call, list(chosen), LONGER)
            if is_legal(longer):
                return longer
    return call


def space_of(call: dict[str, Any]) -> dict[str, Any]:
    """What can be varied of a call: places that change size together, its other forms, where its dimensions stand."""
    from debug_spyre_variants import argument_place, siblings  # type: ignore[import-not-found]

    places = [(t, d) for t, spec in enumerate(specs(call)) for d in range(len(spec["shape"]))][:10]
    plain = _lengthened(call, places)
    every = specs(plain)
    groups: list[list[tuple[int, int]]] = []
    for count in (1, 2, 3, 4):
        for chosen in itertools.combinations(places, count):
            if any(set(done) <= set(chosen) for done in groups):
                continue
            sizes = {every[t]["shape"][d] for t, d in chosen}
            if len(sizes) == 1 and 1 not in sizes and is_legal(resized(plain, list(chosen), PROBE)):
                groups.append(list(chosen))
    forms = [(name, form) for name, form, _ in siblings(operation(call["op"]))]
    return {"groups": groups, "forms": forms, "dim_place": argument_place(call["op"], "dim")}


def run_point(
    call: dict[str, Any], *, fill: str = "randn", key: str = "", transform: Any = None, pattern: bool = True
) -> dict[str, Any]:
    """The call on the card and on the CPU: is it wrong, by how much, did it fall back, what did it raise?

    `pattern`: also what wrong values look like, which takes longer than the call.
    """
    maker = Maker(fill, key, linear=_base_name(call["op"]) in LINEAR)
    bases: list[torch.Tensor] = []

    def on_host(spec: dict[str, Any]) -> torch.Tensor:
        bases.append(maker.base(spec))
        return viewed(bases[-1].clone(), spec)

    op = operation(call["op"])
    try:
        host = _placed(made(call, on_host), "cpu")
        given = iter(bases)
        card = made(call, lambda spec: _on_card(next(given).clone(), spec))
        if transform:
            host, card = transform(host), transform(card)
        before = mapped(host, lambda v: v.clone() if isinstance(v, torch.Tensor) else v)
        want = op(*host[0], **host[1])
    except Exception as error:  # noqa: BLE001  no such form of it: not a point
        return {"wrong": None, "illegal": True, "error": f"on the CPU: {_first(error)}", "out": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = _carried_out(op, call)(*card[0], **card[1])
            answer = _judged(op, got, want, before, pattern=pattern)
        except Exception as error:  # noqa: BLE001  the card's refusal is an answer
            answer = {"wrong": None, "error": _first(error), "refused": True}
    answer["fallback"] = any(w.category.__name__ == "FallbackWarning" for w in caught)
    answer["out"] = described_results(want)
    answer["blind"] = answer.get("wrong") is False and any(map(_is_blind, tensors_in(want)))
    return answer


def _carried_out(op: Any, call: dict[str, Any]) -> Any:
    """The op as such; in another way, or inside a graph of its own, where the call says so."""
    if call.get("way"):
        return way_round(op, call["way"])
    if call.get("mode") != "compiled":
        return op

    def graph(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return torch.compile(graph, dynamic=False)


def _judged(op: Any, got: Any, want: Any, before: Any, *, pattern: bool = True) -> dict[str, Any]:
    worst: dict[str, Any] = {"wrong": False, "unclear": False, "ratio": 0.0}
    for mine, theirs in zip(tensors_in(got), tensors_in(want), strict=False):
        there = mine.cpu() if is_device(mine) else mine
        found = difference(op, there, theirs, *before)
        if found is None:
            continue
        if mine.dtype != theirs.dtype:
            other = f"{mine.dtype} for {theirs.dtype}"
            return {"wrong": True, "unclear": False, "ratio": "inf", "share": 1.0, "dtype": other}
        if found.wrong and not found.is_clear and not worst["wrong"]:
            worst["unclear"] = True  # more than rounding explains, less than a fault shows: no evidence for either
        if found.is_clear and (not worst["wrong"] or found.ratio > float(worst["ratio"])):
            worst = {"wrong": True, "unclear": False, "ratio": found.ratio, "share": found.wrong / max(found.total, 1)}
            seen = pattern_of(there, theirs) if pattern and found.total <= 1 << 18 else None
            worst["pattern"] = seen["patterns"][0]["text"] if seen and seen["patterns"] else None
    worst["ratio"] = str(worst["ratio"]) if not math.isfinite(float(worst["ratio"])) else worst["ratio"]
    return worst


def _first(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text if len(text) <= 300 else text[:299] + '…'}"


def fills_of(op: str) -> tuple[str, ...]:
    """Which data are tried: reductions also with large last elements, so that a dropped one is seen."""
    return ("randn", "spike") if _base_name(op) in SUMS | REDUCTIONS | MATMULS else ("randn",)


def _base_name(op: str) -> str:
    """aten.add_.Tensor -> add."""
    return op.split(".")[1].rstrip("_")
