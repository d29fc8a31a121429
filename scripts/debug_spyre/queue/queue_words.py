"""The queue in words and as JSON: short lines for people and agents, the whole of it for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from debug_spyre.queue import queue_rules
from debug_spyre.queue.next_step import next_step
from debug_spyre.session.events import HypothesisAdded
from debug_spyre.session.state import Hypothesis, Session
from debug_spyre.vocabulary.errors import RefusedError
from debug_spyre.vocabulary.words import HypothesisStatus

if TYPE_CHECKING:
    from debug_spyre.queue.seeds import Seed

WIDTH = 96
MOST_COMMAND = 400


def first_in_rank(session: Session) -> int:
    """The queued row to test first.

    Raises:
        RefusedError: none is queued.
    """
    rows = queue_rules.in_order(session.queued)
    if not rows:
        raise RefusedError("no row is queued", next="debug-spyre hypothesis add TEXT --test COMMAND")
    return rows[0].number


def following(session: Session) -> list[str]:
    """The situation, and the command that comes next."""
    step = next_step(session)
    return [f"{step.why}", clip(f"  next: {step.command}", MOST_COMMAND)] if step.command else [step.why]


def say_row(row: Hypothesis, width: int = 3 * WIDTH) -> str:
    """One row in one line."""
    if row.is_concluded:
        return clip(f"{row.number:>3} {row.status}: {row.text} -- {row.outcome}", width)
    cost = "?" if row.cost_seconds is None else f"{row.cost_seconds:g} s"
    mark = "> " if row.status is HypothesisStatus.IN_PROGRESS else ""
    return clip(f"{row.number:>3} {mark}{row.confidence}, {row.test_class}, {cost}: {row.text}", width)


def say_seed(seed: Seed) -> str:
    """A proposed row: rank, reason, command."""
    cost = "?" if seed.cost_seconds is None else f"{seed.cost_seconds:g} s"
    return f"{clip(f'{seed.confidence}, {seed.test_class}, {cost}: {seed.text}')}\n    {clip(seed.reason)}\n    {seed.test}"


def say_seeded(session: Session, added: int) -> list[str]:
    """What was queued, the first five rows in order."""
    if not added:
        return ["nothing new: the queue has what the evidence supports", *following(session)]
    rows = queue_rules.in_order(session.queued)
    lines = [f"{added} rows queued, in this order:", *(say_row(row, WIDTH) for row in rows[:5])]
    if len(rows) > 5:
        lines.append(f"    and {len(rows) - 5} more (debug-spyre hypothesis list)")
    return [*lines, *following(session)]


def place_in_rank(session: Session, row: Hypothesis) -> str:
    """Where a new row stands among the queued ones."""
    rows = queue_rules.in_order(session.queued)
    at = [r.number for r in rows].index(row.number) + 1
    if len(session.hypotheses) == 1:
        return "  it is the only one: write down the others too"
    return f"  {at} of {len(rows)} in rank"


def seed_event(seed: Seed, number: int) -> HypothesisAdded:
    """The proposed row as an event."""
    return HypothesisAdded(
        number=number,
        text=seed.text,
        test=seed.test,
        test_class=seed.test_class,
        cost_seconds=seed.cost_seconds,
        confidence=seed.confidence,
        reason=seed.reason,
        origin="seed",
    )


def seed_json(seed: Seed) -> dict[str, Any]:
    """The proposed row for programs."""
    return {
        "rule": seed.rule,
        "text": seed.text,
        "test": seed.test,
        "class": seed.test_class,
        "cost_seconds": seed.cost_seconds,
        "confidence": seed.confidence,
        "reason": seed.reason,
    }


def queue_json(session: Session) -> dict[str, Any]:
    """The whole queue for programs."""
    return {
        "session": session.stem,
        "status": str(session.status),
        "hypotheses": [
            {
                "number": row.number,
                "text": row.text,
                "test": row.test,
                "class": row.test_class,
                "cost_seconds": row.cost_seconds,
                "confidence": row.confidence,
                "reason": row.reason,
                "origin": row.origin,
                "status": str(row.status),
                "command": row.command,
                "outcome": row.outcome,
                "excerpt": list(row.excerpt),
                "runs": list(row.runs),
            }
            for row in queue_rules.in_order(session.hypotheses)
        ],
        "nothing_explains": queue_rules.nothing_explains(session),
    }


def clip(text: str, width: int = WIDTH) -> str:
    """One line of at most `width` characters; a cut shows as an ellipsis."""
    flat = text[: len(text) - len(text.lstrip())] + " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
