"""Failures whose text pytest cut off (`AssertionError: ...`): they join the one cluster that can be theirs."""

from __future__ import annotations

from collections.abc import Mapping

from debug_spyre.triage.name_families import family
from debug_spyre.triage.signature import function
from debug_spyre.vocabulary.evidence import Failure

_LONG = 12  # characters of a message that tell one cause from another


def is_cut(failure: Failure) -> bool:
    """Only the beginning of its message is there."""
    message = failure.message or ""
    return failure.innermost_frame is None and message.endswith("...") and "\n" not in message


def join_cut(found: Mapping[str, list[Failure]]) -> dict[str, list[Failure]]:
    """Clusters by signature; a cut failure goes where exactly one whole one of its family, or of its text, is."""
    whole = [(key, f) for key, members in found.items() for f in members if not is_cut(f)]
    joined: dict[str, list[Failure]] = {key: [] for key in found}
    for key, members in found.items():
        for failure in members:
            joined[(_home(failure, whole) or key) if is_cut(failure) else key].append(failure)
    return {key: members for key, members in joined.items() if members}


def _home(failure: Failure, whole: list[tuple[str, Failure]]) -> str | None:
    start = (failure.message or "")[:-3].rstrip()
    alike = [(key, f) for key, f in whole if (f.message or "").startswith(start)]
    own = {key for key, f in alike if family(function(f.nodeid)) == family(function(failure.nodeid))}
    if own:
        return own.pop() if len(own) == 1 else None
    if len(start.partition(": ")[2]) < _LONG:
        return None
    others = {key for key, _ in alike}
    return others.pop() if len(others) == 1 else None
