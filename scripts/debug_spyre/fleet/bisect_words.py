"""The result of a bisection, in words and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from debug_spyre.fleet.bisect_record import Record

MOST = 6


def to_json(
    record: Record, facts: Mapping[str, Any], *, git: Sequence[str] = (), ops: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`facts`: of the likeliest commit, as git has them; `ops`: what `op` says of the builds on both sides of it."""
    (among, sure), sides = record.groups[0], {r: word for word, r in record.sides()}
    found = sure >= record.confidence
    return {
        "status": "found" if found and len(among) == 1 else "among" if found else "unsettled",
        "commit": dict(facts),
        "among": list(among) if found else [name for group, odds in record.groups if odds >= 0.01 for name in group],
        "confidence": round(sure, 4),
        "wanted": record.confidence,
        "commits": len(record.history.revisions),
        "good": {"revision": record.good, **asdict(record.tally(record.good))},
        "bad": {"revision": record.bad, **asdict(record.tally(record.bad))},
        "tried": [
            {"revision": name, "side": sides.get(name, "bad"), **asdict(tally)}
            for name, tally in record.tallies.items()
        ],
        "untestable": record.untestable,
        "fault": sorted(record.fault),
        "runs": len(record.runs),
        "git": list(git),
        "ops": dict(ops) if ops is not None else None,
    }


def say(record: Record, answer: Mapping[str, Any], *, clone: str) -> list[str]:
    """The answer in a dozen lines."""
    facts, among, sure = answer["commit"], answer["among"], answer["confidence"]
    short = facts["sha"][:12]
    if answer["status"] == "found":
        head = f"{short} is the first commit with the fault, of {answer['commits']} (confidence {_percent(sure)})"
    elif answer["status"] == "among":
        head = f"one of {len(among)} commits that no run tells apart brought the fault (confidence {_percent(sure)}); {short} is the last of them"
    else:
        head = f"not settled: {short} is the likeliest of {answer['commits']} ({_percent(sure)}, wanted {_percent(record.confidence)})"
    lines = [head, f"  {facts['date']} {facts['subject']}"]
    files = facts["files"]
    more = f" and {len(files) - MOST} more" if len(files) > MOST else ""
    lines.append(f"  files: {', '.join(files[:MOST]) or 'none'}{more}")
    if answer["status"] != "found":
        lines.append(f"  among: {', '.join(name[:12] for name in among[:MOST])}{' ...' if len(among) > MOST else ''}")
    tried = {row["revision"]: row for row in answer["tried"]}
    ordered = [name for name in record.history.revisions if name in tried]
    before = [name for name in ordered if tried[name]["side"] == "good"][-1:] or [record.good]
    after = [name for name in ordered if tried[name]["side"] == "bad"][:1]
    lines += [f"  {name[:12]} {record.tally(name).says()}" for name in (*before, *after)]
    lines.append(f"  the fault: {answer['fault'][0][:160] if answer['fault'] else 'unknown'}")
    left = answer["untestable"]
    lines.append(f"  {answer['runs']} runs at {len(tried) + 1} revisions; {len(left)} left out")
    lines += [f"    {name[:12]}: {why[:140]}" for name, why in list(left.items())[:3]]
    lines += _ops(answer["ops"] or {})
    return [*lines, f"next: git -C {clone} show {short}"]


def _ops(ops: Mapping[str, Any]) -> list[str]:
    """The ops that changed between the build before it and its own."""
    if "between" not in ops or "trouble" in ops:
        return [f"  ops: unknown, {ops['trouble']}"] if "trouble" in ops else []
    before, after = (revision[:12] for revision in ops["between"])
    rows = [f"{c['op']} {c['mode']}: {c['kind']}, {c['before']} before, {c['after']} after" for c in ops["changes"]]
    more = [f"    and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return [f"  ops: {len(rows)} changed between {before} and {after}", *(f"    {row}" for row in rows[:MOST]), *more]


def _percent(odds: float) -> str:
    """Never more than it is: 99.9 % is as far as it goes."""
    return f"{min(int(odds * 1000) / 10, 99.9):g} %"
