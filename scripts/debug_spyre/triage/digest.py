"""The lines that matter of a run in words: mismatches, fallbacks with place and op, innermost frames, patterns."""

from __future__ import annotations

from debug_spyre.triage.signature import in_words
from debug_spyre.vocabulary.evidence import Evidence, Failure, Fallback, Kind

_LONGEST = 200


def digest(evidence: Evidence, *, most: int = 10) -> tuple[str, ...]:
    """At most `most` lines; the last one says how many were left out."""
    lines = [_end(evidence)] if not evidence.complete else []
    lines += [line for failure in evidence.failures for line in say_failure(failure)]
    lines += [say_fallback(f) for f in sorted(evidence.fallbacks, key=lambda f: f.accepted is not None)]
    lines = list(dict.fromkeys(_cut(line, 2 * _LONGEST) for line in lines if line))
    if len(lines) > most:
        left = len(lines) - most + 1
        lines = [*lines[: most - 1], f"... {left} more lines in the evidence"]
    return tuple(lines)


def say_failure(failure: Failure) -> list[str]:
    """One failure's numbers and innermost frame."""
    name = short_name(failure.nodeid)
    if failure.kind is Kind.MISMATCH:
        parts = []
        if failure.mismatched is not None and failure.total:
            share = failure.mismatched / failure.total
            parts.append(f"Mismatched elements: {failure.mismatched} / {failure.total} ({share:.1%})")
        if failure.max_abs is not None:
            parts.append(f"largest absolute difference {failure.max_abs:g}")
        if failure.max_rel is not None:
            parts.append(f"relative {failure.max_rel:g}")
        if not parts:
            parts.append((failure.cause or failure.message or "values differ").split("\n", 1)[0])
        if failure.severity:
            parts.append(failure.severity.value)
        if failure.pattern:
            parts.append(f"pattern: {failure.pattern}")
        return [f"{name}: {_cut(', '.join(parts))}"]
    head = failure.inner_class or failure.error_class or failure.kind.value
    text = in_words((failure.cause or failure.message or "").split("\n", 1)[0])
    said = text if text.startswith(head) else f"{head}: {text}" if text else head
    frame = (failure.backend_frame or failure.innermost_frame or "").rpartition("/site-packages/")[2]
    return [f"{name}: {_cut(said, 140)}" + (f" at {frame}" if frame else "")]


def say_fallback(fallback: Fallback) -> str:
    """One fallback with its place."""
    place = f"{fallback.file}:{fallback.line}" if fallback.file else "an unknown place"
    accepted = f" (accepted at {fallback.accepted})" if fallback.accepted else ""
    return f"falls back to cpu: {fallback.op} at {place}{accepted}"


def _end(evidence: Evidence) -> str:
    signal = f", signal {evidence.signal}" if evidence.signal else ""
    return f"ended without pytest's summary{signal}"


def short_name(nodeid: str | None) -> str:
    """A node id without its folders, as the digest names it."""
    file, colons, test = (nodeid or "session").partition("::")
    return file.rsplit("/", 1)[-1] + colons + test


def _cut(line: str, longest: int = _LONGEST) -> str:
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
