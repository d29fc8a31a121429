"""Characterises one op on the card: sizes, views, types, overloads, neighbours, contributions, order of calls.

`python -m debug_spyre_sweep`, the request in DEBUG_SPYRE_SWEEP. One JSON line a point, flushed; points that an earlier
run left are not run again. Stops at the budget of calls or seconds and says so.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import torch
from debug_spyre_calls import run_folder  # type: ignore[import-not-found]
from debug_spyre_ledger import BudgetError, Ledger  # type: ignore[import-not-found]
from debug_spyre_points import (  # type: ignore[import-not-found]
    is_legal,
    operation,
    resized,
    specs,
)
from debug_spyre_variants import (  # type: ignore[import-not-found]
    argument_place,
    cube,
    missing_indices,
    runs,
    siblings,
    views_of,
)

SIZES = (
    1, 2, 3, 8, 16, 32, 48, 63, 64, 65, 80, 96, 100, 127, 128, 129, 160, 192, 200, 255, 256, 257, 300, 320, 384, 448,
    511, 512, 513, 640, 1024,
)  # fmt: skip
PROBE = 97
FAMILIES = (
    ("sum", "mean", "amax", "amin"), ("mm", "bmm", "addmm", "matmul"), ("add", "sub", "mul", "div", "maximum", "minimum"),
    ("exp", "sqrt", "rsqrt", "sigmoid", "tanh", "relu", "silu", "abs", "neg"), ("_softmax", "_log_softmax"),
    ("eq", "ne", "lt", "le", "gt", "ge"),
)  # fmt: skip


class Sweep(Ledger):
    """The families of points, in order."""

    def run(self) -> None:
        """All families, what tells most first."""
        steps = (
            self._as_given, self._order, self._sizes, self._dims, self._contributions, self._overloads, self._views,
            self._types, self._neighbours,
        )  # fmt: skip
        try:
            for step in steps:
                step()
        except BudgetError:
            self.say("end", "budget", {"wrong": None, "error": "the budget was used up"})

    def _as_given(self) -> None:
        self.point("given", "as given", self.call)
        plain = copy.deepcopy(self.call)
        for spec in specs(plain):
            spec.update(fill="randn", file=None, key=None)
        self.point("given", "random data", plain)
        for spec in specs(plain):
            spec.update(stride=None, offset=0)
        self.point("given", "contiguous", plain)

    def _plain(self) -> dict[str, Any]:
        """The call that sizes are varied on: random data, contiguous if that is wrong as well."""
        strided = any(spec.get("stride") or spec.get("offset") for spec in specs(self.call))
        plain: dict[str, Any] = copy.deepcopy(self.call)
        needs_view = strided and not self.known.get("given|contiguous", {}).get("wrong")
        for spec in specs(plain):
            spec.update(fill="randn", file=None, key=None)
            if not needs_view:
                spec.update(stride=None, offset=0)
        return plain

    def groups(self, call: dict[str, Any]) -> list[list[tuple[int, int]]]:
        """Sets of (tensor, dimension) that can change size together."""
        every = specs(call)
        places = [(t, d) for t, spec in enumerate(every) for d in range(len(spec["shape"]))][:10]
        found: list[list[tuple[int, int]]] = []
        for count in (1, 2, 3, 4):
            for chosen in itertools.combinations(places, count):
                if any(set(done) <= set(chosen) for done in found):
                    continue
                sizes = {every[t]["shape"][d] for t, d in chosen}
                if len(sizes) == 1 and is_legal(resized(call, list(chosen), PROBE)):
                    found.append(list(chosen))
        return found

    def _sizes(self) -> None:
        call = self._plain()
        for group in sorted(self.groups(call), key=lambda g: -max(d for _, d in g)):
            self._along(call, group)

    def _along(self, call: dict[str, Any], group: list[tuple[int, int]]) -> None:
        """Errors over the sizes of one group, and the threshold between right and wrong to the element."""
        every = specs(call)
        name = "+".join(f"{t}.{d - len(every[t]['shape'])}" for t, d in group)
        answers: dict[int, bool | None] = {}

        def at(size: int) -> bool | None:
            if size not in answers:
                changed = resized(call, group, size)
                if not is_legal(changed):
                    answers[size] = None
                else:
                    found = self.point(f"size {name}", str(size), changed, size=size, group=[list(g) for g in group])
                    answers[size] = found.get("wrong")
            return answers[size]

        given = every[group[0][0]]["shape"][group[0][1]]
        for size in sorted({*SIZES, given}):
            at(size)
        known = sorted(size for size, wrong in answers.items() if wrong is not None)
        changes = [(a, b) for a, b in itertools.pairwise(known) if answers[a] != answers[b]]
        if 1 <= len(changes) <= 2:
            for low, high in changes:
                _bisect(low, high, at)

    def _dims(self) -> None:
        """Reductions over each dimension, alone and together."""
        place = argument_place(self.call["op"], "dim")
        call = self._plain()
        if place is None or len(call["args"]) <= place or not specs(call):
            return
        rank = len(specs(call)[0]["shape"])
        long = self.long_size()
        wide = copy.deepcopy(call)
        specs(wide)[0]["shape"] = [long] * rank if rank <= 2 else cube(rank, long)
        specs(wide)[0]["stride"] = None
        is_list = isinstance(wide["args"][place], list)
        for dim in range(rank):
            wide["args"][place] = [dim] if is_list else dim
            label = f"dim {dim - rank} of {specs(wide)[0]['shape']}"
            self.point("dims", label, wide, dim=dim - rank, size=specs(wide)[0]["shape"][dim])

    def _contributions(self) -> None:
        """Which inputs of a reduction or a matrix product count: one-hot rows."""
        packet = self.call["op"].split(".")[1].rstrip("_")
        if packet not in {"sum", "mean", "mm", "bmm", "addmm", "matmul"}:
            return
        for size in sorted({self.long_size(), 2 * self.long_size(), self.long_size() + 64}):
            if size > 1100:
                continue
            missing = missing_indices(packet, size)
            if missing is not None:
                spans = runs(missing)
                self.say(
                    "contribution",
                    str(size),
                    {"wrong": bool(missing)},
                    size=size,
                    missing=spans[:8],
                    count=len(missing),
                )

    def _overloads(self) -> None:
        """Functional, in-place and out=, with the arguments of the call."""
        op = operation(self.call["op"])
        for name, overload, transform in siblings(op):
            call = {**self._at_long(), "op": name}
            self.point("overload", name, call, transform=transform, form=overload)

    def _at_long(self) -> dict[str, Any]:
        """The plain call at a size at which it is wrong."""
        call = self._plain()
        for point in self.deciding():
            if point["wrong"] and point["size"] == self.long_size():
                found: dict[str, Any] = resized(call, [tuple(g) for g in point["group"]], point["size"])
                return found
        return call

    def _views(self) -> None:
        """Each tensor as another view, all others contiguous: one cause at a time."""
        call = self._at_long()
        for spec in specs(call):
            spec.update(stride=None, offset=0, fill="randn", file=None, key=None)
        for number, spec in enumerate(specs(call)):
            shape = spec["shape"]
            if not shape or 0 in shape:
                continue
            for label, stride, offset in views_of(shape):
                changed = copy.deepcopy(call)
                specs(changed)[number].update(stride=stride, offset=offset)
                self.point("view", f"argument {number} {label}", changed, view=label)

    def _types(self) -> None:
        call = self._at_long()
        if not any(spec["dtype"].startswith(("float", "bfloat")) for spec in specs(call)):
            return
        for dtype in ("float16", "bfloat16", "float32"):
            changed = copy.deepcopy(call)
            for spec in specs(changed):
                if spec["dtype"].startswith(("float", "bfloat")):
                    spec["dtype"] = dtype
            self.point("dtype", dtype, changed)

    def _neighbours(self) -> None:
        space, packet, _ = self.call["op"].split(".")
        for family in FAMILIES:
            if packet not in family or space != "aten":
                continue
            for other in family:
                if other != packet and hasattr(torch.ops.aten, other):
                    self._neighbour(other)

    def _neighbour(self, other: str) -> None:
        wanted = [type(a).__name__ for a in self.call["args"]]
        for overload in getattr(torch.ops.aten, other).overloads():
            op = getattr(getattr(torch.ops.aten, other), overload)
            if op._schema.is_mutable or "out" in overload or "Dimname" in str(op._schema):
                continue
            call = {**self._at_long(), "op": f"aten.{other}.{overload}"}
            if len(wanted) <= len(op._schema.arguments) and is_legal(call):
                self.point("neighbour", call["op"], call)
                return

    def _order(self) -> None:
        """A launch with few rows, then one with many, in one process; and the same call again and again."""
        call = self._plain()
        wide = [t for t, spec in enumerate(specs(call)) if len(spec["shape"]) >= 2]
        if not wide:
            return
        groups = [g for g in self.groups(call) if all(d - len(specs(call)[t]["shape"]) == -2 for t, d in g)]
        columns = [g for g in self.groups(call) if all(d - len(specs(call)[t]["shape"]) == -1 for t, d in g)]
        if not groups or not columns:
            return
        for label, width, rows in (
            ("many rows alone", 72, 6), ("few rows first", 88, 2), ("many rows after few", 88, 6),
            ("many rows alone, wider", 104, 6),
        ):  # fmt: skip
            base = resized(call, columns[0], width)
            self.point("order", label, resized(base, groups[0], rows), width=width)
        again = resized(resized(call, columns[0], 40), groups[0], 3)
        for number in range(1, 5):
            self.point("repeat", f"call {number} of one shape", again)


def _bisect(low: int, high: int, at: Callable[[int], bool | None]) -> None:
    first = at(low)
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle) == first:
            low = middle
        else:
            high = middle


def main() -> int:
    """Run the sweep that DEBUG_SPYRE_SWEEP describes; the points go to sweep.jsonl in the run's folder."""
    request = json.loads(os.environ["DEBUG_SPYRE_SWEEP"])
    results_path = str(run_folder() / "sweep.jsonl")
    if request.get("resume") and not os.path.exists(results_path):
        shutil.copyfile(request["resume"], results_path)
    with torch.inference_mode():
        Sweep(request, results_path).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
