"""Warnings about a session: an old summary, a probe unlike its cluster, runs without a row."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from debug_spyre.queue.queue_rules import FEW_ROWS, nothing_explains
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.evidence import Evidence, Failure
from debug_spyre.vocabulary.safe_text import count
from debug_spyre.vocabulary.words import BASELINE, CARVED_OUT, RUN_NAMES, HypothesisStatus, Status


@dataclass(frozen=True, slots=True)
class SessionWarning:
    """One thing that is off: a stable code, a sentence and the command that mends it."""

    code: str
    text: str
    next: str


ALONE = "run --alone"  # the report of that experiment
ASIDE = frozenset({"stale-summary", "stale-bundle", "unattributed"})  # work goes on beside them


def session_warnings(session: Session, evidence: Mapping[str, Evidence]) -> tuple[SessionWarning, ...]:
    """All warnings of a session that is being worked on, the most pressing first."""
    if session.status is not Status.INVESTIGATING:
        return ()
    found = [_no_baseline(session), probe_unlike_cluster(session, evidence), _nothing_explains(session)]
    found += [_stale_summary(session), _stale_bundle(session), _unattributed(session), _few_rows(session)]
    return tuple(concern for concern in found if concern)


def edited(trouble: str | None) -> tuple[SessionWarning, ...]:
    """The journal or a file that it names is not what was written."""
    return (
        (SessionWarning("edited", trouble, "look at the named line and file; run again what they show"),)
        if trouble
        else ()
    )


def in_both(origin: Session, other: Session) -> tuple[str, ...]:
    """Members of both sessions, where the move that carved `other` out of `origin` was not finished."""
    if other.linked_from != origin.stem or (CARVED_OUT, other.stem) in origin.links:
        return ()
    here = {m.nodeid for m in origin.members}
    return tuple(m.nodeid for m in other.members if m.nodeid in here)


def half_moved(origin: Session, other: Session) -> SessionWarning | None:
    """A move was cut off between the two journals: the command that finishes it."""
    both = in_both(origin, other)
    if not both or origin.status is not Status.INVESTIGATING:
        return None
    reason = other.symptom.partition(": ")[2] or other.symptom
    words = ["cluster", "move", *both, "--to", other.slug, "--reason", reason, "--session", origin.stem]
    count = f"{len(both)} test{'s are' if len(both) > 1 else ' is'} in two sessions"
    text = f"{count}: the move out of {origin.stem} to {other.stem} was cut off"
    return SessionWarning("half-moved", text, f"debug-spyre {shlex.join(words)}")


def _no_baseline(session: Session) -> SessionWarning | None:
    if session.last_run(BASELINE):
        return None
    probe = session.probe or (session.members[0].nodeid if session.members else "NODEID")
    return SessionWarning(
        "no-baseline", "there is no baseline yet", f"debug-spyre run --as baseline {shlex.quote(probe)}"
    )


def probe_unlike_cluster(session: Session, evidence: Mapping[str, Evidence]) -> SessionWarning | None:
    """The baseline's failure is of another sort than the cluster's (rule C7)."""
    run = session.last_run(BASELINE)
    cluster = session.cluster
    if run is None or cluster is None or run.id not in evidence:
        return None
    failure = _failure_of(evidence[run.id], session.probe)
    if failure is None and any(report.verb == ALONE for report in session.reports):
        return None  # what the concern asks for was done
    if failure is None:
        if session.probe and any(m.nodeid == session.probe and m.predicate == "fails" for m in session.members):
            text = (
                "the baseline's probe does not fail in this scope: another probe, or a test that depends on its scope"
            )
            return SessionWarning("probe-passes", text, f"debug-spyre {ALONE}")
        return None
    wanted, got = cluster.get("kind"), failure.kind.value
    if wanted in (None, got) or run.members_only:
        return None
    text = f"the baseline shows {got}, the cluster is {wanted}: wrong probe, or a cluster to re-split"
    return SessionWarning("probe-unlike-cluster", text, "debug-spyre cluster probe NODEID")


def _failure_of(evidence: Evidence, nodeid: str | None) -> Failure | None:
    return next((f for f in evidence.failures if nodeid is None or f.nodeid == nodeid), None)


def _nothing_explains(session: Session) -> SessionWarning | None:
    if not nothing_explains(session):
        return None
    count = len([h for h in session.hypotheses if h.status is not HypothesisStatus.DROPPED])
    text = f"all {count} hypotheses were tested and none explains the failure: the next tier of experiments is due"
    return SessionWarning(
        "none-explains", text, "debug-spyre hypothesis add 'TEXT' --test 'COMMAND'   (shadow, sweep, ladder, repro)"
    )


def is_summary_stale(session: Session) -> bool:
    """A verdict is newer than the summary."""
    verdicts = [h.concluded_at for h in session.hypotheses if h.is_concluded and h.concluded_at]
    if not verdicts:
        return False
    return not session.summaries or session.summaries[-1].at < max(verdicts)


def _stale_summary(session: Session) -> SessionWarning | None:
    if not is_summary_stale(session):
        return None
    return SessionWarning(
        "stale-summary", "the summary is older than the last verdict", "debug-spyre note summary 'TEXT'"
    )


def _stale_bundle(session: Session) -> SessionWarning | None:
    if not session.since_bundle:
        return None
    text = f"the bundle lacks what came after it: {', '.join(session.since_bundle[:3])}"
    return SessionWarning("stale-bundle", text, "debug-spyre escalate")


def unattributed(session: Session) -> tuple[str, ...]:
    """Runs that belong to no row and have no name with a meaning."""
    return tuple(
        r.id
        for r in session.runs.values()
        if r.verb in {"run", "exec"} and r.hypothesis is None and r.name not in RUN_NAMES
    )


def _unattributed(session: Session) -> SessionWarning | None:
    runs = unattributed(session)
    if not runs or any(h.status is HypothesisStatus.CONFIRMED for h in session.hypotheses):  # else a fix is being tried
        return None
    text = (
        f"{count(len(runs), 'run')} {'belongs' if len(runs) == 1 else 'belong'} to no hypothesis: {', '.join(runs[:5])}"
    )
    return SessionWarning("unattributed", text, "debug-spyre hypothesis start, before the next run")


def _few_rows(session: Session) -> SessionWarning | None:
    rows = len(session.hypotheses)
    if rows >= FEW_ROWS or not session.last_run(BASELINE):
        return None
    text = f"the queue has {count(rows, 'row')}: every plausible hypothesis belongs on it before the first is tested"
    return SessionWarning("few-rows", text, "debug-spyre hypothesis seed")
