"""Runs of shadow and of the ladder in words: which op differs first, on which rungs a failure shows, and so where it enters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AS_IS = "as-is"
COMPILER = "it enters in the backend's own compiler"
UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Rung:
    """One switch: its name, what it does, the environment that it needs, and whether the plugin carries it out."""

    name: str
    text: str
    env: tuple[tuple[str, str], ...] = ()
    plugin: bool = False
    needs: tuple[str, ...] = ()  # switches of which the installed version must know one, or the rung says nothing


RUNGS = (
    Rung(AS_IS, "as it is, with the backend's own compiler"),
    Rung("op-by-op", "op by op, under an inert dispatch mode", plugin=True),
    Rung("eager", "torch.compile with backend eager", plugin=True),
    Rung("aot_eager", "torch.compile with backend aot_eager", plugin=True),
    Rung("caches-off", "compile caches off", (("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1"), ("SPYRE_KERNEL_CACHE", "0"))),
    Rung("one-core", "SENCORES=1", (("SENCORES", "1"),)),
    Rung("no-pool-planning", "the planner of the card's memory off", (("HBM_POOL_PLANNING", "0"),), needs=("HBM_POOL_PLANNING",)),
    Rung("no-lx-planning", "the planner of the cores' scratchpads off", (("LX_PLANNING", "0"),), needs=("LX_PLANNING",)),
    Rung(
        "validators", "the checks of every compiler pass on",
        (("SPYRE_VALIDATE_GRAPH", "1"), ("SPYRE_VALIDATE_OP_SPECS", "1")), needs=("SPYRE_VALIDATE_GRAPH", "SPYRE_VALIDATE_OP_SPECS"),
    ),
    Rung(
        "logging", "the vendor's logging and that of every pass on, nothing else",
        (("TORCH_SENDNN_LOG", "INFO"), ("DT_DEEPRT_VERBOSE", "1"), ("DTLOG_LEVEL", "info"), ("SPYRE_LOG_PASSES", "all")),
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
    return f"{COMPILER}: op by op, eager and aot_eager pass; lowering, layout or code generation" + changed


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
    ("validators", "with the checks of every pass on it passes: timing, or it is flaky"),
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


def shadow_lines(report: Mapping[str, Any], failing_before: Sequence[str]) -> list[str]:
    """The answer, at most ten lines."""
    ops = report.get("ops") or []
    suspect = report.get("suspect")
    died = bool(suspect and suspect.get("died"))
    lines = [] if died else [_shows(report.get("outcomes") or {}, failing_before)]
    off = [op for op in ops if op.get("off") or op.get("refused")]
    if suspect:
        lines += _suspect(suspect)
    elif off:
        lines.append(f"{off[0]['op']} at {off[0]['site']} differs from the CPU")
    else:
        checked = sum(op.get("checked", 0) for op in ops)
        lines.append(_nothing(checked, len(ops)))
    others = [op for op in off if not suspect or (op["op"], op["site"]) != (suspect["op"], suspect["site"])]
    if others:
        named = ", ".join(f"{op['op']} ({op['site']})" for op in others[:3])
        lines.append(f"also off: {named}" + (f" and {len(others) - 3} more" if len(others) > 3 else ""))
    if ops or not died:
        lines.append(_traffic(report))
    lines += _unchecked(ops)
    return lines[:9]


def _shows(outcomes: Mapping[str, str], failing_before: Sequence[str]) -> str:
    failed = [nodeid for nodeid, outcome in outcomes.items() if outcome == "failed"]
    known = [nodeid for nodeid in failing_before if nodeid in outcomes]
    if not outcomes:
        return "no test ran"
    if known:
        still = [nodeid for nodeid in known if nodeid in failed]
        new = [nodeid for nodeid in failed if nodeid not in known]
        text = f"{len(still)} of {len(known)} known failures show op by op"
        if not still:
            text += ": they are compile-only or depend on the order, go to ladder"
        return text + (f"; {len(new)} tests fail only op by op ({new[0]})" if new else "")
    if failed:
        return f"the failure shows op by op: {len(failed)} of {len(outcomes)} tests fail under shadow"
    return f"no failure op by op: all {len(outcomes)} tests pass under shadow (compile-only failures don't show here)"


def _nothing(checked: int, ops: int) -> str:
    if not checked:
        return "no op on the card was checked: nothing can be said"
    return f"no op differs from the CPU: {checked} calls of {ops} ops and places checked"


def _suspect(suspect: Mapping[str, Any]) -> list[str]:
    where = f"{suspect['op']} at {suspect['site']}"
    if suspect.get("died"):
        test = f" in {suspect['nodeid']}" if suspect.get("nodeid") else ""
        return [f"the process ended ({suspect['died']}) while {where} ran{test}", *_arguments(suspect)]
    if suspect.get("error"):
        return [f"first: {where} raises on the card, not on the CPU: {suspect['error']}"]
    off = suspect.get("off") or {}
    share = f"{off.get('wrong'):,} of {off.get('total'):,} elements, up to {float(off.get('max_abs', 0)):.4g}"
    again = f"; repeated it {suspect['again']}" if suspect.get("again") else ""
    lines = [f"first op that differs: {where}: {share}{again}"]
    pattern = suspect.get("pattern") or {}
    if pattern.get("patterns"):
        lines.append(f"  {pattern['patterns'][0]['text']}")
    elif pattern.get("reason"):
        lines.append(f"  {pattern['verdict']}: {pattern['reason']}")
    return [*lines, *_arguments(suspect)]


def _arguments(suspect: Mapping[str, Any]) -> list[str]:
    text = ", ".join(argument_text(a) for a in (suspect.get("call") or {}).get("args") or ())
    return [f"  arguments: {text}"] if text else []


def argument_text(argument: Any) -> str:
    """An argument of a saved call, as `sweep` and `repro --op` read it."""
    if isinstance(argument, dict) and "tensor" in argument:
        body = argument["tensor"]
        short = body["dtype"].replace("bfloat", "bf").replace("float", "f").replace("uint", "u")
        short = short.replace("int", "i") if not short.startswith("u") else short
        text = f"{short}[{','.join(map(str, body['shape']))}]"
        text += "@" + ",".join(map(str, body["stride"])) if body.get("stride") else ""
        return text + (f"+{body['offset']}" if body.get("offset") else "")
    if isinstance(argument, dict):
        return str(argument.get("word", argument))
    if isinstance(argument, list):
        return "[" + ",".join(argument_text(a) for a in argument) + "]"
    return repr(argument)


def _traffic(report: Mapping[str, Any]) -> str:
    moved = report.get("transfers") or {}
    parts = [f"{way} {moved[way]['count']} ({moved[way]['bytes']:,} bytes)" for way in ("h2d", "d2h") if way in moved]
    fallbacks: dict[str, int] = {}
    for entry in report.get("fallbacks") or ():
        fallbacks[entry["op"]] = fallbacks.get(entry["op"], 0) + entry["count"]
    named = ", ".join(f"{op} x{count}" for op, count in sorted(fallbacks.items(), key=lambda i: -i[1])[:4])
    return f"transfers: {', '.join(parts)}; fallbacks: {named or 'none'}"


_ORDINARY = ("a view", "its contents are undefined", "a read of one value", "not asked for")


def _unchecked(ops: Sequence[Mapping[str, Any]]) -> list[str]:
    found: dict[str, dict[str, int]] = {}
    for op in ops:
        for reason, count in (op.get("unchecked") or {}).items():
            if reason not in _ORDINARY:
                found.setdefault(reason, {}).setdefault(op["op"], 0)
                found[reason][op["op"]] += count
    return [f"not checked ({reason}): {', '.join(sorted(names))}" for reason, names in sorted(found.items())][:2]
