"""First-failure reports of torch-spyre (FFDC): what one says, and which failure of a run it belongs to.

A report may be a stale one of another process: only pid and time together make it this run's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Stage

NAME = re.compile(r"ffdc_(?P<category>[a-z_]+?)_(?P<stamp>[\dT:.-]+)_(?P<micro>\d+)_(?P<pid>\d+)\.json$")
STAGES = {
    "compile_frontend": Stage.LOWERING,
    "compile_backend": Stage.CODEGEN,
    "runtime_launch": Stage.RUNTIME,
    "unimplemented": Stage.CODEGEN,
}
TELLING = 20  # characters; a shorter message stands in too many failures to tell one
_KINDS = {"compile_frontend": Kind.COMPILE, "compile_backend": Kind.COMPILE}


@dataclass(frozen=True, slots=True)
class Report:
    """One report, as far as its file says it."""

    path: str
    category: str
    error_class: str | None
    message: str | None
    pid: int | None

    def says(self) -> str:
        """One line for people."""
        text = " ".join((self.message or "no message").split())[:160]
        return f"first-failure report ({self.category}): {self.error_class or 'error'}: {text} [{self.path}]"


def parse(data: Any, path: str) -> Report | None:
    """The report in a parsed JSON file; None where it is no report."""
    if not isinstance(data, dict) or not isinstance(data.get("failure"), dict):
        return None
    if not {"collector", "metadata"} & set(data):
        return None
    failure, meta = data["failure"], data.get("metadata")
    match = NAME.search(path)
    category = failure.get("category") or (match["category"] if match else None)
    pid = meta.get("pid") if isinstance(meta, dict) else None
    return Report(
        path=path,
        category=str(category or "unknown"),
        error_class=_text(failure, "exception_type", "type", "error_class"),
        message=_text(failure, "message", "exception_message", "error"),
        pid=pid if isinstance(pid, int) else int(match["pid"]) if match else None,
    )


def _text(data: dict[str, Any], *keys: str) -> str | None:
    return next((str(data[k])[:2000] for k in keys if data.get(k)), None)


def as_evidence(report: Report) -> Evidence:
    """A report that is read by itself: one failure that belongs to no test."""
    failure = Failure(
        nodeid=None,
        phase="session",
        kind=_KINDS.get(report.category, Kind.EXCEPTION),
        stage=STAGES.get(report.category),
        error_class=report.error_class,
        message=report.message,
        cause=report.message,
        reason=f"first-failure report of category {report.category}",
        source=report.path,
    )
    return Evidence(sources=(report.path,), counts=None, complete=True, failures=(failure,))


def joined(evidence: Evidence, reports: Sequence[Report]) -> Evidence:
    """The evidence with its run's reports: named, and the cause and stage of a failure that had none."""
    if not reports:
        return evidence
    failures = tuple(_joined(f, reports) for f in evidence.failures)
    notes = tuple(dict.fromkeys([*evidence.warnings, *(r.says() for r in reports[:5])]))
    return replace(evidence, failures=failures, warnings=notes)


def _joined(failure: Failure, reports: Sequence[Report]) -> Failure:
    if failure.kind is Kind.MISMATCH:
        return failure
    fitting = next((r for r in reports if _tells_of(r, failure)), None)
    if fitting is None and failure.kind is Kind.CRASH and failure.nodeid is not None:
        fitting = reports[-1]  # the last one before the end
    if fitting is None:
        return failure
    stage = STAGES.get(fitting.category) if failure.rule in {None, "process-died"} else failure.stage
    cause = fitting.message if failure.kind is Kind.CRASH else failure.cause
    return replace(failure, stage=stage or failure.stage, cause=cause or failure.cause)


def _tells_of(report: Report, failure: Failure) -> bool:
    """Its message stands in the failure's; of a short message the class must be the same, too."""
    start = (report.message or "").strip()[:120]
    if not start or start not in (failure.message or ""):
        return False
    return len(start) >= TELLING or _last(report.error_class) in {
        _last(name) for name in (failure.error_class, failure.inner_class) if name
    }


def _last(name: str | None) -> str:
    return (name or "").rpartition(".")[2]
