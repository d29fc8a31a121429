"""Section 7: next actions, derived from the run in flight, the queue and the gate; notes are appended."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from debug_spyre.page.page_context import Frame, Link
from debug_spyre.queue.queue_rules import nothing_explains, rank
from debug_spyre.queue.queue_words import next_step
from debug_spyre.vocabulary.safe_text import Piece, clip, count
from debug_spyre.vocabulary.words import BASELINE, Status

MOST_QUEUED, MOST_REASONS = 40, 12


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, the command where there is one, and what it follows from."""

    text: tuple[Piece, ...]
    command: str
    source: Link


def actions(frame: Frame) -> tuple[Action, ...]:
    """What is next, in order."""
    session = frame.session
    found: list[Action] = []
    if session.status is Status.INVESTIGATING:
        found += [
            *_running(frame),
            *_missing(frame),
            *_queued(frame),
            *_next_tier(frame),
            *_gate(frame),
            *_to_end(frame),
        ]
    elif session.closing and session.closing.next_action:
        found.append(Action(frame.prose(session.closing.next_action), "", Link("closing", "#session")))
    found += [
        Action(frame.prose(note.text, 2000), "", Link(f"note, {frame.at(note.at).text}", ""))
        for note in reversed(session.nexts)
    ]
    return tuple(found)


def _running(frame: Frame) -> list[Action]:
    session = frame.session
    found = []
    for run in session.runs.values():
        if not run.is_finished:
            left = (
                f": {run.done:,} of {run.collected:,} done"
                if run.done is not None and run.collected is not None
                else ""
            )
            text = (Piece("Let "), Piece(frame.say(run.id), "", frame.run_link(run.id).href), Piece(f" end{left}."))
            found.append(Action(text, f"debug-spyre wait {frame.say(run.id)}", frame.run_link(run.id)))
    row = session.in_progress
    if row is not None:
        words = (Piece(f"H{row.number}", "", f"#h{row.number}"), Piece(" is in progress: run it, then conclude it."))
        found.append(Action(words, clip(frame.say(row.command or row.test), 1500), frame.row_link(row.number)))
    return found


def _missing(frame: Frame) -> list[Action]:
    session = frame.session
    found = []
    if session.last_run(BASELINE) is None and not any(
        r.name == BASELINE and not r.is_finished for r in session.runs.values()
    ):
        probe = session.probe or (session.members[0].nodeid if session.members else "NODEID")
        found.append(
            Action(
                (Piece("Baseline of the probe, before any hypothesis is tested."),),
                frame.say(f"debug-spyre run --as baseline {shlex.quote(probe)}"),
                Link("baseline", "#baseline"),
            )
        )
    if not session.hypotheses:
        found.append(
            Action(
                (Piece("Queue every plausible hypothesis."),),
                "debug-spyre hypothesis seed",
                Link("queue", "#hypotheses"),
            )
        )
    return found


def _queued(frame: Frame) -> list[Action]:
    rows = sorted(frame.session.queued, key=rank)
    found = [
        Action(
            (Piece(f"H{row.number}", "", f"#h{row.number}"), Piece(" "), *frame.prose(row.text, 400)),
            clip(frame.say(row.test), 1500),
            frame.row_link(row.number),
        )
        for row in rows[:MOST_QUEUED]
    ]
    if len(rows) > MOST_QUEUED:
        found.append(
            Action(
                (Piece(f"{count(len(rows) - MOST_QUEUED, 'more row')} in the queue."),),
                "",
                Link("queue", "#hypotheses"),
            )
        )
    return found


def _next_tier(frame: Frame) -> list[Action]:
    if not nothing_explains(frame.session):
        return []
    step = next_step(frame.session)
    return [
        Action(
            frame.prose(step.why[:1].upper() + step.why[1:] + "."),
            frame.say(step.command),
            Link("queue", "#hypotheses"),
        )
    ]


def _gate(frame: Frame) -> list[Action]:
    validation = frame.session.validation
    found = []
    seen: set[str] = set()
    for reason in (validation.gate.get("reasons") or () if validation else ())[:MOST_REASONS]:
        if not isinstance(reason, dict):
            continue
        command = clip(frame.say(reason.get("next") or ""), 600)
        if command and command in seen:
            continue
        seen.add(command)
        found.append(
            Action(frame.prose(reason.get("text") or reason.get("code") or "", 400), command, Link("gate", "#gate"))
        )
    return found


def _to_end(frame: Frame) -> list[Action]:
    """A cause is known: what ends the session."""
    step = next_step(frame.session)
    if step.command != "debug-spyre finish":
        return []
    return [
        Action(
            frame.prose(step.why[:1].upper() + step.why[1:] + "."),
            frame.say(step.command),
            Link("validation", "#validation"),
        )
    ]
