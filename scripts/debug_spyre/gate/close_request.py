"""The gate's parts: a condition, what the caller of `close` claims, and its commands in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from debug_spyre.session.state import Session
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.words import GateState

BASELINE_MEMBERS = "debug-spyre run --as baseline --members"
VALIDATE = "debug-spyre validate"
OPEN, SHUT, UNKNOWN = GateState.OPEN, GateState.SHUT, GateState.UNKNOWN


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of the gate. `override` is the reason with which a person set it aside."""

    code: str
    state: GateState
    text: str
    nodeids: tuple[str, ...] = ()
    next: str = ""
    override: str | None = None


def matrix_command(session: Session) -> str:
    """How the matrix is run once more on the tree as it was at open."""
    words = ("PYTEST-ARGS",) if session.matrix is None else tuple(map(shlex.quote, session.matrix))
    return " ".join(("debug-spyre run --as full-matrix", *words))


@dataclass(frozen=True, slots=True)
class Retrospective:
    """The three parts that `resolved` asks for."""

    cause: str | None = None
    wasted: str | None = None
    signal: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts without text."""
        return tuple(name for name in self.__slots__ if not (getattr(self, name) or "").strip())


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """What the caller of `close` says besides the journal; the default is the state as the journal shows it."""

    tree_digest: str | None = None  # of the working files now; None: as last seen
    backend: str | None = None  # fingerprint now; None: as last seen
    changes: Changes | None = None  # what the patch of the runs after the fix touches
    retrospective: Retrospective | None = None
    overrides: Mapping[str, str] | None = None  # code -> reason, given in this call
    approved: str | None = None  # reason why the patch may stay, given in this call
    next_action: str | None = None
    workaround: bool = False
    trouble: str | None = None  # where the journal or a file that it names was changed afterwards


def with_override(condition: Condition, reasons: Iterable[tuple[str, str]]) -> Condition:
    """The condition with the reason of the person who set it aside, if one did."""
    for code, reason in reasons:
        if code == condition.code and condition.state is not OPEN:
            return replace(condition, override=reason)
    return condition
