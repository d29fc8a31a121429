"""Q7: an agent that wants to stop is told what remains of its session, at most twice for one state; a person may pause it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debug_spyre.session.state import Session
from debug_spyre.vocabulary.words import Status

MOST_HOLDS = 2
TAIL = 400_000  # bytes of a transcript that are looked at
PAUSE_WORDS = ("pause", "paused", "halt", "hold on", "hold off", "stand by", "stop here", "stop now", "stop it", "stop for", "please stop",
               "enough for", "that's enough", "take a break", "break off", "wait for me", "leave it")  # fmt: skip


def at_stop(event: dict[str, Any], session: Session, folder: Path) -> dict[str, str] | None:
    """The hook's answer to the client's Stop event; None lets the agent stop."""
    if session.status is not Status.INVESTIGATING or _is_in_flight(session):
        return None
    if asked_to_pause(last_request(str(event.get("transcript_path") or ""))):
        return None
    if not _may_hold(folder, mark=_mark(session), again=bool(event.get("stop_hook_active"))):
        return None
    told = f"The session {session.stem} is still investigating and no run is in flight; {left(session)}."
    return {"decision": "block", "reason": f"{told} (Rule Q7; a person who wants a pause says so.)"}


def left(session: Session) -> str:
    """What remains to be done, with the command."""
    busy, queued = session.in_progress, session.queued
    if busy:
        return (
            f"row {busy.number} is in progress: run its command, then debug-spyre hypothesis conclude {busy.number} ..."
        )
    if queued:
        following = (
            f"(next: {queued[0].number}, {queued[0].text[:120]}): debug-spyre hypothesis start {queued[0].number}"
        )
        return f"{len(queued)} row{'s' if len(queued) > 1 else ''} queued {following}"
    if not session.hypotheses:
        return "no hypothesis is queued: debug-spyre hypothesis seed"
    otherwise = "the next tier of experiments or debug-spyre close blocked with a concrete next action"
    return f"every row has a verdict: debug-spyre validate if the probe is cleared, else {otherwise}"


def _is_in_flight(session: Session) -> bool:
    """A run is going on: its supervisor lives, or is not known yet since the run has only just begun."""
    runs = (run for run in session.runs.values() if not run.is_finished)
    return any(run.supervisor is None or Path(f"/proc/{run.supervisor}").exists() for run in runs)


def _mark(session: Session) -> str:
    """The state that the agent was told of: progress of a run does not change it."""
    rows = " ".join(f"{row.number}{row.status}" for row in session.hypotheses)
    ended = sum(run.is_finished for run in session.runs.values())
    return f"{len(session.runs)}/{ended}/{len(session.summaries)}/{rows}"


def asked_to_pause(text: str) -> bool:
    """The person's last words ask for a pause; a long text or a slash command does not."""
    for mark in ".,!":
        text = text.replace(mark, " ")
    low = " " + " ".join(text.lower().split()) + " "
    if not low.strip() or len(low) > 300 or low.startswith(" /"):
        return False
    return low == " stop " or any(f" {word} " in low for word in PAUSE_WORDS)


def last_request(transcript: str) -> str:
    """The last thing that a person typed, from the client's transcript; empty where it can't be read."""
    try:
        with open(transcript, "rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - TAIL))
            lines = stream.read().split(b"\n")
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if (
            not isinstance(entry, dict)
            or entry.get("type") != "user"
            or entry.get("isMeta")
            or entry.get("isSidechain")
        ):
            continue
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            parts = [part for part in content if isinstance(part, dict)]
            is_result = any(part.get("type") == "tool_result" for part in parts)
            content = "" if is_result else " ".join(str(part.get("text") or "") for part in parts)
        if isinstance(content, str) and content.strip() and not content.lstrip().startswith("<"):
            return content
    return ""


def _may_hold(folder: Path, *, mark: str, again: bool) -> bool:
    """At most twice for one state of the session, and only where that can be remembered."""
    path = folder / ".stop-holds"
    try:
        known, _, count = path.read_text(encoding="utf-8").rpartition("\t")
    except OSError:
        known, count = "", "0"
    used = int(count) if known == mark and count.isdigit() else 0
    if used >= MOST_HOLDS:
        return False
    try:
        path.write_text(f"{mark}\t{used + 1}", encoding="utf-8")
    except OSError:
        return not again
    return True
