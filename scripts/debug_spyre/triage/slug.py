"""A name for a cluster after the symptom that its members share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from debug_spyre.triage.nodeids import file_of, function_of
from debug_spyre.vocabulary.evidence import Failure, Kind, Severity

_WORD = re.compile(r"[a-z0-9]+")
LONGEST = 60
_SYMPTOMS = {
    Kind.CRASH: "crash",
    Kind.TIMEOUT: "hang",
    Kind.EXCEPTION: "error",
    Kind.COMPILE: "compile-error",
    Kind.MISMATCH: "mismatch",
}
_GRADES = {
    Severity.STRUCTURAL: "structural-mismatch",
    Severity.ACCUMULATION: "small-mismatch",
    Severity.SPECIAL: "nan-inf-mismatch",
    Severity.INCONCLUSIVE: "mismatch",
}


def slug(members: Sequence[Failure]) -> str:
    """Lower-case words joined by hyphens: where, then what."""
    first = members[0]
    names = Counter(function_of(f.nodeid) for f in members if f.nodeid)
    if len(names) == 1:
        where = next(iter(names)).removeprefix("test_")
    else:
        files = Counter(file_of(f.nodeid).rsplit("/", 1)[-1].removesuffix(".py") for f in members if f.nodeid)
        where = files.most_common(1)[0][0].removeprefix("test_") if files else "session"
    what = _what(first)
    words = _WORD.findall(f"{where.replace('_', ' ')} {what}".lower())
    kept: list[str] = []
    for word in words:
        if not kept or kept[-1] != word:
            kept.append(word)
    text = "-".join(kept)
    if len(text) > LONGEST:
        tail = "-".join(_WORD.findall(what))[: LONGEST // 2]
        head = "-".join(_WORD.findall(where.replace("_", " ").lower()))[: LONGEST - len(tail) - 1].strip("-")
        text = f"{head}-{tail}"
    return text.strip("-") or "cluster"


def _what(failure: Failure) -> str:
    if failure.kind is Kind.MISMATCH:
        if "unwritten-memory" in failure.tags:
            return "unwritten memory"
        return _GRADES.get(failure.severity, "mismatch") if failure.severity else "mismatch"
    if failure.rule == "fallback-as-error":
        return f"falls back {failure.key or ''}".replace("aten.", "").replace(".default", "")
    if failure.rule in {"ras", "device-open", "dma-map"} and failure.key:
        return failure.key.rsplit("::", 1)[-1]
    if failure.rule and failure.rule not in {"hang", "process-died", "backend-unsupported"}:
        return failure.rule
    return _SYMPTOMS[failure.kind]
