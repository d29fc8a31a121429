"""The ladder in words: on which rungs a failure shows, and so where it enters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AS_IS = "as-is"
UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Rung:
    """One switch: its name, what it does, the environment that it needs, and whether the plugin carries it out."""

    name: str
    text: str
    env: tuple[tuple[str, str], ...] = ()
    plugin: bool = False


RUNGS = (
    Rung(AS_IS, "as it is, with the backend's own compiler"),
    Rung("op-by-op", "op by op, under an inert dispatch mode", plugin=True),
    Rung("eager", "torch.compile with backend eager", plugin=True),
    Rung("aot_eager", "torch.compile with backend aot_eager", plugin=True),
    Rung("caches-off", "compile caches off", (("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1"), ("SPYRE_KERNEL_CACHE", "0"))),
    Rung("one-core", "SENCORES=1", (("SENCORES", "1"),)),
    Rung("no-pool-planning", "the planner of the card's memory off", (("HBM_POOL_PLANNING", "0"),)),
    Rung("no-lx-planning", "the planner of the cores' scratchpads off", (("LX_PLANNING", "0"),)),
    Rung(
        "logging", "the vendor's logging on, nothing else",
        (("TORCH_SENDNN_LOG", "INFO"), ("DT_DEEPRT_VERBOSE", "1"), ("DTLOG_LEVEL", "info")),
    ),
)  # fmt: skip
BY_NAME = {rung.name: rung for rung in RUNGS}


@dataclass(frozen=True, slots=True)
class Step:
    """What one rung showed: passed, mismatch, crash, error or unknown; with counts and the run.

    `error` are the words of an error or crash, equal for two sightings of one cause (a signature); empty for a mismatch.
    """

    rung: str
    showed: str
    failed: int
    total: int | None
    run: str
    detail: str = ""
    error: str = ""

    @property
    def fails(self) -> bool | None:
        """The failure shows; None where it is not known."""
        return None if self.showed == "unknown" else self.showed != "passed"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "rung": self.rung, "showed": self.showed, "failed": self.failed, "total": self.total, "run": self.run,
            "detail": self.detail, "error": self.error,
        }  # fmt: skip

    def is_of(self, other: Step) -> bool:
        """Both show one failure: two errors of different words are two failures."""
        return not (self.error and other.error) or self.error == other.error


def conclusion(steps: Mapping[str, Step]) -> str:
    """Where the failure enters, in words."""
    seen = {name: step.fails for name, step in steps.items()}
    first = steps.get(AS_IS)
    others = [name for name, step in steps.items() if first and step.fails and not step.is_of(first)]
    if others:
        return _another(steps, others)
    if seen.get(AS_IS) is False:
        return "it does not fail as it is: nothing enters here (flaky, or it depends on other tests)"
    if seen.get(AS_IS) is None:
        return "whether it fails as it is, is not known"
    kinds = {step.showed for step in steps.values() if step.fails}
    changed = f" (it shows as {' and '.join(sorted(kinds))})" if len(kinds) > 1 else ""
    for name, meaning in _SWITCHES:
        if seen.get(name) is False:
            return meaning + changed
    order = ("op-by-op", "eager", "aot_eager")
    if any(seen.get(name) is None for name in order):
        silent = ", ".join(name for name in order if name in seen and seen[name] is None)
        left_out = ", ".join(name for name in order if name not in seen)
        why = [f"{silent} gave no answer"] * bool(silent) + [f"{left_out} not run"] * bool(left_out)
        return f"{UNDECIDED}: {'; '.join(why)}" + changed
    if seen["op-by-op"]:
        return (
            "it shows op by op: one op's own kernel (or the code itself) is wrong, not the compiled graph; next: shadow"
            + changed
        )
    if seen["eager"]:
        return (
            "it enters with tracing (backend eager fails, op by op passes): dynamo, or code that asks whether it is compiled"
            + changed
        )
    if seen["aot_eager"]:
        return "it enters with aot_eager: decompositions or functionalisation" + changed
    return (
        "it enters in the backend's own compiler: op by op, eager and aot_eager pass; lowering, layout or code generation"
        + changed
    )


def _another(steps: Mapping[str, Step], others: list[str]) -> str:
    """A rung that fails for another reason says nothing about where this failure enters."""
    without = {name: Step(name, "unknown", 0, None, s.run) if name in others else s for name, s in steps.items()}
    words = "; ".join(f"{name}: {steps[name].detail}" for name in others[:2])
    rest = conclusion(without)
    same = f"with another error on {', '.join(others)} than as it is ({words})"
    return f"{rest}, {same}" if rest.startswith(UNDECIDED) else f"{rest}; {same}"


_SWITCHES = (
    ("caches-off", "with the compile caches off it passes: a stale compiled artefact"),
    ("one-core", "with SENCORES=1 it passes: the division of work among cores"),
    (
        "no-pool-planning",
        "with HBM_POOL_PLANNING=0 it passes: the planner of the card's memory (buffers that share a place)",
    ),
    ("no-lx-planning", "with LX_PLANNING=0 it passes: the planner of the cores' scratchpads"),
    ("logging", "with logging on it passes: timing, or it is flaky"),
)


def ladder_lines(steps: Mapping[str, Step]) -> list[str]:
    """The answer: the conclusion, then a line a rung."""
    lines = [conclusion(steps)]
    for name, step in steps.items():
        total = "?" if step.total is None else step.total
        count = "" if step.showed in {"passed", "unknown"} else f", {step.failed} of {total} tests"
        detail = f": {step.detail}" if step.detail else ""
        lines.append(f"  {name:16s} {step.showed}{count} ({step.run}){detail}")
    return lines
