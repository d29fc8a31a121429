"""The normalised evidence by which failures cluster, why they stand together in words, and a name for the cluster.

A comparison's cause can't be read from its text, so its test function belongs to it; a message's cause can.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from debug_spyre.triage.nodeids import base_and_parameters, family, file_of, function_of
from debug_spyre.triage.numbers import special_class
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


VERSION = "v2"
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{12,}\b")
_PATH = re.compile(r"(?:/[\w.@+-]+){2,}/?")
_NUMBERED = re.compile(
    r"\b(buf|arg|d|s|u|z|q|r|x|tmp|op|xindex|primals_|getitem_|permute_|view_|sdsc_\w*?|kernel_)\d+(?:_\w{4,})?\b"
)
_NUMBER = re.compile(r"[-+]?\b\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b")
_BRACKETS = re.compile(r"[\[(][^\[\]()]{0,400}[\])]")
_BLANK = re.compile(r"\s+")
FEW = 0.02
_SHORT_NAME = 6
STRONG = frozenset({"card-busy", "ras", "device-open", "dma-map", "fallback-as-error", "strict-xpass"})


def normalise(text: str) -> str:
    """Text without what differs between two sightings of one cause: numbers, paths, addresses, buffer names, lists."""
    text = text[:600]
    text = _HEX.sub("#", text)
    text = _PATH.sub(lambda m: ".../" + re.sub(r"_\w{8}$", "", m[0].rstrip("/").rsplit("/", 1)[-1]), text)
    text = _NUMBERED.sub(r"\1#", text)
    text = _NUMBER.sub("#", text)
    for _ in range(2):
        text = _BRACKETS.sub("[]", text)
    return _BLANK.sub(" ", text).strip().lower()[:240]


def signature(failure: Failure) -> str:
    """One line that is equal for failures of one cause, as far as the text tells."""
    raised = failure.kind in {Kind.COMPILE, Kind.EXCEPTION}  # one text is one cause, whatever frames stand above it
    parts = [VERSION, "raised" if raised else failure.kind.value]
    if failure.rule in STRONG:
        parts += [
            failure.rule or "",
            normalise(failure.key or failure.cause or "") if failure.rule != "card-busy" else "",
        ]
    elif failure.rule == "mocked-device":
        parts += [failure.rule]
    elif failure.kind is Kind.MISMATCH:
        parts += _of_mismatch(failure)
    elif failure.kind in {Kind.CRASH, Kind.TIMEOUT}:
        where = failure.backend_frame or failure.innermost_frame or ""
        parts += [failure.error_class or "", where, failure.rule or "", normalise(failure.key or failure.cause or "")]
    else:
        name = (failure.inner_class or failure.error_class or "").rsplit(".", 1)[-1]
        if not (failure.key or failure.cause or failure.message or failure.rule):
            parts.append(family(function(failure.nodeid)))  # nothing says that two of these are one cause
        parts += [
            name,
            failure.rule or "",
            normalise(_nameless(failure, failure.key or failure.cause or failure.message or "")),
        ]
    if failure.pattern:
        parts.append(normalise(failure.pattern))
    return "|".join(parts)


def _of_mismatch(failure: Failure) -> list[str]:
    ratio = failure.mismatched / failure.total if failure.mismatched is not None and failure.total else None
    if failure.severity is Severity.SPECIAL:
        special = special_class(failure.max_abs, ratio)
        where = file_and_class(failure.nodeid) if special == "saturates" else family(function(failure.nodeid))
        return ["special", special, where]
    if "unwritten-memory" in failure.tags:
        return ["structural", "unwritten", file_and_class(failure.nodeid)]
    if failure.rule:
        return [failure.rule, family(function(failure.nodeid))]
    shape = ""
    if failure.severity is Severity.STRUCTURAL and failure.max_rel == 1.0 and failure.max_abs != 1.0:
        shape = "zeros"  # for true and false, one for zero is as likely
    elif failure.severity is Severity.STRUCTURAL and ratio is not None and ratio < FEW:
        shape = "few"  # a column or a row is another defect than a wrong result
    if failure.severity is None:
        shape = normalise(_nameless(failure, failure.cause or ""))[:80]
    return [failure.severity.value if failure.severity else "", shape, family(function(failure.nodeid))]


def _nameless(failure: Failure, text: str) -> str:
    """A text without the test's own name: it tells no cause."""
    name = function(failure.nodeid).rsplit("::", 1)[-1]
    return text.replace(name, "the test") if len(name) > _SHORT_NAME else text


def function(nodeid: str | None) -> str:
    """The test function without its parameters."""
    return base_and_parameters(nodeid or "")[0]


def file_and_class(nodeid: str | None) -> str:
    """File and class of a test."""
    return function(nodeid).rsplit("::", 1)[0]


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
