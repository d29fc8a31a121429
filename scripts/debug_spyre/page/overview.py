"""The one-screen overview of a session: enough for a person or an agent that has lost its memory to go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from debug_spyre.queue.queue_rules import in_order
from debug_spyre.queue.queue_words import next_step
from debug_spyre.queue.session_warnings import ASIDE, SessionWarning, session_warnings
from debug_spyre.session.state import Run, Session
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import BASELINE, HypothesisStatus

MOST_LINES = 25
WIDTH = 160


def clip(text: str, width: int = WIDTH) -> str:
    """One line of at most `width` characters; a cut shows as an ellipsis."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def overview(
    session: Session,
    evidence: Mapping[str, Evidence],
    *,
    page: str,
    gate: str | None = None,
    more: Sequence[SessionWarning] = (),
) -> list[str]:
    """At most 25 lines. `more`: warnings that the session alone doesn't show; they come first."""
    lines = [f"{session.status.value}: {session.slug}  ({session.stem}, updated {session.updated_at})"]
    lines += [clip(f"symptom: {session.symptom}"), *_members(session), *_baseline(session)]
    if session.summaries:
        lines.append(clip(f"summary: {session.summaries[-1].text}", 2 * WIDTH))
    lines += _live(session)
    lines += _queue(session)
    if session.validation:
        lines.append(f"validated {session.validation.at}: gate {session.validation.gate.get('gate', 'unknown')}")
    if session.closing:
        ending = session.closing.cause or session.closing.next_action or ""
        lines.append(clip(f"closed {session.closing.at}: {ending}"))
    found = (*more, *session_warnings(session, evidence))
    for concern in found[:3]:
        lines += [clip(f"! {concern.text}"), f"  next: {concern.next}"]
    if all(concern.code in ASIDE for concern in found):
        lines += _next(session)
    if gate:
        lines.append(gate)
    lines.append(f"log: {page}")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 2], f"… {len(lines) - MOST_LINES + 1} more lines on the page", lines[-1]]
    return lines


def brief(session: Session, *, page: str) -> list[str]:
    """A few facts to put back after an agent's context was compacted."""
    row = session.in_progress
    counts = Counter(h.status.value for h in session.hypotheses)
    lines = [f"debug-spyre session {session.stem} is {session.status.value}; cluster of {len(session.members)}."]
    lines.append(clip(f"Symptom: {session.symptom}"))
    if session.probe:
        lines.append(f"Probe: {session.probe}")
    if session.summaries:
        lines.append(clip(f"Summary: {session.summaries[-1].text}", 2 * WIDTH))
    if row:
        lines.append(clip(f"In progress: #{row.number} {row.text}"))
    lines.append("Queue: " + (", ".join(f"{n} {word}" for word, n in sorted(counts.items())) or "empty"))
    lines.append(f"The whole state: debug-spyre status. The log: {page}")
    return lines


def _members(session: Session) -> list[str]:
    probe = f"; probe {session.probe}" if session.probe else ""
    gone = f"; {len(session.departed)} left the cluster" if session.departed else ""
    return [f"members: {len(session.members)}{gone}{probe}"]


def _baseline(session: Session) -> list[str]:
    run = session.last_run(BASELINE)
    if run is None:
        return []
    return [clip(f"baseline {run.id} ({run.status.value}): {run.digest[0] if run.digest else 'nothing found'}")]


def _live(session: Session) -> list[str]:
    running = [run for run in session.runs.values() if not run.is_finished]
    return [clip(_say_live(run)) for run in running[-2:]]


def _say_live(run: Run) -> str:
    done = f"{run.done or 0}/{run.collected if run.collected is not None else '?'}"
    failing = f", {run.failed_so_far} failing" if run.failed_so_far else ""
    now = f", now {run.current}" if run.current else ""
    return f"running {run.id} {run.name or ''}: {done}{failing}{now}   (debug-spyre wait {run.id})"


def _queue(session: Session) -> list[str]:
    if not session.hypotheses:
        return ["queue: empty"]
    counts = Counter(h.status.value for h in session.hypotheses)
    order = [status.value for status in HypothesisStatus if counts[status.value]]
    lines = ["queue: " + ", ".join(f"{counts[word]} {word}" for word in order)]
    concluded = [h for h in session.hypotheses if h.is_concluded]
    lines += [clip(f"  #{h.number} {h.status.value}: {h.text}: {h.outcome}") for h in concluded[-4:]]
    if session.in_progress:
        lines.append(clip(f"  #{session.in_progress.number} in progress: {session.in_progress.text}"))
    lines += [clip(f"  #{h.number} queued: {h.text}") for h in in_order(session.queued)[:3]]
    return lines


def _next(session: Session) -> list[str]:
    step = next_step(session)
    return [clip(f"next: {step.command}", 2 * WIDTH), clip(f"      {step.why}", 2 * WIDTH)] if step.command else []
