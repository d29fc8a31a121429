"""How facts become state: pure, total over legal journals, tolerant of unknown events, linear in their number.

A draft takes one event after the other; `session()` is the state so far. `replay(events)` does both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
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
    draft = Draft()
    for event in events:
        draft.add(event)
    return draft.session()


def member_from(data: dict[str, Any]) -> Member:
    """A member from its journal form.

    Raises:
        ValueError: it is none.
    """
    predicate = data.get("predicate") or {"kind": "fails"}
    if not isinstance(data.get("nodeid"), str) or not isinstance(predicate, dict):
        raise ValueError(f"{data!r:.80} is no member")  # noqa: TRY004 - the journal's fault, not the caller's
    kind, op, seconds = predicate.get("kind", "fails"), predicate.get("op"), predicate.get("seconds")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if (
        not isinstance(kind, str)
        or not (op is None or isinstance(op, str))
        or not (seconds is None or is_number)
        or (kind == "slower" and seconds is None)
    ):
        raise ValueError(f"{predicate!r:.80} is no predicate of a member")
    return Member(nodeid=data["nodeid"], predicate=kind, op=op, seconds=seconds)


def member_to(member: Member) -> dict[str, Any]:
    """Inverse of member_from."""
    predicate: dict[str, Any] = {"kind": member.predicate}
    if member.op is not None:
        predicate["op"] = member.op
    if member.seconds is not None:
        predicate["seconds"] = member.seconds
    return {"nodeid": member.nodeid, "predicate": predicate}


@dataclass(slots=True)
class Draft:
    """A session that is being put together."""

    head: dict[str, Any] = field(default_factory=dict)  # the fields of Session that one value replaces
    members: dict[str, Member] = field(default_factory=dict)
    departed: list[Departed] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    rows: list[Hypothesis] = field(default_factory=list)
    kept: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))  # field of Session -> its events

    def add(self, event: ev.Event) -> None:
        """Take the next event.

        Raises:
            NoSessionError: it is the first and not session_opened, or a word in it is none of ours.
        """
        if not self.head and not isinstance(event, ev.SessionOpened):
            raise NoSessionError(f"the journal begins with {event.kind!r}, not with session_opened")
        try:
            if not self.head:
                self._open(event)  # type: ignore[arg-type]
            elif (name := KEPT.get(type(event))) is not None:
                self.kept[name].append(event)
            elif (step := _STEPS.get(type(event))) is not None:
                step(self, event)
        except ValueError as error:
            raise NoSessionError(f"event {event.seq} ({event.kind}): {error}") from error
        self.head["updated_at"], self.head["last_seq"] = event.at, event.seq

    def session(self) -> Session:
        """The state so far.

        Raises:
            NoSessionError: there was no event.
        """
        if not self.head:
            raise NoSessionError("the journal is empty")
        kept: dict[str, Any] = {name: tuple(events) for name, events in self.kept.items()}
        return Session(
            **self.head,
            members=tuple(self.members.values()),
            departed=tuple(self.departed),
            runs=dict(self.runs),
            hypotheses=tuple(self.rows),
            **kept,
        )

    def _open(self, event: ev.SessionOpened) -> None:
        members = {m.nodeid: m for m in map(member_from, event.members)}
        same = ("stem", "slug", "symptom", "checkout", "local_time", "probe", "cluster", "matrix", "source", "tree")
        self.head = {name: getattr(event, name) for name in (*same, "backend", "linked_from", "client")}
        self.head |= {"status": Status.INVESTIGATING, "opened_at": event.at, "opened_by": event.by}
        self.members = members
        self.kept["links"] = [("carved-from", event.linked_from)] if event.linked_from else []

    def change_run(self, run_id: str, **changes: Any) -> None:
        """Change what is known of a run; one that never began is left aside."""
        if run_id in self.runs:
            self.runs[run_id] = replace(self.runs[run_id], **changes)

    def change_row(self, number: int, **changes: Any) -> None:
        """Change the rows of that number; rows are numbered from 1 without a gap, unless somebody edited the journal."""
        if 0 < number <= len(self.rows) and self.rows[number - 1].number == number:
            self.rows[number - 1] = replace(self.rows[number - 1], **changes)
        else:
            self.rows = [replace(h, **changes) if h.number == number else h for h in self.rows]


def _run_started(draft: Draft, event: ev.RunStarted) -> None:
    same = [
        "verb", "name", "argv", "output", "results", "pytest_args", "env", "hypothesis", "members_only", "by", "provenance",
        "tree_digest", "backend", "supervisor",
    ]  # fmt: skip
    draft.runs[event.run] = Run(
        id=event.run,
        started_at=event.began_at or event.at,
        started_seq=event.seq,
        **{name: getattr(event, name) for name in same},
    )


def _run_progressed(draft: Draft, event: ev.RunProgressed) -> None:
    draft.change_run(
        event.run, done=event.done, collected=event.collected, failed_so_far=event.failed, current=event.current
    )


def _run_finished(draft: Draft, event: ev.RunFinished) -> None:
    same = ("valid", "exit", "seconds", "scope", "counts", "failing", "digest", "evidence", "warnings", "holders")
    draft.change_run(
        event.run,
        status=RunStatus(event.status),
        tree_digest_after=event.tree_digest,
        backend_after=event.backend,
        finished_at=event.ended_at or event.at,
        finished_seq=event.seq,
        current=None,
        **{name: getattr(event, name) for name in same},
    )


def _hypothesis_added(draft: Draft, event: ev.HypothesisAdded) -> None:
    same = ("number", "text", "test", "test_class", "cost_seconds", "confidence", "reason", "origin")
    draft.rows.append(Hypothesis(added_at=event.at, **{name: getattr(event, name) for name in same}))


def _hypothesis_started(draft: Draft, event: ev.HypothesisStarted) -> None:
    draft.change_row(
        event.number,
        status=HypothesisStatus.IN_PROGRESS,
        command=event.command,
        started_at=event.at,
        started_seq=event.seq,
    )


def _hypothesis_concluded(draft: Draft, event: ev.HypothesisConcluded) -> None:
    draft.change_row(
        event.number,
        status=HypothesisStatus(event.verdict),
        outcome=event.sentence,
        excerpt=event.excerpt,
        runs=event.runs,
        concluded_at=event.at,
    )


def _hypothesis_dropped(draft: Draft, event: ev.HypothesisDropped) -> None:
    draft.change_row(event.number, status=HypothesisStatus.DROPPED, outcome=event.reason, concluded_at=event.at)


def _artifact(draft: Draft, event: ev.ArtifactSaved) -> None:
    kept = draft.kept["artifacts"]
    kept[:] = [*(a for a in kept if a.path != event.path), event]


def _member_added(draft: Draft, event: ev.MemberAdded) -> None:
    member = member_from({"nodeid": event.nodeid, "predicate": event.predicate})
    draft.members.pop(member.nodeid, None)  # it stands last
    draft.members[member.nodeid] = member
    draft.departed = [d for d in draft.departed if d.nodeid != member.nodeid]


def _member_removed(draft: Draft, event: ev.MemberRemoved) -> None:
    draft.members.pop(event.nodeid, None)
    draft.departed.append(Departed(event.nodeid, event.reason, event.moved_to, event.at))
    if draft.head["probe"] == event.nodeid:
        draft.head["probe"] = None


def _probe(draft: Draft, event: ev.ProbeChosen) -> None:
    draft.head["probe"] = event.nodeid


def _validated(draft: Draft, event: ev.ValidationRecorded) -> None:
    draft.head["validation"] = event


def _approved(draft: Draft, event: ev.PatchApproved) -> None:
    draft.head["approval"] = Override("patch-approved", event.reason, event.by, event.at, event.digest)


def _overridden(draft: Draft, event: ev.GateOverridden) -> None:
    draft.kept["overrides"].append(Override(event.code, event.reason, event.by, event.at))


def _closed(draft: Draft, event: ev.SessionClosed) -> None:
    draft.head |= {"status": Status(event.status), "closing": event}


def _reopened(draft: Draft, event: ev.SessionReopened) -> None:
    draft.head |= {"status": Status.INVESTIGATING, "closing": None}
    draft.kept["reopened"].append(event)


def _linked(draft: Draft, event: ev.SessionLinked) -> None:
    link = (event.relation, event.stem)
    if link not in draft.kept["links"]:
        draft.kept["links"].append(link)


def _unknown(draft: Draft, _event: ev.UnknownEvent) -> None:
    draft.head["unknown_events"] = draft.head.get("unknown_events", 0) + 1


KEPT: dict[type[ev.Event], str] = {  # events that the state holds as they are
    ev.SummaryNoted: "summaries",
    ev.FindingNoted: "findings",
    ev.NextNoted: "nexts",
    ev.ExperimentNoted: "experiments",
    ev.TreeReverted: "reverts",
    ev.ReportMade: "reports",
}

_STEPS: dict[type[ev.Event], Callable[[Draft, Any], None]] = {
    ev.RunStarted: _run_started,
    ev.RunProgressed: _run_progressed,
    ev.RunFinished: _run_finished,
    ev.HypothesisAdded: _hypothesis_added,
    ev.HypothesisStarted: _hypothesis_started,
    ev.HypothesisConcluded: _hypothesis_concluded,
    ev.HypothesisDropped: _hypothesis_dropped,
    ev.ArtifactSaved: _artifact,
    ev.MemberAdded: _member_added,
    ev.MemberRemoved: _member_removed,
    ev.ProbeChosen: _probe,
    ev.ValidationRecorded: _validated,
    ev.PatchApproved: _approved,
    ev.GateOverridden: _overridden,
    ev.SessionClosed: _closed,
    ev.SessionReopened: _reopened,
    ev.SessionLinked: _linked,
    ev.UnknownEvent: _unknown,
}
