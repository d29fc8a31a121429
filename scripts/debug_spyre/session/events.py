"""The journal's events: past-tense facts, frozen, validated when read; corrections are new events.

One event is one JSON line: v, seq, at (UTC, ISO 8601 with Z), by, kind, and the fields of its class.
An unknown kind or a newer version is kept as UnknownEvent and never an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

from debug_spyre.session.forms import check_forms
from debug_spyre.vocabulary.codec import FormError, from_json, to_json

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events share; `seq`, `at` and `by` are given by the journal when it appends."""

    kind: ClassVar[str] = ""
    seq: int = 0
    at: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(Event):
    """A session began. `members` are {"nodeid", "predicate": {"kind": "fails"|"falls-back"|"slower", ...}}."""

    kind = "session_opened"
    stem: str
    slug: str
    symptom: str
    members: tuple[dict[str, Any], ...]
    checkout: str
    probe: str | None = None
    cluster: dict[str, Any] | None = None  # signature, why, kind, stage, severity, reason, separators
    matrix: tuple[str, ...] | None = None  # pytest arguments of the selection that the cluster came from
    source: str | None = None  # triage folder or the --from files
    tree: dict[str, Any] = field(default_factory=dict)  # head, digest, snapshot (see tree/io/snapshot.py)
    backend: str | None = None  # fingerprint of the installed torch-spyre
    linked_from: str | None = None  # stem of the session that this cluster was carved out of
    client: str | None = None  # the agent's own session id
    local_time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A command began under the card's lock. Paths are relative to the session's folder."""

    kind = "run_started"
    run: str
    verb: str  # run, exec, triage, validate, shadow, ...
    name: str | None
    argv: tuple[str, ...]
    output: str
    results: str | None = None
    pytest_args: tuple[str, ...] | None = None  # as asked by the user, None for other commands
    env: dict[str, str] = field(default_factory=dict)  # overrides only
    hypothesis: int | None = None
    members_only: bool = False
    cwd: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    tree_digest: str | None = None
    backend: str | None = None
    supervisor: int | None = None
    began_at: str | None = None  # of a run that was taken over from a triage: when it really began


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgressed(Event):
    """Where a run stands; appended by its supervisor at most every 30 s."""

    kind = "run_progressed"
    run: str
    done: int
    failed: int
    collected: int | None = None
    current: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended. The whole evidence lies in the file `evidence`; the event keeps the short form."""

    kind = "run_finished"
    run: str
    status: str  # words.RunStatus
    valid: bool
    seconds: float
    exit: int | None = None
    scope: dict[str, Any] = field(default_factory=dict)  # digest, collected, options
    counts: dict[str, int] | None = None
    failing: int = 0
    digest: tuple[str, ...] = ()  # the lines that matter in words, <= 10
    evidence: str | None = None  # path of evidence.json, relative to the session's folder
    tree_digest: str | None = None
    backend: str | None = None
    warnings: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()  # who still held the card at the end
    ended_at: str | None = None  # of a run that was taken over from a triage: when it really ended
    output: str | None = None  # path of the output, whose digest the line carries


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisAdded(Event):
    """A row was queued before anything was tested."""

    kind = "hypothesis_added"
    number: int
    text: str
    test: str  # how to test it; a ready command where there is one
    test_class: str = "probe"  # probe, code-change, full-run
    cost_seconds: float | None = None
    confidence: str = "medium"  # high, medium, low
    reason: str | None = None  # why it is plausible, from the evidence
    origin: str = "user"  # user, seed, regression


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisStarted(Event):
    """The row is in progress; the command stands here before it runs."""

    kind = "hypothesis_started"
    number: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisConcluded(Event):
    """A verdict with one sentence, at most ten lines of evidence and the runs that show it."""

    kind = "hypothesis_concluded"
    number: int
    verdict: str
    sentence: str
    excerpt: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisDropped(Event):
    """A row was taken off the queue untested, with the reason."""

    kind = "hypothesis_dropped"
    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryNoted(Event):
    """The session summary in plain English; the newest counts."""

    kind = "summary_noted"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingNoted(Event):
    """A statement worth keeping. `expect_change` declares an intended change (torch-spyre)."""

    kind = "finding_noted"
    text: str
    expect_change: str | None = None
    reference: str | None = None  # file:line inside torch-spyre, say


@dataclass(frozen=True, slots=True, kw_only=True)
class NextNoted(Event):
    """An explicit next action, appended to those that follow from the queue."""

    kind = "next_noted"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentNoted(Event):
    """What a person ran by hand; it never counts for the gate."""

    kind = "experiment_noted"
    text: str
    command: str | None = None
    hypothesis: int | None = None
    output: str | None = None  # copied into the session's folder
    tail: tuple[str, ...] = ()
    conclusion: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSaved(Event):
    """A file worth keeping, relative to the session's folder."""

    kind = "artifact_saved"
    path: str
    sha256: str
    size: int
    note: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAdded(Event):
    """A node id joined the cluster while working."""

    kind = "member_added"
    nodeid: str
    predicate: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRemoved(Event):
    """A node id left the cluster: moved to another session, or dropped with a reason."""

    kind = "member_removed"
    nodeid: str
    reason: str
    moved_to: str | None = None  # stem


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeChosen(Event):
    """The member to use as quick check."""

    kind = "probe_chosen"
    nodeid: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReverted(Event):
    """The tree is back at what it was at open; the patch lies in the session's folder."""

    kind = "tree_reverted"
    patch: str | None
    files: tuple[str, ...]
    digest: str
    patched: str | None = None  # digest of the tree that the patch was taken from: start + patch


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRecorded(Event):
    """The validation table: one row a member {"nodeid","pre","post","note","cleared"}, and the matrix's comparison."""

    kind = "validation_recorded"
    rows: tuple[dict[str, Any], ...]
    matrix: dict[str, Any] | None = None
    gate: dict[str, Any] = field(default_factory=dict)
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchApproved(Event):
    """A person approved that the patch stays in the tree."""

    kind = "patch_approved"
    reason: str
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOverridden(Event):
    """A person set one condition of the gate aside, with the reason; shown in red."""

    kind = "gate_overridden"
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed(Event):
    """The session reached resolved or blocked."""

    kind = "session_closed"
    status: str
    cause: str | None = None  # retrospective: what it was
    wasted: str | None = None  # retrospective: what was wasted effort
    signal: str | None = None  # retrospective: which signal would have pointed there
    next_action: str | None = None  # blocked: what a person must decide, the escalation, or the next tier
    workaround: bool = False
    escalated: str | None = None  # path of the bundle


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReopened(Event):
    """The session is investigating again."""

    kind = "session_reopened"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLinked(Event):
    """Another session belongs to this one: carved out of it, or its origin."""

    kind = "session_linked"
    stem: str
    relation: str  # carved-out, carved-from, similar


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportMade(Event):
    """A verb that examines (shadow, sweep, ladder, compare, repro, limits, escalate) left its report.

    `report` names the JSON file; `lines` is the answer in words (<= 10 lines); `data` small facts for the page.
    """

    kind = "report_made"
    verb: str
    lines: tuple[str, ...]
    report: str | None = None
    run: str | None = None
    hypothesis: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent(Event):
    """An event of a newer version or of a kind that this version does not know."""

    kind = "unknown"
    original: dict[str, Any]


# Event.__subclasses__() would also give the classes as they were before slots were added.
KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, Event) and cls not in (Event, UnknownEvent)
}


_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class EventFormatError(ValueError):
    """A journal line is not an event: not JSON, not an object, a field missing or of the wrong type."""


def to_line(event: Event) -> str:
    """One JSON line without its newline; key order is fixed, so equal events give equal bytes."""
    if isinstance(event, UnknownEvent):
        return json.dumps(event.original, ensure_ascii=False, separators=(",", ":"))
    body = to_json(event)
    head = {"v": VERSION, "seq": body.pop("seq"), "at": body.pop("at"), "by": body.pop("by"), "kind": event.kind}
    text = json.dumps(head | body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Readers that split on Unicode line ends must see one line; lone surrogates are not UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8").translate(_LINE_ENDS)


def from_line(line: str) -> Event:
    """Parse and validate one journal line.

    Raises:
        EventFormatError: the line is no event.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EventFormatError(f"not JSON ({error})") from error
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise EventFormatError("not an event object")
    head: dict[str, Any] = {"seq": data.get("seq"), "at": data.get("at"), "by": data.get("by")}
    if not isinstance(head["seq"], int) or not isinstance(head["at"], str) or not isinstance(head["by"], str):
        raise EventFormatError("seq, at or by is missing")
    cls = KINDS.get(data["kind"])
    if cls is None or data.get("v") != VERSION:
        return UnknownEvent(original=data, **head)
    try:
        check_forms(cls.kind, data)
        return from_json(cls, data, cls.kind)
    except FormError as error:
        raise EventFormatError(str(error)) from error
