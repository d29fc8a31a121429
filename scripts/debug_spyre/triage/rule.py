"""One classification rule: what it matches, where it looks, and what it then says about a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from debug_spyre.vocabulary.evidence import Kind, Stage

ANY_KIND = tuple(Kind)
NOT_A_CRASH = (Kind.COMPILE, Kind.EXCEPTION)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    `where`: error, captured, any (both), class (innermost class), frame (innermost frames), outside (error, where the
    innermost frame is not a test's), mock (a source line that replaces parts of the device),
    source (error and the test's own lines). `stage` None: the text can't tell it.
    """

    id: str
    stage: Stage | None
    reason: str
    example: str
    pattern: re.Pattern[str]  # its first named group tells two causes of the rule apart
    where: str = "error"
    tags: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()  # only for failures of these kinds; empty: any but a mismatch


def make_rule(
    id: str,
    stage: Stage | None,
    reason: str,
    example: str,
    pattern: str | None = None,
    *,
    where: str = "error",
    tags: tuple[str, ...] = (),
    kinds: tuple[Kind, ...] = (),
) -> Rule:
    """A rule; without a pattern its example is matched as it stands."""
    compiled = re.compile(pattern if pattern is not None else re.escape(example), re.IGNORECASE)
    return Rule(id, stage, reason, example, compiled, where, tags, kinds)
