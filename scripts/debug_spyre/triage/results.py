"""The results file of our own recorder: one JSON object a line, the most trusted source.

A test that was set up but has no report of its call is where the process ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from debug_spyre.triage.block import Block, Frame
from debug_spyre.triage.fallback_warnings import FALLBACK_TEXT
from debug_spyre.triage.judging import judge
from debug_spyre.triage.lines import clean
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.vocabulary.codec import FormError, from_json
from debug_spyre.vocabulary.evidence import (
    Counts,
    Evidence,
    Failure,
    Fallback,
    Kind,
    Outcome,
    TestRecord,
    Unrecognised,
    Work,
)

_OUTCOME_OF = {Kind.CRASH: Outcome.CRASHED, Kind.TIMEOUT: Outcome.TIMEOUT}


@dataclass(slots=True)
class Results:
    """Feed it the file's objects; `evidence` then holds what they say."""

    source: str
    rules: Sequence[Rule] = RULES
    collected: list[str] = field(default_factory=list)
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)  # node id -> the phase that is next
    fallbacks: dict[tuple[str, str | None, int | None], dict[str, None]] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)  # tests whose call passed, whatever their teardown did
    work: dict[str, Work] = field(default_factory=dict)
    reruns: dict[str, int] = field(default_factory=dict)
    finished: bool = False
    begun: bool = False

    def feed(self, data: dict[str, Any], number: int) -> None:
        """Take in one object; unknown kinds are left alone."""
        event = data.get("e")
        nodeid = data.get("nodeid")
        if event == "session_start":
            self.begun = True
        elif event == "session_finish":
            self.finished = True
        elif event == "collected":
            self.collected = [str(i) for i in data.get("ids") or ()]
        elif event == "warning":
            self._warning(data)
        elif event == "mode" and isinstance(nodeid, str):
            self.modes[nodeid] = str(data.get("compile_mode"))
        elif event == "start" and isinstance(nodeid, str):
            self.running[nodeid] = "setup"
        elif event == "work" and isinstance(nodeid, str):
            with suppress(FormError):
                self.work[nodeid] = from_json(Work, data)
        elif event in {"rerun", "retried"} and isinstance(nodeid, str):
            self.reruns[nodeid] = self.reruns.get(nodeid, 0) + 1
        elif event == "report" and isinstance(nodeid, str):
            self._report(nodeid, data, number)
        elif event == "died" and isinstance(nodeid, str):
            self._died(nodeid, data, number)

    def _died(self, nodeid: str, data: dict[str, Any], number: int) -> None:
        """One of several processes of a run ended in this test; the driver that saw it says so."""
        kind = Kind.TIMEOUT if data.get("hung") else Kind.CRASH
        self.running.pop(nodeid, None)
        self.failures[(nodeid, "call")] = replace(self._failure(nodeid, "call", data, number), kind=kind)
        self.outcomes[nodeid] = _OUTCOME_OF[kind]

    def _report(self, nodeid: str, data: dict[str, Any], number: int) -> None:
        phase, outcome = str(data.get("phase")), str(data.get("outcome"))
        seconds = data.get("seconds")
        if isinstance(seconds, int | float):
            self.seconds[nodeid] = self.seconds.get(nodeid, 0.0) + float(seconds)
        if phase in {"setup", "call"}:
            self.running[nodeid] = "call" if phase == "setup" else "teardown"
        if phase == "teardown" or (phase == "setup" and outcome != "passed"):
            self.running.pop(nodeid, None)
        expected = data.get("wasxfail") is not None
        if outcome == "failed":
            self.failures[(nodeid, phase)] = self._failure(nodeid, phase, data, number)
            if phase == "call" or nodeid not in self.outcomes or self.outcomes[nodeid] is not Outcome.FAILED:
                self.outcomes[nodeid] = Outcome.FAILED if phase == "call" else Outcome.ERROR
        elif phase == "teardown":
            return
        elif outcome == "skipped":
            self.outcomes[nodeid] = Outcome.XFAILED if expected else Outcome.SKIPPED
        elif phase == "call":
            self.outcomes[nodeid] = Outcome.XPASSED if expected else Outcome.PASSED
            if not expected:
                self.passed.add(nodeid)
            if self.failures.pop((nodeid, "call"), None) is not None:
                self.reruns[nodeid] = self.reruns.get(nodeid, 0) + 1

    def _failure(self, nodeid: str, phase: str, data: dict[str, Any], number: int) -> Failure:
        block = Block(title=nodeid, phase=phase, nodeid=nodeid, number=number)
        for line in str(data.get("text") or "").split("\n"):
            block.feed(clean(line))
        exceptions = [e for e in data.get("exceptions") or () if isinstance(e, dict)]
        if exceptions:
            _take_exceptions(block, exceptions)
        if data.get("strict_xpass"):
            block.plain.append("[XPASS(strict)]")
        block.in_captured = True
        for section in data.get("sections") or ():
            text = section[1] if isinstance(section, list | tuple) and len(section) > 1 else ""
            for line in str(text).split("\n"):
                block.feed(clean(line))
        failure = judge(block, source=self.source, rules=self.rules)
        return _with_numbers(failure, data.get("mismatch"))

    def _warning(self, data: dict[str, Any]) -> None:
        if not str(data.get("category") or "").endswith("FallbackWarning"):
            return
        match = FALLBACK_TEXT.match(str(data.get("message") or "").strip())
        if match is None:
            return
        line = data.get("line")
        key = (match[1].strip(), data.get("file"), line if isinstance(line, int) else None)
        into = self.fallbacks.setdefault(key, {})
        if data.get("nodeid"):
            into[str(data["nodeid"])] = None

    def left_open(self) -> str | None:
        """The test that was running when the file ends."""
        return next(reversed(self.running), None) if not self.finished else None

    def evidence(self, ending: Failure | None = None) -> Evidence:
        """All that the file says; `ending` is what the output shows about the process's end."""
        failures = list(self.failures.values())
        outcomes = {n: self.outcomes.get(n, Outcome.MISSING) for n in self.collected} | self.outcomes
        if ending is not None and ending.nodeid is not None:
            failures.append(ending)
            outcomes[ending.nodeid] = _OUTCOME_OF.get(ending.kind, Outcome.MISSING)
        elif ending is not None:
            failures.append(ending)
        by_test: dict[str, set[str]] = {}
        for (op, _, _), tests in self.fallbacks.items():
            for test in tests:
                by_test.setdefault(test, set()).add(op)
        records = tuple(
            TestRecord(
                n, o, self.seconds.get(n), self.modes.get(n), tuple(sorted(by_test.get(n, ()))), self.reruns.get(n, 0)
            )
            for n, o in outcomes.items()
        )
        return Evidence(
            sources=(self.source,),
            counts=self._counts(outcomes),
            complete=self.finished,
            failures=tuple(failures),
            fallbacks=tuple(Fallback(o, f, ln, tuple(t)) for (o, f, ln), t in self.fallbacks.items()),
            tests=records,
            unrecognised=tuple(
                Unrecognised(f.source, f.line, (f.message or "no text").split("\n", 1)[0][:200])
                for f in failures
                if f.rule is None and f.kind is not Kind.MISMATCH
            ),
            collected=len(self.collected) or None,
            selected=tuple(self.collected),
            work=tuple(self.work.values()),
        )

    def _counts(self, outcomes: dict[str, Outcome]) -> Counts | None:
        if not self.begun and not outcomes:
            return None
        values = list(outcomes.values())
        errors = sum(1 for (_, phase) in self.failures if phase != "call")
        return Counts(
            passed=len(self.passed - {nodeid for (nodeid, phase) in self.failures if phase == "call"}),
            failed=sum(1 for (_, phase) in self.failures if phase == "call"),
            errors=errors,
            skipped=values.count(Outcome.SKIPPED),
            xfailed=values.count(Outcome.XFAILED),
            xpassed=values.count(Outcome.XPASSED),
        )


def _take_exceptions(block: Block, exceptions: list[dict[str, Any]]) -> None:
    if not block.errors:
        for line in f"{exceptions[0].get('cls')}: {exceptions[0].get('message')}".split("\n"):
            block.feed(f"E   {line}")
    frames = [
        Frame(str(f.get("file")), f["line"] if isinstance(f.get("line"), int) else 0, f.get("name"))
        for f in exceptions[-1].get("frames") or exceptions[0].get("frames") or ()
        if isinstance(f, dict)
    ]
    if frames and not block.frames:
        block.frames.extend(frames[-60:])
    inner = exceptions[-1]
    if len(exceptions) > 1:
        block.captured.append(f"{inner.get('cls')}: {inner.get('message')}"[:4000])


def _with_numbers(failure: Failure, numbers: Any) -> Failure:
    if failure.kind is not Kind.MISMATCH or not isinstance(numbers, dict):
        return failure
    values: dict[str, Any] = {}
    for name in ("mismatched", "total", "max_abs", "max_rel"):
        value = numbers.get(name)
        if value is None:
            continue
        try:
            values[name] = float(value) if name.startswith("max") else int(value)
        except (TypeError, ValueError, OverflowError):
            continue
    return replace(failure, **values)
