r"""Rules of the user's own, from the tables of a TOML file: checked like ours, and asked first.

```toml
[[rule]]
id = "nightly-driver"
stage = "environment"
reason = "the nightly driver is known to drop the first request"
pattern = "driver handshake (?P<key>\\w+)"
example = "driver handshake lost"      # optional: must match
where = "any"                           # optional: error, captured, any, class, frame
tags = ["known"]                        # optional
kinds = ["exception", "timeout"]        # optional; default: all but a mismatch
```
"""

from __future__ import annotations

import re
from typing import Any

from debug_spyre.triage.rule import Rule
from debug_spyre.vocabulary.evidence import Kind, Stage

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
