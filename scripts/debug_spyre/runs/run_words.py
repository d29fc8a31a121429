"""The answers of runs in a few lines (an agent pays for each), and the tables of the ready experiments with what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.runs.outcome import clock
from debug_spyre.runs.transitions import FAILING
from debug_spyre.triage.digest import short_name
from debug_spyre.vocabulary.evidence import Evidence, Outcome


@dataclass(frozen=True, slots=True)
class Spoilers:
    """The set found, in running order. `shown`: the whole of what ran before did spoil it, seen again."""

    tests: tuple[str, ...]
    shown: bool
    complete: bool  # taking any one of them away cures it (False: the budget was used up first)
    tries: int


class _SpentError(Exception):
    """No try is left."""


def smallest(before: Sequence[str], spoils: Callable[[tuple[str, ...]], bool], *, budget: int) -> Spoilers:
    """The smallest subset of `before` (its order kept) for which `spoils` still answers yes, in `budget` tries."""
    tries = 0
    known: dict[tuple[str, ...], bool] = {}

    def ask(tests: Sequence[str]) -> bool:
        nonlocal tries
        key = tuple(tests)
        if key not in known:
            if tries >= budget:
                raise _SpentError
            tries += 1
            known[key] = spoils(key)
        return known[key]

    current = list(before)
    try:
        if not current or not ask(current):
            return Spoilers((), shown=False, complete=False, tries=tries)
        parts = 2
        while len(current) > 1:
            chunks = _chunks(current, parts)
            found = next((c for c in reversed(chunks) if ask(c)), None)
            if found is not None:
                current, parts = found, 2
                continue
            rests = [[t for other in chunks if other is not c for t in other] for c in chunks] if parts > 2 else []
            rest = next((r for r in rests if ask(r)), None)
            if rest is not None:
                current, parts = rest, max(parts - 1, 2)
            elif parts >= len(current):
                break
            else:
                parts = min(parts * 2, len(current))
    except _SpentError:
        return Spoilers(tuple(current), shown=True, complete=False, tries=tries)
    return Spoilers(tuple(current), shown=True, complete=True, tries=tries)


def _chunks(tests: list[str], parts: int) -> list[list[str]]:
    size, more = divmod(len(tests), parts)
    chunks, start = [], 0
    for number in range(parts):
        end = start + size + (1 if number < more else 0)
        chunks.append(tests[start:end])
        start = end
    return [chunk for chunk in chunks if chunk]


MOST = 7


@dataclass(frozen=True, slots=True)
class Seen:
    """What one process showed of one test: its outcome and the figures of its mismatch, if any."""

    outcome: Outcome
    figures: str | None = None

    @property
    def fails(self) -> bool:
        """It counts as failing."""
        return self.outcome in FAILING

    def says(self) -> str:
        """In one word, with the figures."""
        return f"{self.outcome.value} ({self.figures})" if self.figures else self.outcome.value


def seen_in(evidence: Evidence | None) -> dict[str, Seen]:
    """Each test of a process with what it showed; a test that was collected and has no outcome is missing."""
    if evidence is None:
        return {}
    figures = {
        f.nodeid: f"{f.mismatched}/{f.total}, {f.max_abs:g}"
        for f in evidence.failures
        if f.nodeid and f.mismatched is not None and f.max_abs is not None
    }
    found = {test.nodeid: Seen(test.outcome, figures.get(test.nodeid)) for test in evidence.tests}
    for nodeid in evidence.selected:
        found.setdefault(nodeid, Seen(Outcome.MISSING))
    return found


def repeated(runs: Sequence[Mapping[str, Seen]]) -> tuple[list[str], dict[str, Any]]:
    """Lines and data of `--repeat`: which tests always did the same."""
    nodeids = list(dict.fromkeys(nodeid for run in runs for nodeid in run))
    rows = {n: [run.get(n, Seen(Outcome.MISSING)) for run in runs] for n in nodeids}
    wavering = [n for n in nodeids if len({seen.fails for seen in rows[n]}) > 1]
    drifting = [n for n in nodeids if n not in wavering and len({seen.figures for seen in rows[n]}) > 1]
    lines = [f"{len(runs)} processes, {len(nodeids)} tests, one after the other, the same arguments"]
    lines += [f"  {n}: failed in {sum(s.fails for s in rows[n])} of {len(runs)}" for n in wavering[:MOST]]
    lines += [f"  {n}: always the same outcome, other figures: {_figures(rows[n])}" for n in drifting[:3]]
    if not nodeids:
        lines.append("no test ran: this says nothing")
    elif wavering:
        lines.append("not deterministic: something outlasts a process or is random (cache, memory content, seeds)")
    elif drifting:
        lines.append("outcomes are deterministic, magnitudes are not: uninitialised memory or an unordered reduction")
    else:
        lines.append("deterministic: the same outcome and figures every time")
    data = {
        "runs": len(runs),
        "rows": [{"nodeid": n, "outcomes": [s.outcome.value for s in rows[n]]} for n in nodeids],
        "deterministic": bool(nodeids) and not wavering and not drifting,
    }
    return lines, data


def isolated(alone: Mapping[str, Seen], before: Mapping[str, Seen]) -> tuple[list[str], dict[str, Any]]:
    """Lines and data of `--isolate`: each test in a process of its own, against the newest run that had it."""
    failing = [n for n in alone if alone[n].fails]
    cured = [n for n in alone if n in before and before[n].fails and not alone[n].fails]
    new = [n for n in alone if n in before and not before[n].fails and alone[n].fails]
    lines = [f"{len(alone)} tests, each in a process of its own: {len(failing)} fail"]
    lines += [f"  {n}: passes alone, failed among others" for n in cured[:MOST]]
    lines += [f"  {n}: fails alone, passed among others" for n in new[:MOST]]
    if not alone:
        lines.append("no test ran: this says nothing")
    elif cured:
        lines.append("carry-over: what ran earlier in the process matters (debug-spyre run --alone finds the spoiler)")
    elif new:
        lines.append("these need something that an earlier test sets up (warm-up, a cache that is seeded)")
    elif before:
        lines.append("no carry-over seen: alone and among others agree")
    else:
        lines.append("no earlier run had these tests: nothing to compare with")
    rows = [{"nodeid": n, "alone": alone[n].outcome.value, "before": _outcome(before.get(n))} for n in alone]
    return lines, {"rows": rows, "carry_over": cured, "needs_others": new}


def alone_against(
    matrix: Mapping[str, Seen], alone: Mapping[str, Seen], spoilers: Mapping[str, Spoilers]
) -> tuple[list[str], dict[str, Any]]:
    """Lines and data of `--alone`: failing tests again by themselves, and for those that change, who spoils them."""
    changed = [n for n in alone if not alone[n].fails]
    figures = [n for n in alone if alone[n].fails and alone[n].figures != matrix[n].figures]
    lines = [f"{len(alone)} of {len(matrix)} tests fail in the matrix; alone {len(alone) - len(changed)} of them fail"]
    for nodeid in changed[:MOST]:
        lines.append(f"  {nodeid}: {matrix[nodeid].says()} in the matrix, {alone[nodeid].says()} alone")
        lines += _spoiled(spoilers.get(nodeid))
    lines += [f"  {n}: {matrix[n].says()} in the matrix, {alone[n].says()} alone" for n in figures[:3]]
    if not matrix:
        lines.append("no test ran: this says nothing")
    elif not alone:
        lines.append("nothing fails: nothing to compare")
    elif changed:
        lines.append("carry-over: state that an earlier test leaves in the process or on the card")
    elif figures:
        lines.append("they fail either way with other figures: never compare magnitudes across the two")
    else:
        lines.append("no carry-over: the failures do not depend on what ran before")
    rows = [
        {
            "nodeid": n,
            "matrix": matrix[n].outcome.value,
            "alone": alone[n].outcome.value,
            "spoilers": list(spoilers[n].tests) if n in spoilers else None,
            "minimal": spoilers[n].complete if n in spoilers else None,
            "tries": spoilers[n].tries if n in spoilers else None,
        }
        for n in alone
    ]
    return lines, {"rows": rows, "carry_over": changed}


def _spoiled(found: Spoilers | None) -> list[str]:
    if found is None:
        return ["    the spoiler was not looked for: the budget was used up"]
    if not found.shown:
        return ["    with the same tests before it, it passed the second time: not deterministic, or not their doing"]
    what = "spoiled by" if found.complete else "spoiled by some of (the budget ended the search)"
    more = f" and {len(found.tests) - 4} more" if len(found.tests) > 4 else ""
    return [f"    {what} {', '.join(found.tests[:4])}{more} ({found.tries} {'try' if found.tries == 1 else 'tries'})"]


def _figures(seen: Sequence[Seen]) -> str:
    return "; ".join(dict.fromkeys(s.figures or "none" for s in seen))


def _outcome(seen: Seen | None) -> str | None:
    return seen.outcome.value if seen else None


MOST_LINES = 10
MOST_NAMES = 8
LINE = 200
SESSION = "(session)"
_COUNTS = ("passed", "failed", "errors", "skipped", "xfailed", "xpassed")


def says(
    data: dict[str, Any],
    *,
    stem: str,
    chosen: str | None = None,
    state: dict[str, Any] | None = None,
    concluded: str | None = None,
) -> str:
    """The run's JSON form (contracts) as text.

    Args:
        data: what RunRecord.to_json gives.
        stem: the folder that the next command names.
        chosen: which Python ran it, where that is to be said.
        state: of a run that goes on.
        concluded: the verdict that the run gave on its hypothesis, as was foretold.
    """
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
    if concluded:
        lines.append(_cut(concluded))
    following = f"debug-spyre status --session {stem}" if concluded else _next(data, stem)
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
