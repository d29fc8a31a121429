"""Files that a run leaves beside its output: first-failure reports of torch-spyre (FFDC), and the wrappers from which kernels came.

A report may be a stale one of another process: only pid and time together make it this run's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Stage

KERNEL = re.compile(r"\bsdsc_\w+|\bspyre_fused_\w+")
_DEFINED = re.compile(r"^(?P<name>\w+) = async_compile\.\w+\('(?P=name)',?(?P<body>.*?)^\)", re.DOTALL | re.MULTILINE)
_HANDLE = re.compile(
    r"DebugHandle\(id=(?P<id>\d+), source=(?:SourceLoc\(file='(?P<file>[^']+)', start_line=(?P<line>\d+)[^)]*\)|None), aten_op='(?P<op>[^']+)'"
)
_COMMENT = re.compile(r"Original ATen: \[(?P<ops>[^\]]*)\](?:(?!^\w).)*?\Z", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """One op of a kernel; `place` is file:line of the code that called it, None where the version does not record it."""

    op: str
    place: str | None = None
    handle: str | None = None


def kernels_in(text: str) -> list[str]:
    """Names of compiled kernels in a text, each once."""
    return list(dict.fromkeys(KERNEL.findall(text)))


def origins(wrapper: str) -> dict[str, tuple[Origin, ...]]:
    """Kernel name to the ops in it, of one wrapper's text."""
    found = {}
    for kernel in _DEFINED.finditer(wrapper):
        handles = [
            Origin(h["op"], f"{h['file']}:{h['line']}" if h["file"] else None, h["id"])
            for h in _HANDLE.finditer(kernel["body"])
        ]
        if not handles:
            above = _COMMENT.search(wrapper[: kernel.start()].rpartition("\n\n")[2])
            handles = [Origin(op.strip()) for op in above["ops"].split(",") if op.strip()] if above else []
        found[kernel["name"]] = tuple(dict.fromkeys(handles))
    return found


def said(name: str, ways: Iterable[tuple[Origin, ...]]) -> str:
    """A kernel in words; several graphs may each have one of that name."""
    texts = [", ".join(dict.fromkeys(f"{o.op} at {o.place}" if o.place else o.op for o in way)) for way in ways]
    texts = [text for text in dict.fromkeys(texts) if text]
    more = f", or {len(texts) - 3} more" if len(texts) > 3 else ""
    return f"kernel {name}: {'; or '.join(texts[:3])}{more}"


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
