"""Reads a file with rules of the user's own."""

from __future__ import annotations

import tomllib
from pathlib import Path

from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.user_rules import RuleFormatError, parse_rules
from debug_spyre.vocabulary.errors import BadInputError


def all_rules(path: Path | None) -> tuple[Rule, ...]:
    """The user's rules, then ours.

    Raises:
        BadInputError: the file can't be read, is no TOML, or a rule in it is not right.
    """
    if path is None:
        return RULES
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return (*parse_rules(data), *RULES)
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}", next="triage --rules FILE.toml"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RuleFormatError) as error:
        raise BadInputError(
            f"{path} holds no rules that can be used: {error}",
            next='a rule: [[rule]] id = "x" stage = "runtime" pattern = "text"',
        ) from error
