"""The end of a run, whether it counts, and its warnings; and while it lasts, how far it is: a fold over its results, line by line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.vocabulary.evidence import Evidence, Outcome
from debug_spyre.vocabulary.words import RunStatus


@dataclass(frozen=True, slots=True)
class Progress:
    """Done and failing so far, of how many, and which test is running in which phase."""

    collected: int | None = None
    done: int = 0
    failed: int = 0
    current: str | None = None
    phase: str | None = None  # the phase that passed last
    started: bool = False
    finished: bool = False
    broken: bool = False  # the current test has failed already
    process: int = 0  # of a series: which of its processes runs; the counts are the first one's

    def says(self, *, seconds: float) -> str:
        """One line: done/collected, failing so far, elapsed, current test."""
        of = f"/{self.collected}" if self.collected is not None else ""
        what = f"{self.done}{of} done" if self.started else "starting"
        failing = f", {self.failed} failing" if self.failed else ""
        if self.process > 1:
            return f"process {self.process} of the series, {clock(seconds)} (the first: {what}{failing})"
        test = f", in {self.current}" if self.current else ""
        return f"{what}{failing}, {clock(seconds)}{test}"


def clock(seconds: float) -> str:
    """Seconds in words: 45 s, 3:20 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


def step(progress: Progress, line: str) -> Progress:
    """The progress after one more line of the results file."""
    try:
        event: dict[str, Any] = json.loads(line)
        kind = event["e"]
    except (ValueError, KeyError, TypeError):
        return progress
    if kind == "session_start":
        return replace(progress, started=True)
    if kind == "collected":
        return replace(progress, collected=len(event.get("ids") or ()))
    if kind == "start":
        return replace(progress, current=event.get("nodeid"), phase=None, broken=False)
    if kind == "report":
        return _reported(progress, event)
    if kind == "session_finish":
        return replace(progress, finished=True, current=None)
    return progress


def _reported(progress: Progress, event: dict[str, Any]) -> Progress:
    failed = event.get("outcome") == "failed"
    new = 1 if failed and not progress.broken else 0
    if event.get("phase") == "collect":
        return replace(progress, failed=progress.failed + 1)
    if event.get("phase") == "teardown":
        return replace(progress, done=progress.done + 1, failed=progress.failed + new, current=None, broken=False)
    return replace(progress, failed=progress.failed + new, phase=event.get("phase"), broken=progress.broken or failed)


NO_PYTEST = "there is no pytest in the interpreter that was chosen"
_RESYNC = re.compile(r"^\s*(?:Uninstalled|Installed) \d+ packages?\b.*$", re.MULTILINE)
_SPYRE = re.compile(r"^\s*[-+~] torch-spyre.*$", re.MULTILINE)
_REFUSED = re.compile(
    r"^ERROR: ((?:file or directory not found|not found|found no collectors for): .{1,300})"
    r"|^(?:.{1,200}: )?error: (.{1,300})",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+, )*\d+ [a-z]+(?:, \d+ [a-z]+)*) in \d[\d.]*s", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (?:failed|errors?)\b")
_FAILING = {Outcome.FAILED, Outcome.ERROR, Outcome.CRASHED, Outcome.TIMEOUT}
_UNCOUNTED = {RunStatus.INTERRUPTED, RunStatus.LOST, RunStatus.INVALID, RunStatus.BUSY}


@dataclass(frozen=True, slots=True)
class End:
    """How the command ended: its exit status (negative: signal), and why we ended it, if we did."""

    status: RunStatus | None  # None: it ended by itself; LOST: nobody saw its end
    exit: int | None
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The run's status, whether its evidence counts, and what to say about it."""

    status: RunStatus
    valid: bool
    warnings: tuple[str, ...] = ()


def judge(
    end: End, evidence: Evidence | None, *, is_pytest: bool, changed: bool, head: str, tail: str, has_results: bool
) -> Judged:
    """The run's status from its end, its evidence and the edges of its output. `changed`: the backend did, undeclared."""
    said: list[str] = []
    resync = _RESYNC.findall(head)
    if resync:
        lines = [*resync[:2], *_SPYRE.findall(head)[:2]]
        said.append("uv installed packages before the run: " + "; ".join(line.strip() for line in lines))
    if changed:
        return Judged(RunStatus.INVALID, valid=False, warnings=tuple(said))
    status = end.status or _by_exit(end.exit, is_pytest=is_pytest)
    if is_pytest and not has_results and "No module named pytest" in tail:
        said.append(f"{NO_PYTEST}; install it there, or name another: DEBUG_SPYRE_PYTHON=/path/to/python")
        return Judged(RunStatus.ERROR, valid=False, warnings=tuple(said))
    nothing = is_pytest and (end.exit == 5 or (end.exit == 4 and not (evidence and evidence.tests)))
    if nothing:
        said.append("no test ran" + (": nothing was selected" if end.exit == 5 else _refusal(tail)))
    forged = contradiction(end, evidence, tail) if is_pytest and end.status is None else None
    if forged:
        said.append(f"{forged}: its results prove nothing")
        return Judged(RunStatus.INVALID, valid=False, warnings=tuple(said))
    return Judged(status, valid=status not in _UNCOUNTED and not nothing, warnings=tuple(said))


def contradiction(end: End, evidence: Evidence | None, tail: str) -> str | None:
    """Where results that the test process wrote don't fit what its parent sees: exit status and printed summary."""
    if evidence is None or not evidence.tests:
        return None
    failing = {test.nodeid for test in evidence.tests if test.outcome in _FAILING}
    failing |= {failure.nodeid for failure in evidence.failures if failure.nodeid}
    if end.exit == 0 and failing:
        return f"the process ended with status 0, its results show {len(failing)} failing tests"
    if end.exit == 0 and not evidence.complete:
        return "the process ended with status 0 before pytest came to its end"
    # where all is said to be well only the very end counts: a test may print a summary of its own
    summary = _SUMMARY.findall(tail if end.exit else tail[-400:])
    told = sum(int(n) for n in _COUNT.findall(summary[-1])) if summary else 0
    if end.exit in {0, 1} and told and not failing:
        return f"the output tells of {told} failed tests, the results of none"
    return None


def _refusal(tail: str) -> str:
    """Why pytest would not begin, in its own words."""
    told = list(dict.fromkeys((m[1] or m[2]).strip() for m in _REFUSED.finditer(tail)))
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    if told and told[0].startswith("not found: ") and "::" in told[0]:  # pytest leaves the brackets out
        more += "; it may be the parameters in brackets that are not there: pytest --collect-only -q lists what is"
    return f": {told[0]}{more}" if told else ""


def _by_exit(code: int | None, *, is_pytest: bool) -> RunStatus:
    if code is None:
        return RunStatus.LOST
    if code < 0:
        return RunStatus.KILLED
    if code == 0:
        return RunStatus.PASSED
    if is_pytest and code > 1:
        return RunStatus.ERROR
    return RunStatus.FAILED
