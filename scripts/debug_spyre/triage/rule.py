"""One classification rule: what it matches, where it looks, what it then says; and rules of the user's own from a TOML file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from debug_spyre.vocabulary.evidence import Kind, Stage

ANY_KIND = tuple(Kind)
NOT_A_CRASH = (Kind.COMPILE, Kind.EXCEPTION)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    `where`: error, captured, any (both), class (innermost class), frame (innermost frames), outside (error, where the
    innermost frame is not a test's), kernel (error, where the wrapper of an eager kernel is among the innermost frames), mock (a source line that replaces parts of the device),
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


_PLACES = ("error", "captured", "any", "class", "frame")


class RuleFormatError(ValueError):
    """A table is no rule; the text says which and why."""


def parse_rules(data: dict[str, Any]) -> tuple[Rule, ...]:
    """The rules of a parsed file, in its order.

    Raises:
        RuleFormatError: no rules, or one of them is not right.
    """
    tables = data.get("rule")
    if not isinstance(tables, list) or not tables:
        raise RuleFormatError("no [[rule]] tables")
    return tuple(_rule(table, place) for place, table in enumerate(tables, start=1))


def _rule(table: Any, place: int) -> Rule:
    if not isinstance(table, dict):
        raise RuleFormatError(f"rule {place} is not a table")
    name = str(table.get("id") or f"rule {place}")
    for key in ("id", "stage", "pattern"):
        if not isinstance(table.get(key), str) or not table[key]:
            raise RuleFormatError(f"{name}: {key} is missing or not a text")
    try:
        stage = Stage(table["stage"])
        kinds = tuple(Kind(k) for k in table.get("kinds") or ())
    except ValueError as error:
        raise RuleFormatError(f"{name}: {error}; stages: {', '.join(Stage)}; kinds: {', '.join(Kind)}") from error
    try:
        pattern = re.compile(table["pattern"], re.IGNORECASE)
    except re.error as error:
        raise RuleFormatError(f"{name}: pattern {table['pattern']!r}: {error}") from error
    where = table.get("where", "error")
    if where not in _PLACES:
        raise RuleFormatError(f"{name}: where is {where!r}; one of {', '.join(_PLACES)}")
    example = str(table.get("example") or "")
    if example and not pattern.search(example):
        raise RuleFormatError(f"{name}: its example does not match its pattern")
    tags = tuple(str(tag) for tag in table.get("tags") or ())
    return Rule(name, stage, str(table.get("reason") or "a rule of your own"), example, pattern, where, tags, kinds)
