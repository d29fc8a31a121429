"""The nouns of a session, as the fold over its journal makes them: members, runs, hypotheses, notes, closing."""

from __future__ import annotations

import re
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

    @property
    def tree_seen(self) -> str | None:
        """The digest of the working files as a run or a revert last saw them; as they were at open where none did."""
        seen = [(r.finished_seq or 0, r.tree_digest_after) for r in self.runs.values() if r.is_finished]
        seen += [(r.seq, r.digest) for r in self.reverts]
        known = [(seq, digest) for seq, digest in seen if digest is not None]
        return max(known)[1] if known else self.tree.get("digest")

    @property
    def verified_repro(self) -> ev.ReportMade | None:
        """The newest script that was proved on the card while its control passes on the CPU: the bug is torch-spyre's."""
        found = (r for r in reversed(self.reports) if r.verb == "repro")
        return next((r for r in found if str(r.data.get("stamp", "")).startswith("VERIFIED")), None)

    @property
    def bundle(self) -> ev.ReportMade | None:
        """The newest escalation bundle."""
        return next((r for r in reversed(self.reports) if r.verb == "escalate" and r.report), None)

    @property
    def since_bundle(self) -> tuple[str, ...]:
        """What was recorded after the newest bundle and is missing in it; empty where there is none."""
        if self.bundle is None:
            return ()
        packed = self.bundle.seq
        runs = [f"run {run.id}" for run in self.runs.values() if run.started_seq > packed]
        notes = [f"a {word}" for word, notes in (("summary", self.summaries), ("finding", self.findings))
                 if any(note.seq > packed for note in notes)]  # fmt: skip
        reports = [f"the report of {r.verb}" for r in self.reports if r.seq > packed]
        return (*runs, *notes, *reports)

    def last_run(self, name: str, *, valid: bool = True) -> Run | None:
        """The newest finished run of that name (valid only, unless told otherwise)."""
        found = [r for r in self.named_runs(name) if r.is_finished and (r.valid or not valid)]
        return found[-1] if found else None


ALIKE = 0.6
_WORD = re.compile(r"[a-z][a-z0-9_]{2,}")


@dataclass(frozen=True, slots=True)
class Similar:
    """A past session with what it taught."""

    stem: str
    slug: str
    status: str
    score: float  # 1.0: the same signature
    why: str
    cause: str | None
    fixed_by: str | None
    wasted: str | None


def likeness(one: dict[str, Any] | None, other: dict[str, Any] | None) -> tuple[float, str]:
    """How alike two clusters are (0..1), and why."""
    if not one or not other or not one.get("signature") or not other.get("signature"):
        return 0.0, "no signature to compare"
    if one["signature"] == other["signature"]:
        return 1.0, "the same signature"
    if (one.get("kind"), one.get("stage")) != (other.get("kind"), other.get("stage")):
        return 0.0, "another kind or stage"
    a, b = _words(one), _words(other)
    score = len(a & b) / len(a | b) if a | b else 0.0
    return round(score, 3), f"same kind and stage, {len(a & b)} of {len(a | b)} words in common"


def _words(cluster: dict[str, Any]) -> set[str]:
    return set(_WORD.findall(f"{cluster['signature']} {cluster.get('why', '')}".lower()))


def find_similar(cluster: dict[str, Any] | None, past: list[Session], *, except_stem: str = "") -> tuple[Similar, ...]:
    """Past sessions alike enough to be worth a look, the most alike first, then the newest."""
    found = []
    for session in past:
        score, why = likeness(cluster, session.cluster)
        if score < ALIKE or session.stem == except_stem:
            continue
        closing = session.closing
        confirmed = [h for h in session.hypotheses if h.status == "confirmed"]
        found.append(
            Similar(
                stem=session.stem,
                slug=session.slug,
                status=session.status.value,
                score=score,
                why=why,
                cause=closing.cause if closing else None,
                fixed_by=confirmed[-1].text if confirmed else None,
                wasted=closing.wasted if closing else None,
            )
        )
    found.sort(key=lambda s: s.stem, reverse=True)
    return tuple(sorted(found, key=lambda s: -s.score))
