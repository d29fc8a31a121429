"""The points of a sweep: run within a budget, written one JSON line each, flushed; what is known is not run again."""

from __future__ import annotations

import json
import time
from typing import Any

from debug_spyre_points import fills_of, run_point  # type: ignore[import-not-found]


class BudgetError(Exception):
    """No calls or seconds are left."""


class Ledger:
    """Runs points within a budget and remembers their answers, also those of an earlier run."""

    def __init__(self, request: dict[str, Any], path: str) -> None:
        self.call = request["call"]
        self.calls, self.deadline = (
            int(request.get("calls") or 600),
            time.monotonic() + float(request.get("seconds") or 300),
        )
        self.path = path
        self.known: dict[str, dict[str, Any]] = {}
        line = ""
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                for line in stream:
                    self._remember(line)
        except OSError:
            pass
        self.stream = open(path, "a", encoding="utf-8")  # noqa: SIM115  kept open to the end of the process
        if line and not line.endswith("\n"):  # of a process that died while it wrote
            self.stream.write("\n")

    def _remember(self, line: str) -> None:
        try:
            point = json.loads(line)
            self.known[point["key"]] = point
        except (ValueError, KeyError, TypeError):
            return

    def say(self, family: str, label: str, answer: dict[str, Any], **facts: Any) -> dict[str, Any]:
        """Write one point."""
        point = {"key": f"{family}|{label}", "family": family, "label": label, **facts, **answer}
        self.known[point["key"]] = point
        self.stream.write(json.dumps(point) + "\n")
        self.stream.flush()
        return point

    def point(
        self, family: str, label: str, call: dict[str, Any], *, transform: Any = None, **facts: Any
    ) -> dict[str, Any]:
        """Run one point (or take its answer from before): the worst of its data."""
        key = f"{family}|{label}"
        if key in self.known:
            earlier: dict[str, Any] = self.known[key]
            return earlier
        worst: dict[str, Any] = {"wrong": None}
        for fill in fills_of(call["op"]):
            if self.calls <= 0 or time.monotonic() > self.deadline:
                raise BudgetError
            self.calls -= 1
            answer = run_point(call, fill=fill, key=key, transform=transform)
            if worst["wrong"] is None or answer.get("wrong"):
                worst = answer
            if answer.get("wrong") or answer.get("wrong") is None:
                break
        return self.say(family, label, worst, **facts)

    def deciding(self) -> list[dict[str, Any]]:
        """The size points of the dimension that decides between right and wrong; of all where none does."""
        families: dict[str, list[dict[str, Any]]] = {}
        for point in self.known.values():
            if point["family"].startswith("size") and point.get("wrong") is not None:
                families.setdefault(point["family"], []).append(point)
        for points in families.values():
            if len({p["wrong"] for p in points}) == 2:
                return points
        return [point for points in families.values() for point in points]

    def long_size(self) -> int:
        """A size at which it is wrong, the smallest that is a multiple of 64 where there is one."""
        wrong = [p["size"] for p in self.deciding() if p["wrong"]]
        round_ones = [size for size in wrong if size % 64 == 0]
        return int(min(round_ones or wrong or [256]))
