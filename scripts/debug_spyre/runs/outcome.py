"""From a command's exit status to a run's status: what ended it, whether it counts, what has to be said."""

from __future__ import annotations

import re
from dataclasses import dataclass

from debug_spyre.vocabulary.evidence import Evidence, Outcome
from debug_spyre.vocabulary.words import RunStatus

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
    summary = _SUMMARY.findall(tail)
    told = sum(int(n) for n in _COUNT.findall(summary[-1])) if summary else 0
    if end.exit == 1 and told and not failing:
        return f"the output tells of {told} failed tests, the results of none"
    return None


def _refusal(tail: str) -> str:
    """Why pytest would not begin, in its own words."""
    told = list(dict.fromkeys((m[1] or m[2]).strip() for m in _REFUSED.finditer(tail)))
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
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
