"""The queue in words and as JSON: short lines for people and agents, the whole of it for programs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from debug_spyre.queue import queue_rules
from debug_spyre.queue.queue_rules import in_order, nothing_explains
from debug_spyre.session.events import HypothesisAdded
from debug_spyre.session.state import Hypothesis, Session
from debug_spyre.vocabulary.errors import RefusedError
from debug_spyre.vocabulary.words import BASELINE, HypothesisStatus, RunStatus, Status

TIERS = ("shadow", "ladder", "repro")  # the verbs that examine a failure, the cheapest first
ADD = "debug-spyre hypothesis add TEXT --test COMMAND"
PROGRAMS = frozenset({"python", "python3", "bash", "sh", "torchrun"})
MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class Step:
    """The situation in a sentence, and the one command that moves on. `command` "": the session is closed."""

    why: str
    command: str


def next_step(session: Session) -> Step:
    """The first situation of the table that fits."""
    if session.status is not Status.INVESTIGATING:
        return Step(f"the session is {session.status}", "")
    running = next((run for run in session.runs.values() if not run.is_finished), None)
    if running is not None:
        return Step(f"{running.id} is running", f"debug-spyre wait {running.id}")
    row = session.in_progress
    if row is not None:
        return _of_row(session, row)
    if session.members and not _has_baseline(session):
        probe = session.probe or session.members[0].nodeid
        return Step("there is no baseline yet", f"debug-spyre run --as baseline {shlex.quote(probe)}")
    if session.validation is not None:
        return _validated(session)
    cause = next((h for h in session.hypotheses if h.status is HypothesisStatus.CONFIRMED), None)
    if cause is not None or session.verified_repro is not None:
        return _explained(session, cause)
    if nothing_explains(session):
        return _next_tier(session)
    if session.queued:
        first = in_order(session.queued)[0]
        return Step(f"hypothesis {first.number} is the next in order", f"debug-spyre hypothesis start {first.number}")
    return Step("no hypothesis is queued", "debug-spyre hypothesis seed" if not session.hypotheses else ADD)


def _has_baseline(session: Session) -> bool:
    return bool(session.last_run(BASELINE)) or any(report.verb == "investigate" for report in session.reports)


def _of_row(session: Session, row: Hypothesis) -> Step:
    """A row is tested, or its run is there and it is concluded."""
    began = row.started_at or ""
    done = [r for r in session.runs.values() if r.hypothesis == row.number and r.is_finished and r.started_at >= began]
    if not done:
        return Step(f"hypothesis {row.number} is in progress: test it", under_lock(row.command or row.test))
    told = done[-1]
    how = "passes" if told.status is RunStatus.PASSED else "fails"
    command = f"debug-spyre hypothesis conclude {row.number} VERDICT 'SENTENCE' --run {told.id}"
    return Step(f"hypothesis {row.number} was tested by {told.id}, which {how}", command)


def under_lock(command: str) -> str:
    """A test that somebody wrote down, as it is typed: what is no verb of ours runs under the card's lock."""
    first = command.split(" ", 1)[0]
    is_program = first in PROGRAMS or "/" in first
    return f"debug-spyre exec -- {command}" if is_program else command


def _validated(session: Session) -> Step:
    """The table is filled: end it, or see what is not met."""
    gate = (session.validation.gate if session.validation else {}).get("gate")
    if gate == "open":
        return Step("all conditions are met", "debug-spyre finish")
    return Step("some conditions are not met", "debug-spyre close resolved --check")


def _explained(session: Session, cause: Hypothesis | None) -> Step:
    """A cause is known: what is queued is no reason to wait, but for `resolved` it has to be concluded or dropped."""
    known = f"hypothesis {cause.number} is confirmed" if cause else "a script proves the bug"
    rows = [str(h.number) for h in in_order(session.queued)[:MOST_ROWS]]
    left = f" (rows that it answers: debug-spyre hypothesis drop {' '.join(rows)} 'REASON')" if rows else ""
    if session.tree_seen not in {None, session.tree.get("digest")}:
        return Step(f"{known}, and the tree is changed{left}", "debug-spyre finish")
    if session.verified_repro is not None:
        return Step(f"{known}: change the code or the test, or hand it over as it is{left}", "debug-spyre finish")
    return Step(f"{known}: change the code or the test, then{left}", "debug-spyre finish")


def _next_tier(session: Session) -> Step:
    """Every row is tested and none explains it: the first verb that has not looked yet."""
    looked = {report.verb for report in session.reports}
    verb = next((verb for verb in TIERS if verb not in looked), None)
    why = "every hypothesis was tested and none explains the failure"
    return Step(why, f"debug-spyre {verb}" if verb else "debug-spyre close blocked --next 'TEXT'")


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
