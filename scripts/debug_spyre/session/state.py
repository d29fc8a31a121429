"""The nouns of a session, as the fold over its journal makes them: members, runs, hypotheses, notes, closing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from debug_spyre.session import events as ev
from debug_spyre.vocabulary.words import VERDICTS, HypothesisStatus, RunStatus, Status


@dataclass(frozen=True, slots=True)
class Member:
    """A failing node id of the cluster with the predicate that makes it one."""

    nodeid: str
    predicate: str = "fails"  # fails, falls-back, slower
    op: str | None = None  # of falls-back
    seconds: float | None = None  # of slower

    def says(self) -> str:
        """The predicate in words."""
        if self.predicate == "falls-back":
            return f"falls back: {self.op}"
        if self.predicate == "slower":
            return f"slower than {self.seconds:g} s"
        return "fails"


@dataclass(frozen=True, slots=True)
class Departed:
    """A node id that left the cluster."""

    nodeid: str
    reason: str
    moved_to: str | None
    at: str


@dataclass(frozen=True, slots=True)
class Run:
    """One command under the card's lock, as far as the journal knows it."""

    id: str
    verb: str
    name: str | None
    argv: tuple[str, ...]
    output: str
    results: str | None
    pytest_args: tuple[str, ...] | None
    env: dict[str, str]
    hypothesis: int | None
    members_only: bool
    started_at: str
    started_seq: int
    provenance: dict[str, Any]
    tree_digest: str | None
    backend: str | None
    supervisor: int | None
    by: str
    status: RunStatus = RunStatus.RUNNING
    valid: bool = False
    exit: int | None = None
    seconds: float | None = None
    scope: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] | None = None
    failing: int = 0
    digest: tuple[str, ...] = ()
    evidence: str | None = None
    tree_digest_after: str | None = None
    backend_after: str | None = None
    warnings: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    finished_at: str | None = None
    finished_seq: int | None = None
    done: int | None = None
    collected: int | None = None
    failed_so_far: int | None = None
    current: str | None = None

    @property
    def is_finished(self) -> bool:
        """An end was recorded."""
        return self.finished_at is not None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One row of the queue."""

    number: int
    text: str
    test: str
    test_class: str
    cost_seconds: float | None
    confidence: str
    reason: str | None
    origin: str
    added_at: str
    status: HypothesisStatus = HypothesisStatus.QUEUED
    command: str | None = None  # written before it ran
    started_at: str | None = None
    started_seq: int = 0
    concluded_at: str | None = None
    outcome: str | None = None  # one sentence, or the reason it was dropped
    excerpt: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    @property
    def is_concluded(self) -> bool:
        """It has a verdict or was dropped."""
        return self.status in VERDICTS or self.status is HypothesisStatus.DROPPED


@dataclass(frozen=True, slots=True)
class Override:
    """A person set a condition aside, or approved the patch (`code` "patch-approved")."""

    code: str
    reason: str
    by: str
    at: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The state of one session: a pure fold over its journal."""

    stem: str
    slug: str
    symptom: str
    status: Status
    checkout: str
    opened_at: str
    opened_by: str
    local_time: str
    updated_at: str
    last_seq: int
    members: tuple[Member, ...]
    probe: str | None
    cluster: dict[str, Any] | None
    matrix: tuple[str, ...] | None
    source: str | None
    tree: dict[str, Any]
    backend: str | None
    linked_from: str | None
    client: str | None
    departed: tuple[Departed, ...] = ()
    runs: dict[str, Run] = field(default_factory=dict)
    hypotheses: tuple[Hypothesis, ...] = ()
    summaries: tuple[ev.SummaryNoted, ...] = ()
    findings: tuple[ev.FindingNoted, ...] = ()
    nexts: tuple[ev.NextNoted, ...] = ()
    experiments: tuple[ev.ExperimentNoted, ...] = ()
    artifacts: tuple[ev.ArtifactSaved, ...] = ()
    reports: tuple[ev.ReportMade, ...] = ()
    validation: ev.ValidationRecorded | None = None
    reverts: tuple[ev.TreeReverted, ...] = ()
    overrides: tuple[Override, ...] = ()
    approval: Override | None = None
    closing: ev.SessionClosed | None = None
    links: tuple[tuple[str, str], ...] = ()  # (relation, stem)
    reopened: tuple[ev.SessionReopened, ...] = ()
    unknown_events: int = 0

    def hypothesis(self, number: int) -> Hypothesis | None:
        """The row with that number, or None."""
        return next((h for h in self.hypotheses if h.number == number), None)

    @property
    def in_progress(self) -> Hypothesis | None:
        """The one row that is being tested."""
        return next((h for h in self.hypotheses if h.status is HypothesisStatus.IN_PROGRESS), None)

    @property
    def queued(self) -> tuple[Hypothesis, ...]:
        """Rows still to be tested."""
        return tuple(h for h in self.hypotheses if h.status is HypothesisStatus.QUEUED)

    def named_runs(self, name: str) -> tuple[Run, ...]:
        """Runs of that name, oldest first."""
        return tuple(r for r in self.runs.values() if r.name == name)

    def last_run(self, name: str, *, valid: bool = True) -> Run | None:
        """The newest finished run of that name (valid only, unless told otherwise)."""
        found = [r for r in self.named_runs(name) if r.is_finished and (r.valid or not valid)]
        return found[-1] if found else None
