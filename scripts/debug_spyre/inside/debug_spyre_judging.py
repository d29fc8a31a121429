"""Is a device's result of one op right? Judged against the CPU's from the same inputs, with room for rounding only.

A sum may be off by a share of what was summed, not of what is left of it; a pointwise result only by its own rounding.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from debug_spyre_calls import mapped  # type: ignore[import-not-found]

EACH_OP = 6  # suspects whose values are kept, per op
MOST = 40


class Verdicts:
    """Written by the shadow, read by `investigate`."""

    def __init__(self, folder: Path, *, keeps_values: bool) -> None:
        self.path, self.keeps_values = folder / "ledger.jsonl", keeps_values
        self.suspects = folder / "suspects"
        self.counts: dict[tuple[int, str], int] = {}
        self.met: set[tuple[str | None, int]] = set()
        self.kept: dict[tuple[str, str], str] = {}
        self.saved = 0
        self.stream: Any = None

    def _write(self, line: dict[str, Any]) -> None:
        if self.stream is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            self.stream = os.fdopen(descriptor, "w", encoding="utf-8")
        self.stream.write(json.dumps(line) + "\n")
        self.stream.flush()

    def judged(
        self, number: int, call: dict[str, Any], verdict: str, out: list[dict[str, Any]], place: dict[str, Any]
    ) -> None:
        """One call of the card: right, wrong or refused. `place`: op, site, nodeid, and what was seen."""
        key = number, verdict
        if key not in self.counts:
            self._write({"n": number, "verdict": verdict, "call": call, "out": out, "site": place["site"]})
        self.counts[key] = self.counts.get(key, 0) + 1
        if verdict != "right" and (place["nodeid"], number) not in self.met:
            self.met.add((place["nodeid"], number))
            self._write(
                {"n": number, "verdict": verdict, **place, "suspect": self.kept.get((place["op"], place["site"]))}
            )

    def place_for(self, op: str, site: str) -> Path | None:
        """Where the values of this wrong call go; None where they are not kept."""
        same = sum(1 for known, _ in self.kept if known == op)
        if not self.keeps_values or (op, site) in self.kept or same >= EACH_OP or self.saved >= MOST:
            return None
        self.saved += 1
        self.kept[op, site] = str(self.saved)
        return self.suspects / str(self.saved)

    def end(self) -> None:
        """How often each verdict was given."""
        for (number, verdict), count in self.counts.items():
            self._write({"n": number, "verdict": verdict, "count": count})
        if self.stream is not None:
            self.stream.close()
            self.stream = None


SUMS = {
    "mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "dot", "mv", "addmv", "sum", "mean", "cumsum", "batched_matmul",
    "_scaled_mm", "convolution", "conv2d", "index_add", "scatter_add", "var", "std", "rms_norm", "layer_norm",
    "native_layer_norm", "scaled_dot_product_attention", "_scaled_dot_product_attention_math",
}  # fmt: skip
RELATIVE = {torch.float16: 8e-3, torch.bfloat16: 3e-2, torch.float32: 1e-4, torch.float64: 1e-9}
OF_SUM = {torch.float16: 2.0**-9, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-18, torch.float64: 2.0**-40}
SATURATED = 65472.0
CLEARLY = 3.0  # times the room for rounding


@dataclass
class Difference:
    """How far a result is off: `ratio` in units of the room for rounding."""

    wrong: int
    total: int
    max_abs: float
    ratio: float
    exact: bool  # integers and bools: any difference is one

    @property
    def is_clear(self) -> bool:
        """No rounding does that."""
        return self.wrong > 0 and (self.exact or self.ratio >= CLEARLY)


def difference(op: Any, got: torch.Tensor, want: torch.Tensor, args: Any, kwargs: Any) -> Difference | None:
    """Numbers of one result (both on the CPU); None where shapes or kinds can't be compared."""
    if not is_same_form(got, want):
        return Difference(max(want.numel(), 1), max(want.numel(), 1), float("inf"), float("inf"), exact=False)
    if not want.numel():
        return Difference(0, 0, 0.0, 0.0, exact=False)
    if not want.is_floating_point() or not got.is_floating_point():
        wrong = int((got != want).sum())
        return Difference(wrong, want.numel(), float(wrong > 0), float("inf") if wrong else 0.0, exact=True)
    if torch.equal(got, want):
        return Difference(0, want.numel(), 0.0, 0.0, exact=False)
    g, w = (t.double() if t.dtype is torch.float64 else t.float() for t in (got, want))
    gap = (g - w).abs()
    gap = torch.where((g == w) | (g.isnan() & w.isnan()), 0.0, gap)
    saturated = (w.abs() >= SATURATED) & (g.abs() >= SATURATED) & (g.sign() == w.sign())
    gap = torch.where(saturated, 0.0, gap)
    gap = torch.where(gap.isnan(), float("inf"), gap)
    room = _room(op, want, w, args, kwargs)
    ratio = float((gap / room).max())
    finite = gap[gap.isfinite()]
    worst = float(finite.max()) if finite.numel() == gap.numel() else float("inf")
    return Difference(int((gap > room).sum()), want.numel(), worst, ratio, exact=False)


def is_same_form(got: torch.Tensor, want: torch.Tensor) -> bool:
    """The same shape, and the same type where both are floats (the card holds int64 as int32, as it says itself)."""
    both = got.is_floating_point() and want.is_floating_point()
    return got.shape == want.shape and (got.dtype == want.dtype or not both)


def tolerance(op: Any, want: torch.Tensor) -> dict[str, Any]:
    """How a script shall compare: a share of each element, and of the largest, which counts for sums only."""
    if not want.is_floating_point():
        return {"exact": True}
    share = RELATIVE.get(want.dtype, 0.3)
    is_sum = op.overloadpacket.__name__.rstrip("_") in SUMS
    return {"exact": False, "rtol": share / 2 if is_sum else share, "scale_tol": share if is_sum else share / 8}


def _room(op: Any, want: torch.Tensor, w: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor:
    relative = RELATIVE.get(want.dtype, 0.3)
    finite = w.abs().where(w.isfinite(), 0.0)
    room = relative * finite + _floor(want, finite)
    if op.overloadpacket.__name__.rstrip("_") in SUMS:
        summed = _of_magnitudes(op, args, kwargs)
        if summed is not None and summed.shape == want.shape:
            room = room + OF_SUM.get(want.dtype, 0.1) * summed.nan_to_num(0.0, 0.0, 0.0)
        else:
            room = room + 4 * OF_SUM.get(want.dtype, 0.1) * finite.square().mean().sqrt()
    return room


def _floor(want: torch.Tensor, finite: torch.Tensor) -> float:
    small = {torch.float16: 1e-5, torch.bfloat16: 1e-30}.get(want.dtype, 1e-30)
    ordinary = finite[(finite > 0) & (finite < 60000)]
    typical = (
        float(ordinary.median())
        if 0 < ordinary.numel() <= 1 << 20
        else float(ordinary.mean())
        if ordinary.numel()
        else 0.0
    )
    return small + 0.1 * RELATIVE.get(want.dtype, 0.3) * typical


def _of_magnitudes(op: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
    """The op on the magnitudes of its inputs, in float32: what was added up."""

    def positive(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        return value.float().abs().nan_to_num(0.0, 60000.0, 60000.0)

    plain = {key: value for key, value in kwargs.items() if key not in {"out", "dtype"}}
    try:
        packet = op.overloadpacket
        name = packet.__name__
        functional = (
            getattr(packet, op._overloadname)
            if not op._schema.is_mutable
            else getattr(torch.ops.aten, name.rstrip("_"))
        )
        result = functional(*mapped(args, positive), **mapped(plain, positive))
    except Exception:  # noqa: BLE001  then the size of the result must do
        return None
    return result if isinstance(result, torch.Tensor) else None


def pattern_of(got: torch.Tensor, want: torch.Tensor) -> dict[str, Any] | None:
    """What `compare` says about the two; None without numpy."""
    scripts = str(Path(__file__).resolve().parents[2])
    if scripts not in sys.path:
        sys.path.append(scripts)
    try:
        from debug_spyre_calls import raw_bytes

        from debug_spyre.numerics.comparison import compare, lines_of
        from debug_spyre.numerics.formats import decode

        values = [
            decode(raw_bytes(t), str(t.dtype).removeprefix("torch."), tuple(t.shape)) for t in (got, want.to(got.dtype))
        ]
        comparison = compare(*values)
    except (ImportError, ValueError):
        return None
    return {**comparison.to_json(), "lines": lines_of(comparison)}
