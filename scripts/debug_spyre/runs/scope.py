"""What a run selected: the ordered node ids and the options that change behaviour. Figures meet only in one scope.

An unknown scope is related to nothing: it never counts as equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Relation(StrEnum):
    """How one scope stands to another."""

    EQUAL = "equal"
    REORDERED = "reordered"  # the same tests in another order: what ran earlier in the process differs
    SUBSET = "subset"
    SUPERSET = "superset"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Scope:
    """The collected node ids in order, and the behaviour-changing options, sorted."""

    nodeids: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def digest(self) -> str | None:
        """Twelve hex digits over ids (in order) and options; None where nothing is known to be selected."""
        if not self.nodeids:
            return None
        text = json.dumps([list(self.nodeids), list(self.options)], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """The short form that the journal keeps; the ids themselves stand in the run's evidence."""
        return {"digest": self.digest, "collected": len(self.nodeids), "options": list(self.options)}


def scope_of(nodeids: Iterable[str], options: Iterable[str] = ()) -> Scope:
    """A scope with its options in one order, each once."""
    return Scope(tuple(nodeids), tuple(sorted(set(options))))


def relation(one: Scope, other: Scope) -> Relation:
    """How `one` stands to `other`; other options make them different whatever the ids are."""
    if not one.nodeids or not other.nodeids:
        return Relation.UNKNOWN
    if one.options != other.options:
        return Relation.DIFFERENT
    if one.nodeids == other.nodeids:
        return Relation.EQUAL
    mine, theirs = set(one.nodeids), set(other.nodeids)
    if mine == theirs:
        return Relation.REORDERED
    if mine < theirs:
        return Relation.SUBSET
    if mine > theirs:
        return Relation.SUPERSET
    return Relation.DIFFERENT


def says(found: Relation) -> str:
    """What the relation means for two figures, in words."""
    return {
        Relation.EQUAL: "same scope: the figures can be compared",
        Relation.REORDERED: "same tests in another order: compare outcomes, not magnitudes",
        Relation.SUBSET: "narrower scope: magnitudes may differ alone and in a matrix, do not compare them",
        Relation.SUPERSET: "wider scope: magnitudes may differ alone and in a matrix, do not compare them",
        Relation.DIFFERENT: "different scopes: do not compare the figures",
        Relation.UNKNOWN: "a scope is unknown: do not compare the figures",
    }[found]
