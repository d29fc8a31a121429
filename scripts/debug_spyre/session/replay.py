"""replay(events) -> Session: how facts become state. Pure, total over legal journals, tolerant of unknown events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from debug_spyre.session import events as ev
from debug_spyre.session.state import Departed, Hypothesis, Member, Override, Run, Session
from debug_spyre.vocabulary.words import HypothesisStatus, RunStatus, Status


class NoSessionError(ValueError):
    """The events make no session: they don't begin with session_opened, or a word in them is none of ours."""


def replay(events: Iterable[ev.Event]) -> Session:
    """The session's state after these events.

    Raises:
        NoSessionError: the first known event is not session_opened, or a status in them is unknown.
    """
    session: Session | None = None
    for event in events:
        if session is None:
            if not isinstance(event, ev.SessionOpened):
                raise NoSessionError(f"the journal begins with {event.kind!r}, not with session_opened")
            session = _opened(event)
            continue
        step = _STEPS.get(type(event))
        try:
            session = step(session, event) if step else session
        except ValueError as error:
            raise NoSessionError(f"event {event.seq} ({event.kind}): {error}") from error
        session = replace(session, updated_at=event.at, last_seq=event.seq)
    if session is None:
        raise NoSessionError("the journal is empty")
    return session


def member_from(data: dict[str, Any]) -> Member:
    """A member from its journal form."""
    predicate = data.get("predicate") or {"kind": "fails"}
    return Member(
        nodeid=data["nodeid"],
        predicate=predicate.get("kind", "fails"),
        op=predicate.get("op"),
        seconds=predicate.get("seconds"),
    )


def member_to(member: Member) -> dict[str, Any]:
    """Inverse of member_from."""
    predicate: dict[str, Any] = {"kind": member.predicate}
    if member.op is not None:
        predicate["op"] = member.op
    if member.seconds is not None:
        predicate["seconds"] = member.seconds
    return {"nodeid": member.nodeid, "predicate": predicate}


def _opened(event: ev.SessionOpened) -> Session:
    return Session(
        stem=event.stem,
        slug=event.slug,
        symptom=event.symptom,
        status=Status.INVESTIGATING,
        checkout=event.checkout,
        opened_at=event.at,
        opened_by=event.by,
        local_time=event.local_time,
        updated_at=event.at,
        last_seq=event.seq,
        members=tuple(member_from(m) for m in event.members),
        probe=event.probe,
        cluster=event.cluster,
        matrix=event.matrix,
        source=event.source,
        tree=event.tree,
        backend=event.backend,
        linked_from=event.linked_from,
        client=event.client,
        links=(("carved-from", event.linked_from),) if event.linked_from else (),
    )


def _run_started(session: Session, event: ev.RunStarted) -> Session:
    run = Run(
        id=event.run,
        verb=event.verb,
        name=event.name,
        argv=event.argv,
        output=event.output,
        results=event.results,
        pytest_args=event.pytest_args,
        env=event.env,
        hypothesis=event.hypothesis,
        members_only=event.members_only,
        started_at=event.began_at or event.at,
        started_seq=event.seq,
        provenance=event.provenance,
        tree_digest=event.tree_digest,
        backend=event.backend,
        supervisor=event.supervisor,
        by=event.by,
    )
    return replace(session, runs={**session.runs, event.run: run})


def _change_run(session: Session, run_id: str, **changes: Any) -> Session:
    run = session.runs.get(run_id)
    if run is None:
        return session
    return replace(session, runs={**session.runs, run_id: replace(run, **changes)})


def _run_progressed(session: Session, event: ev.RunProgressed) -> Session:
    return _change_run(
        session,
        event.run,
        done=event.done,
        collected=event.collected,
        failed_so_far=event.failed,
        current=event.current,
    )


def _run_finished(session: Session, event: ev.RunFinished) -> Session:
    return _change_run(
        session,
        event.run,
        status=RunStatus(event.status),
        valid=event.valid,
        exit=event.exit,
        seconds=event.seconds,
        scope=event.scope,
        counts=event.counts,
        failing=event.failing,
        digest=event.digest,
        evidence=event.evidence,
        tree_digest_after=event.tree_digest,
        backend_after=event.backend,
        warnings=event.warnings,
        holders=event.holders,
        finished_at=event.ended_at or event.at,
        finished_seq=event.seq,
        current=None,
    )


def _change_row(session: Session, number: int, **changes: Any) -> Session:
    rows = tuple(replace(h, **changes) if h.number == number else h for h in session.hypotheses)
    return replace(session, hypotheses=rows)


def _hypothesis_added(session: Session, event: ev.HypothesisAdded) -> Session:
    row = Hypothesis(
        number=event.number,
        text=event.text,
        test=event.test,
        test_class=event.test_class,
        cost_seconds=event.cost_seconds,
        confidence=event.confidence,
        reason=event.reason,
        origin=event.origin,
        added_at=event.at,
    )
    return replace(session, hypotheses=(*session.hypotheses, row))


def _hypothesis_started(session: Session, event: ev.HypothesisStarted) -> Session:
    return _change_row(
        session,
        event.number,
        status=HypothesisStatus.IN_PROGRESS,
        command=event.command,
        started_at=event.at,
    )


def _hypothesis_concluded(session: Session, event: ev.HypothesisConcluded) -> Session:
    return _change_row(
        session,
        event.number,
        status=HypothesisStatus(event.verdict),
        outcome=event.sentence,
        excerpt=event.excerpt,
        runs=event.runs,
        concluded_at=event.at,
    )


def _hypothesis_dropped(session: Session, event: ev.HypothesisDropped) -> Session:
    return _change_row(
        session,
        event.number,
        status=HypothesisStatus.DROPPED,
        outcome=event.reason,
        concluded_at=event.at,
    )


def _summary(session: Session, event: ev.SummaryNoted) -> Session:
    return replace(session, summaries=(*session.summaries, event))


def _finding(session: Session, event: ev.FindingNoted) -> Session:
    return replace(session, findings=(*session.findings, event))


def _next(session: Session, event: ev.NextNoted) -> Session:
    return replace(session, nexts=(*session.nexts, event))


def _experiment(session: Session, event: ev.ExperimentNoted) -> Session:
    return replace(session, experiments=(*session.experiments, event))


def _artifact(session: Session, event: ev.ArtifactSaved) -> Session:
    kept = tuple(a for a in session.artifacts if a.path != event.path)
    return replace(session, artifacts=(*kept, event))


def _member_added(session: Session, event: ev.MemberAdded) -> Session:
    member = member_from({"nodeid": event.nodeid, "predicate": event.predicate})
    kept = tuple(m for m in session.members if m.nodeid != event.nodeid)
    gone = tuple(d for d in session.departed if d.nodeid != event.nodeid)
    return replace(session, members=(*kept, member), departed=gone)


def _member_removed(session: Session, event: ev.MemberRemoved) -> Session:
    departed = Departed(event.nodeid, event.reason, event.moved_to, event.at)
    members = tuple(m for m in session.members if m.nodeid != event.nodeid)
    probe = session.probe if session.probe != event.nodeid else None
    return replace(session, members=members, probe=probe, departed=(*session.departed, departed))


def _probe(session: Session, event: ev.ProbeChosen) -> Session:
    return replace(session, probe=event.nodeid)


def _reverted(session: Session, event: ev.TreeReverted) -> Session:
    return replace(session, reverts=(*session.reverts, event))


def _validated(session: Session, event: ev.ValidationRecorded) -> Session:
    return replace(session, validation=event)


def _approved(session: Session, event: ev.PatchApproved) -> Session:
    return replace(session, approval=Override("patch-approved", event.reason, event.by, event.at, event.digest))


def _overridden(session: Session, event: ev.GateOverridden) -> Session:
    override = Override(event.code, event.reason, event.by, event.at)
    return replace(session, overrides=(*session.overrides, override))


def _closed(session: Session, event: ev.SessionClosed) -> Session:
    return replace(session, status=Status(event.status), closing=event)


def _reopened(session: Session, event: ev.SessionReopened) -> Session:
    return replace(session, status=Status.INVESTIGATING, closing=None, reopened=(*session.reopened, event))


def _linked(session: Session, event: ev.SessionLinked) -> Session:
    link = (event.relation, event.stem)
    return session if link in session.links else replace(session, links=(*session.links, link))


def _report(session: Session, event: ev.ReportMade) -> Session:
    return replace(session, reports=(*session.reports, event))


def _unknown(session: Session, _event: ev.UnknownEvent) -> Session:
    return replace(session, unknown_events=session.unknown_events + 1)


_STEPS: dict[type[ev.Event], Callable[[Session, Any], Session]] = {
    ev.RunStarted: _run_started,
    ev.RunProgressed: _run_progressed,
    ev.RunFinished: _run_finished,
    ev.HypothesisAdded: _hypothesis_added,
    ev.HypothesisStarted: _hypothesis_started,
    ev.HypothesisConcluded: _hypothesis_concluded,
    ev.HypothesisDropped: _hypothesis_dropped,
    ev.SummaryNoted: _summary,
    ev.FindingNoted: _finding,
    ev.NextNoted: _next,
    ev.ExperimentNoted: _experiment,
    ev.ArtifactSaved: _artifact,
    ev.MemberAdded: _member_added,
    ev.MemberRemoved: _member_removed,
    ev.ProbeChosen: _probe,
    ev.TreeReverted: _reverted,
    ev.ValidationRecorded: _validated,
    ev.PatchApproved: _approved,
    ev.GateOverridden: _overridden,
    ev.SessionClosed: _closed,
    ev.SessionReopened: _reopened,
    ev.SessionLinked: _linked,
    ev.ReportMade: _report,
    ev.UnknownEvent: _unknown,
}
