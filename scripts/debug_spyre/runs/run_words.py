"""A run's answer in a few lines: an agent pays for each. <= 1.5 kB for one failure, <= 4 kB for fifty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from debug_spyre.runs.outcome import clock
from debug_spyre.triage.digest import short_name

MOST_LINES = 10
MOST_NAMES = 8
LINE = 200
SESSION = "(session)"
_COUNTS = ("passed", "failed", "errors", "skipped", "xfailed", "xpassed")


def says(data: dict[str, Any], *, stem: str, chosen: str | None = None, state: dict[str, Any] | None = None) -> str:
    """The run's JSON form (contracts) as text; `stem` names its folder in the next command."""
    if data["status"] == "running":
        return _running(data, stem, state or {})
    lines = [_headline(data)]
    lines += [f"  warning: {_cut(w)}" for w in data["warnings"][:4]]
    lines += [f"  still on the card: {_cut(h)}" for h in data["holders"]]
    table = data.get("table") or []
    lines += [f"  {_cut(line)}" for line in table] if table else _failing(data, data.get("digest", [])[:MOST_LINES])
    if not data.get("digest"):
        lines += [f"  | {_cut(line)}" for line in data.get("tail") or ()]
    if chosen:
        lines.append(f"python: {_cut(chosen)}")
    lines.append(f"output: {data['output']}")
    if data["log"]:
        lines.append(f"log: {data['log']}")
    following = _next(data, stem)
    if following:
        lines.append(f"next: {following}")
    return "\n".join(lines)


def _running(data: dict[str, Any], stem: str, state: dict[str, Any]) -> str:
    name = f" ({data['name']})" if data["name"] else ""
    if state.get("state") == "waiting":
        holder = f", held by {_cut(str(state['holder']))}" if state.get("holder") else ""
        what = f"{data['run']}{name} waits for the card{holder}"
    else:
        what = f"{data['run']}{name} is still running"
        progress = data.get("progress") or {}
        if progress.get("text"):
            what += f": {_cut(progress['text'])}"
    quiet = f"\n  warning: {_cut(str(state['quiet']))}" if state.get("quiet") else ""
    return f"{what}{quiet}\noutput: {data['output']}\nnext: debug-spyre wait {data['run']} --session {stem}"


def _headline(data: dict[str, Any]) -> str:
    name = f" {data['name']}" if data["name"] else ""
    counts = data["counts"] or {}
    shown = ", ".join(f"{counts[key]} {key}" for key in _COUNTS if counts.get(key))
    scope = data["scope"]
    where = f"; scope {scope['digest']}, {scope['collected']} tests" if scope.get("digest") else ""
    ended = "" if data["exit"] is None else f", exit {data['exit']}"
    row = f"; hypothesis {data['hypothesis']}" if data["hypothesis"] is not None else ""
    count = f" ({shown})" if shown else ""
    void = "" if data["valid"] else "; does not count as evidence"
    return f"{data['run']}{name}: {data['status']}{count} in {clock(data['seconds'])}{ended}{where}{row}{void}"


def _failing(data: dict[str, Any], digest: Sequence[str]) -> list[str]:
    """Each failing test with what the digest says of it below, then what is said of no test."""
    names = list(dict.fromkeys(f["nodeid"] or SESSION for f in data["failures"]))
    lines, left = [], list(digest)
    for name in names[:MOST_NAMES]:
        head = f"{short_name(None if name == SESSION else name)}: "
        own = [line for line in left if line.startswith(head)]
        left = [line for line in left if line not in own]
        lines.append(f"  FAILED {_cut(name)}")
        lines += [f"    {_cut(line.removeprefix(head))}" for line in own]
    if len(names) > MOST_NAMES:
        lines.append(f"  ... and {len(names) - MOST_NAMES} more failing; all in the log and in --json")
    return lines + [f"  {_cut(line)}" for line in left]


def _next(data: dict[str, Any], stem: str) -> str | None:
    if data["status"] == "orphans":
        return "end what still holds the card, then repeat the run (debug-spyre lock shows who)"
    if data["status"] == "invalid":
        return "debug-spyre doctor; then repeat the run"
    if data["status"] in {"interrupted", "lost"}:
        return "repeat the run"
    if any(w.startswith("no test ran") for w in data["warnings"]):
        return "repeat the run with node ids that exist, as they begin at the checkout's root"
    if data["session"] is None:
        return "debug-spyre triage, with the same words: it prints clusters to open" if data["failures"] else None
    if data["hypothesis"] is not None:
        return f"debug-spyre hypothesis conclude {data['hypothesis']} VERDICT 'SENTENCE' --run {data['run']}"
    if data["name"] == "baseline" and data["status"] != "passed":
        return "debug-spyre hypothesis seed"
    return f"debug-spyre status --session {stem}"


def _cut(text: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= LINE else plain[: LINE - 3] + "..."
