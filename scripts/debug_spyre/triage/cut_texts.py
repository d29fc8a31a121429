"""Failures of which only a part is there (the summary's line, some exceptions of a chain): they join the cluster of the whole.

A failure without any text joins the only cluster of its function. Where two clusters fit, none is joined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from debug_spyre.triage.name_families import family
from debug_spyre.triage.signature import function, normalise
from debug_spyre.vocabulary.evidence import Failure, Kind

_RAISED = frozenset({Kind.EXCEPTION, Kind.COMPILE, Kind.MISMATCH})
_HEAD = re.compile(r"assert\b|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: |:?$)")
_LONG = 12  # characters of a message that tell one cause from another


def is_cut(failure: Failure) -> bool:
    """Only the beginning of its message is there, or nothing."""
    return is_brief(failure) and (_is_silent(failure) or (failure.message or "...").endswith("..."))


def is_brief(failure: Failure) -> bool:
    """At most one line of its message is there, and no frame."""
    if failure.kind in {Kind.CRASH, Kind.TIMEOUT} or failure.nodeid is None or failure.severity is not None:
        return False
    message = failure.message or ""
    return _is_silent(failure) or ("\n" not in message and (failure.innermost_frame is None or message.endswith("...")))


def _is_silent(failure: Failure) -> bool:
    """Its text was cut off before the error."""
    return (
        failure.kind is Kind.EXCEPTION and failure.rule is None and (failure.error_class is None or not failure.message)
    )


def join_cut(found: Mapping[str, list[Failure]]) -> dict[str, list[Failure]]:
    """Clusters by signature; a part of a text goes where exactly one whole one of its family, or of its text, is."""
    whole = [(key, f) for key, members in found.items() for f in members if not is_brief(f)]
    joined: dict[str, list[Failure]] = {key: [] for key in found}
    waiting = []
    torn = _torn(found)
    for key, members in found.items():
        is_known = any(not is_brief(f) for f in members)
        for failure in members:
            if is_brief(failure):
                home = key if is_known else _home(failure, whole)
            else:
                home = _of_chain(failure, key, whole, is_torn=failure in torn)
            if home is None:
                waiting.append((key, failure))
            else:
                joined[home].append(failure)
    alone: list[tuple[str, Failure]] = []  # the longest texts first: a shorter one may be their beginning
    for key, failure in sorted(waiting, key=lambda w: (-len(_start(w[1])), w[1].nodeid or "")):
        home = (_home(failure, alone) if is_cut(failure) else None) or key
        alone.append((home, failure))
        joined[home].append(failure)
    return {key: members for key, members in joined.items() if members}


def _torn(found: Mapping[str, list[Failure]]) -> list[Failure]:
    """The last text of each source: its end may be missing."""
    last: dict[str | None, Failure] = {}
    for failure in (f for members in found.values() for f in members):
        if failure.source not in last or (failure.line or 0) > (last[failure.source].line or 0):
            last[failure.source] = failure
    return list(last.values())


def _of_chain(failure: Failure, key: str, whole: list[tuple[str, Failure]], *, is_torn: bool) -> str:
    """A failure that shows some exceptions of a chain belongs to the one cluster that shows more of it."""
    own = _heads(failure)
    if not own or failure.kind not in _RAISED:
        return key
    more = {
        k
        for k, f in whole
        if k != key
        and f.kind in _RAISED
        and _is_family(f, failure)
        and _is_part(own, _heads(f), is_torn=is_torn)
        and _may_join(f, failure)
    }
    return more.pop() if len(more) == 1 else key


def _is_part(part: Sequence[str], chain: Sequence[str], *, is_torn: bool) -> bool:
    """The chain goes on where the part ends, or begins before it; of a torn part the last line may lack its end."""
    size = len(part)
    for at in range(len(chain) - size + 1):
        *before, last = chain[at : at + size]
        if before == list(part[:-1]) and (last == part[-1] if not is_torn else last.startswith(part[-1])):
            return len(chain) > size or last != part[-1]
    return False


def _may_join(one: Failure, other: Failure) -> bool:
    return None in {one.severity, other.severity} or one.severity is other.severity


@lru_cache(maxsize=4096)
def _heads_of(message: str) -> tuple[str, ...]:
    return tuple(normalise(line) for line in message.split("\n") if _HEAD.match(line))


def _heads(failure: Failure) -> tuple[str, ...]:
    """The first line of each exception of a chain."""
    return _heads_of(failure.message or "")


def _is_family(one: Failure, other: Failure) -> bool:
    """Of one family of functions; of a test that is named without its file the name alone counts."""
    first, second = (family(function(f.nodeid)) for f in (one, other))
    if "::" in first and "::" in second:
        return first == second
    first, second = first.replace(".", "::"), second.replace(".", "::")
    return f"::{first}".endswith(f"::{second}") or f"::{second}".endswith(f"::{first}")


def _start(failure: Failure) -> str:
    return "" if _is_silent(failure) else normalise((failure.message or "").removesuffix("...").rstrip())


def _home(failure: Failure, others: list[tuple[str, Failure]]) -> str | None:
    start = _start(failure)
    alike = [(key, f) for key, f in others if not start or _says(f, start, is_whole=not is_cut(failure))]
    own = {key for key, f in alike if _is_family(f, failure)}
    if own:
        return own.pop() if len(own) == 1 else None
    if len(start.partition(": ")[2]) < _LONG:
        return None
    elsewhere = {key for key, _ in alike}
    return elsewhere.pop() if len(elsewhere) == 1 else None


def _says(failure: Failure, start: str, *, is_whole: bool) -> bool:
    """A line of its message, one of each exception of a chain, is this text or begins with it."""
    lines = (normalise(line) for line in (failure.message or "").split("\n"))
    return any(line == start if is_whole else line.startswith(start) for line in lines)
