"""The normalised evidence by which failures cluster: versioned, the same for the same cause whatever the shapes.

A comparison's cause can't be read from its text, so its test function belongs to it; a message's cause can.
"""

from __future__ import annotations

import re

from debug_spyre.triage.name_families import family
from debug_spyre.triage.nodeids import base_and_parameters
from debug_spyre.triage.severity import special_class
from debug_spyre.vocabulary.evidence import Failure, Kind, Severity

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
