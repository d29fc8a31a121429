"""Which steps end a session: decided from what was proved and from whether the tree holds a change; one rule for work-arounds.

A bug of torch-spyre is resolved by a fix of torch-spyre or by a patch that a person approved. A change of the plugin that
goes round it, however well it passes, leaves the session blocked: diagnosed, and waiting for one of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.session.state import Session
from debug_spyre.vocabulary.words import Status

VALIDATE, REVERT, REPRO, ESCALATE, CLOSE = "validate", "revert", "repro", "escalate", "close"
BACKEND = {"wrong-values", "refused", "crash", "hang", "order", "graph-only", "fallback"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in order, the status that the session is to have, and why."""

    steps: tuple[str, ...]
    status: Status | None  # None: there is nothing to end with yet
    why: str


def backend_cause(causes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The cause that lies in torch-spyre, if one does: the card is wrong where the CPU control passes."""
    found = (c for c in causes if c.get("manner") in BACKEND and c.get("control") in {"passes", None})
    return next(found, None)


def plan(
    *, is_changed: bool, is_reverted: bool, is_backend: bool, has_repro: bool, has_bundle: bool, approved: bool
) -> Plan:
    """What `finish` does now.

    Args:
        is_changed: the tree differs from its start.
        is_reverted: what was validated is off again.
        is_backend: a proved cause lies in torch-spyre.
        has_repro: a script of it is proved.
        has_bundle: the bundle is written, and nothing came after it.
        approved: a person approved that the change stays.
    """
    tail = (
        (*(() if has_repro else (REPRO,)), *(() if has_bundle and not is_changed else (ESCALATE,)))
        if is_backend
        else ()
    )
    if is_changed or is_reverted:
        head = () if not is_changed else (VALIDATE,) if approved else (VALIDATE, REVERT)
        if is_backend and not approved:
            return Plan(
                (*head, *tail, CLOSE), Status.BLOCKED, "a work-around of a bug in torch-spyre waits for a person"
            )
        return Plan((*head, *tail, CLOSE), Status.RESOLVED, "the change fixes it")
    if is_backend:
        return Plan((*tail, CLOSE), Status.BLOCKED, "the bug is torch-spyre's and goes to its team")
    return Plan((), None, "nothing was changed, and no proved cause lies in torch-spyre")


def labels(session: Session) -> tuple[str, ...]:
    """`diagnosed`: every member passed with a change that waits for a person; `escalated`: the bundle is written."""
    if session.status is not Status.BLOCKED:
        return ()
    rows = session.validation.rows if session.validation else ()
    diagnosed = bool(rows) and all(row.get("cleared") for row in rows)
    escalated = bool(session.closing and session.closing.escalated)
    return (*(("diagnosed",) if diagnosed else ()), *(("escalated",) if escalated else ()))


def cause_text(causes: Sequence[Mapping[str, Any]]) -> str | None:
    """The sentence of the first proved cause: what the retrospective says where nobody said otherwise."""
    return next((str(c["sentence"]) for c in causes if c.get("claim") == "cause"), None)
