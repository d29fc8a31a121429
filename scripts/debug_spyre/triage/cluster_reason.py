"""Why these failures stand together, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from debug_spyre.triage.signature import function
from debug_spyre.vocabulary.evidence import Failure, Kind, Severity

_LONGEST = 220
_FIELD = re.compile(r'"(\w+)"\s*:\s*"([^"]{0,300})"')


def why(members: Sequence[Failure], folded: Sequence[str], *, first: str | None = None) -> str:
    """One sentence: what the members share, which failed first, then what was folded under them."""
    text = _shared(members, members[0])
    if first:
        text += f"; {first.rsplit('::', 1)[-1]} failed first, the others may only follow from it"
    if folded:
        errors = "1 later device error is" if len(folded) == 1 else f"{len(folded)} later device errors are"
        text += f"; {errors} folded under it"
    return text


def _shared(members: Sequence[Failure], first: Failure) -> str:
    functions = sorted({function(f.nodeid).rsplit("::", 1)[-1] for f in members if f.nodeid})
    where = functions[0] if len(functions) == 1 else f"{len(functions)} test functions" if functions else "the session"
    if first.kind is Kind.MISMATCH:
        return f"{_mismatch(members, first)} in {where}"
    rule = f" (rule {first.rule})" if first.rule else ""
    if first.kind in {Kind.CRASH, Kind.TIMEOUT}:
        return f"{_ended(first)}{rule} in {where}"
    text = in_words(first.cause or (first.message or "").split("\n", 1)[0] or first.error_class or "no text")
    name = first.inner_class or first.error_class
    head = f"{name}: " if name and not text.startswith(name) else ""
    return f"{head}{text[:_LONGEST]}{rule} in {where}"


def _ended(first: Failure) -> str:
    what = first.error_class or ("no answer" if first.kind is Kind.TIMEOUT else "the process died")
    frame = first.backend_frame or first.innermost_frame
    cause = in_words(first.cause or "")
    more = f": {cause[:_LONGEST]}" if cause and what not in cause and "Timeout" not in cause else ""
    return f"{what}{f' at {frame}' if frame else ''}{more}"


def in_words(text: str) -> str:
    """A cause as one line; of a RAS object its name, errno, message and kernel."""
    if text.startswith("{"):
        fields = dict(_FIELD.findall(text))
        told = [fields[k] for k in ("name", "errno", "message", "cb_name") if fields.get(k)]
        if told:
            return ", ".join(told)
    return " ".join(text.split())


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
