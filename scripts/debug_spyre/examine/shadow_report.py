"""A shadow run in words: does the failure show op by op, which op differs first, and what was not checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
