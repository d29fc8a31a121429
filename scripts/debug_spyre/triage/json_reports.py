"""Reports that pytest's plugins write as JSON: pytest-reportlog (a line a report) and pytest-json-report (one object)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_PHASES = ("setup", "call", "teardown")


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
        for phase in _PHASES:
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
