"""Why these failures stand together, in words."""

from __future__ import annotations

from collections.abc import Sequence

from debug_spyre.core.evidence import Failure, Kind, Severity
from debug_spyre.core.triage.signature import function

_LONGEST = 220


def why(members: Sequence[Failure], folded: Sequence[str]) -> str:
    """One sentence: what the members share, then what was folded under them."""
    first = members[0]
    text = _shared(members, first)
    if folded:
        text += f"; {len(folded)} later device errors are folded under it"
    return text


def _shared(members: Sequence[Failure], first: Failure) -> str:
    functions = sorted({function(f.nodeid).rsplit("::", 1)[-1] for f in members if f.nodeid})
    where = functions[0] if len(functions) == 1 else f"{len(functions)} test functions" if functions else "the session"
    if first.kind is Kind.MISMATCH:
        return f"{_mismatch(members, first)} in {where}"
    text = first.cause or (first.message or "").split("\n", 1)[0] or first.error_class or "no text"
    name = first.inner_class or first.error_class
    head = f"{name}: " if name and not text.startswith(name) else ""
    rule = f" (rule {first.rule})" if first.rule else ""
    return f"{head}{' '.join(text.split())[:_LONGEST]}{rule} in {where}"


def _mismatch(members: Sequence[Failure], first: Failure) -> str:
    ratios = [f.mismatched / f.total for f in members if f.mismatched is not None and f.total]
    sizes = [f.max_abs for f in members if f.max_abs is not None]
    word = first.severity.value if first.severity else "values, shapes or types differ"
    if first.severity is Severity.SPECIAL:
        word = "NaN or infinity on one side"
    share = ""
    if ratios:
        low, high = min(ratios), max(ratios)
        share = (
            f", {low:.1%} of the elements wrong" if low == high else f", {low:.1%} to {high:.1%} of the elements wrong"
        )
    size = f", largest difference {max(sizes):g}" if sizes else ""
    if first.severity is None and first.cause:
        return f"{word}: {' '.join(first.cause.split())[:120]}"
    return f"{word} mismatch{share}{size}"
