"""Reports of pytest's plugins, a case at a time: JUnit XML (xunit1 and xunit2, node ids rebuilt), pytest-reportlog, pytest-json-report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from debug_spyre.triage.block import Block
from debug_spyre.triage.block_owner import with_first_verdict
from debug_spyre.triage.fallback_warnings import Warned
from debug_spyre.triage.judging import judge
from debug_spyre.triage.lines import clean
from debug_spyre.triage.nodeids import file_of, from_junit
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.vocabulary.evidence import Counts, Evidence, Failure, Kind, Outcome, TestRecord, Unrecognised

_PHASES_json_reports = ("setup", "call", "teardown")


def is_reportlog(data: Any) -> bool:
    """A line of pytest-reportlog."""
    return isinstance(data, dict) and "$report_type" in data


def is_json_report(data: Any) -> bool:
    """The object of pytest-json-report."""
    return isinstance(data, dict) and isinstance(data.get("tests"), list) and isinstance(data.get("summary"), dict)


def from_reportlog(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects that our own recorder would have written."""
    kind = data.get("$report_type")
    if kind in {"TestReport", "CollectReport"} and isinstance(data.get("nodeid"), str):
        phase = "collect" if kind == "CollectReport" else data.get("when")
        if kind == "CollectReport" and data.get("outcome") != "failed":
            return
        yield _report(data["nodeid"], str(phase), data, str(data.get("outcome")), _text(data.get("longrepr")))
    elif kind == "WarningMessage":
        yield {**data, "e": "warning", "line": data.get("lineno"), "file": data.get("filename")}
    elif data.get("$report_type") == "SessionFinish" or "exitstatus" in data:
        yield {"e": "session_finish"}
    elif kind == "SessionStart" or "pytest_version" in data:
        yield {"e": "session_start"}


def from_json_report(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same of pytest-json-report."""
    yield {"e": "session_start"}
    for collector in data.get("collectors") or ():
        if isinstance(collector, dict) and collector.get("outcome") == "failed":
            yield _report(
                str(collector.get("nodeid")), "collect", collector, "failed", _text(collector.get("longrepr"))
            )
    for test in data["tests"]:
        if not isinstance(test, dict) or not isinstance(test.get("nodeid"), str):
            continue
        expected = {"wasxfail": ""} if str(test.get("outcome")).startswith("x") else {}
        for phase in _PHASES_json_reports:
            stage = test.get(phase)
            if isinstance(stage, dict):
                text = _text(stage.get("longrepr"))
                yield {**_report(test["nodeid"], phase, stage, str(stage.get("outcome")), text), **expected}
    yield {"e": "session_finish"}


def _report(nodeid: str, phase: str, data: dict[str, Any], outcome: str, text: str) -> dict[str, Any]:
    sections = data.get("sections") or [
        (k, data[k]) for k in ("stdout", "stderr", "log") if isinstance(data.get(k), str)
    ]
    found = {"e": "report", "nodeid": nodeid, "phase": phase, "outcome": outcome, "text": text, "sections": sections}
    found["seconds"] = data.get("duration")
    return found | ({"wasxfail": data["wasxfail"]} if "wasxfail" in data else {})


def _text(longrepr: Any) -> str:
    """What pytest would have printed of a failure."""
    if isinstance(longrepr, str):
        return longrepr
    if isinstance(longrepr, list):
        return str(longrepr[-1]) if longrepr else ""
    if not isinstance(longrepr, dict):
        return ""
    chain = longrepr.get("chain") or [(longrepr.get("reprtraceback"), longrepr.get("reprcrash"), None)]
    lines: list[str] = []
    for traceback, *_, said in chain:
        for entry in (traceback or {}).get("reprentries") or ():
            entry = entry.get("data") or {}
            lines += [str(line) for line in entry.get("lines") or ()]
            place = entry.get("reprfileloc") or {}
            if place.get("path"):
                lines += ["", f"{place['path']}:{place.get('lineno')}: {place.get('message') or ''}".rstrip(), ""]
        lines += [str(said)] if said else []
    return "\n".join(lines)


_LISTS = ("events", "logEvents", "entries", "logs", "items", "hits", "results", "records", "data", "messages", "lines")


def log_entries(text: bytes) -> list[Any] | None:
    """The entries of one JSON document that is a list of log entries, or holds one; None where it is none."""
    try:
        data = json.loads(text)
    except ValueError:
        return None
    for key in _LISTS if isinstance(data, dict) and "schema" not in data else ():
        if isinstance(data.get(key), list):
            data = data[key]
            break
    if not isinstance(data, list) or len(data) < 2 or not all(isinstance(e, (dict, str)) for e in data):
        return None
    return [f"{e.rstrip(chr(10))}\n" if isinstance(e, str) else e for e in data]


_PHASES = (("failed on setup", "setup"), ("failed on teardown", "teardown"), ("collection failure", "collect"))
_OUTCOME_OF = {Kind.CRASH: Outcome.CRASHED, Kind.TIMEOUT: Outcome.TIMEOUT}


@dataclass(slots=True)
class Junit:
    """Feed it finished `testcase` elements; `evidence` then holds what they say."""

    source: str
    line_of: Callable[[str], int | None]
    rules: Sequence[Rule] = RULES
    failures: list[Failure] = field(default_factory=list)
    records: dict[str, TestRecord] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    warned: Warned = field(default_factory=Warned)

    def case(self, case: Element) -> None:
        """Take in one test case."""
        nodeid = from_junit(case.get("classname") or "", case.get("name") or "", case.get("file"))
        outcome, phases = Outcome.PASSED, []
        for child in case:
            if child.tag in {"failure", "error"}:
                failure = self._failure(nodeid, child, case)
                phases.append(failure.phase)
                self.failures.append(failure)
                word = "failed" if child.tag == "failure" else "errors"
                self.totals[word] = self.totals.get(word, 0) + 1
                default = Outcome.FAILED if child.tag == "failure" else Outcome.ERROR
                outcome = _OUTCOME_OF.get(failure.kind, default)
            elif child.tag == "skipped":
                expected = (child.get("type") or "") == "pytest.xfail"
                outcome = Outcome.XFAILED if expected else Outcome.SKIPPED
                word = "xfailed" if expected else "skipped"
                self.totals[word] = self.totals.get(word, 0) + 1
        only_teardown = phases == ["teardown"]
        before = self.records.get(nodeid)
        if only_teardown and before is not None and before.outcome not in {Outcome.PASSED, Outcome.ERROR}:
            return  # pytest writes a second case where the teardown of a failed test fails too
        if outcome is Outcome.PASSED or only_teardown:  # its call had passed
            self.totals["passed"] = self.totals.get("passed", 0) + 1
        self.records[nodeid] = TestRecord(nodeid, outcome, _seconds(case.get("time")))

    def _failure(self, nodeid: str, child: Element, case: Element) -> Failure:
        message = child.get("message") or ""
        phase = next((name for words, name in _PHASES if message.startswith(words)), None)
        phase = phase or ("call" if child.tag == "failure" else "setup")
        block = Block(title=nodeid, phase=phase, nodeid=nodeid, number=self.line_of(case.get("name") or "") or 0)
        if phase == "collect":
            block.nodeid = file_of(nodeid)
        for line in (child.text or "").split("\n"):
            block.feed(clean(line))
        if not block.errors:
            for line in message.split("\n"):
                block.feed(f"E   {line}")
        block.in_captured = True
        for name in ("system-err", "system-out"):
            for line in (case.findtext(name) or "").split("\n"):
                block.feed(clean(line))
                self.warned.feed(clean(line), nodeid=nodeid)
        return judge(block, source=self.source, rules=self.rules)

    def evidence(self, *, complete: bool, warnings: tuple[str, ...] = ()) -> Evidence:
        """All that the cases say."""
        unknown = tuple(
            Unrecognised(f.source, f.line, (f.message or "no text").split("\n", 1)[0][:200])
            for f in self.failures
            if f.rule is None and f.kind is not Kind.MISMATCH
        )
        return Evidence(
            sources=(self.source,),
            counts=Counts(**self.totals) if self.records or complete else None,
            complete=complete,
            failures=tuple(with_first_verdict(self.failures)),
            fallbacks=self.warned.result(),
            tests=tuple(self.records.values()),
            unrecognised=unknown,
            warnings=(*self.warned.notes, *warnings),
            collected=len(self.records) or None,
        )


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
