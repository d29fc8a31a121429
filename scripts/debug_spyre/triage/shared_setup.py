"""A fixture of wide scope fails once; pytest repeats its error for each later test, without what was captured.

Only an error that is the same to its place takes the verdict of the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from debug_spyre.vocabulary.evidence import Failure


def with_first_verdict(failures: Iterable[Failure]) -> list[Failure]:
    """The failures in order, repetitions of a set-up error judged as its first."""
    first: dict[tuple[object, ...], Failure] = {}
    found = []
    for failure in failures:
        key = (failure.source, failure.error_class, failure.message, failure.innermost_frame)
        if failure.phase == "setup" and failure.innermost_frame:
            judged = first.setdefault(key, failure)
            if (
                judged is not failure
                and judged.rule != failure.rule
                and (failure.cause or "") in (failure.message or "")
            ):
                failure = _as(failure, judged)
        found.append(failure)
    return found


def _as(failure: Failure, judged: Failure) -> Failure:
    tags = tuple(dict.fromkeys((*failure.tags, *judged.tags)))
    return replace(
        failure,
        stage=judged.stage,
        tags=tags,
        reason=judged.reason,
        rule=judged.rule,
        key=judged.key,
        cause=judged.cause,
    )
