"""The transitions of a test between two runs, and of a whole matrix: the facts that the gate judges.

A test without an outcome, newly skipped or newly xfailed never counts as passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from debug_spyre.session.state import Member
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Outcome, Severity

FAILING = frozenset({Outcome.FAILED, Outcome.ERROR, Outcome.CRASHED, Outcome.TIMEOUT})
PASSING = frozenset({Outcome.PASSED, Outcome.XPASSED})
NO_ANSWER = frozenset({Outcome.SKIPPED, Outcome.XFAILED, Outcome.MISSING})
BADNESS = (
    Outcome.PASSED, Outcome.XPASSED, Outcome.XFAILED, Outcome.SKIPPED, Outcome.MISSING,
    Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT, Outcome.CRASHED,
)  # fmt: skip
_KIND_RANK = {Kind.MISMATCH: 1, Kind.COMPILE: 2, Kind.EXCEPTION: 2, Kind.TIMEOUT: 3, Kind.CRASH: 4}
_SEVERITY_RANK = {Severity.ACCUMULATION: 1, Severity.SPECIAL: 2, Severity.STRUCTURAL: 3}


class Answer(StrEnum):
    """Does the member's predicate hold in this run?"""

    HOLDS = "holds"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TestResult:
    """All that one run says of one test."""

    nodeid: str
    outcome: Outcome = Outcome.MISSING
    seconds: float | None = None
    fallbacks: frozenset[str] = frozenset()
    failure: Failure | None = None
    flaky: bool = False  # failed first and passed when it was repeated in the same process: never a pass

    @property
    def word(self) -> str:
        """The outcome as the validation table shows it."""
        if self.flaky:
            return "flaky (failed, then passed)"
        if self.failure is not None and self.outcome in FAILING:
            return f"{self.outcome} ({self.failure.kind})"
        return str(self.outcome)


class RunOutcomes:
    """One run's evidence by node id."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._seen = _index(evidence)
        # selected ids in order, then any other that has an outcome
        self.nodeids = tuple(dict.fromkeys((*evidence.selected, *self._seen)))
        self._known = frozenset(self.nodeids)

    def of(self, nodeid: str) -> TestResult:
        """What the run says of this test; MISSING where it says nothing."""
        return self._seen.get(nodeid) or TestResult(nodeid)

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each test that the run says something of."""
        return {nodeid: seen.outcome for nodeid, seen in self._seen.items()}

    def knows(self, nodeid: str) -> bool:
        """The run selected this test or shows an outcome of it."""
        return nodeid in self._known


def _index(evidence: Evidence) -> dict[str, TestResult]:
    failures: dict[str, Failure] = {}
    for failure in evidence.failures:
        if failure.nodeid is not None and _worse_failure(failures.get(failure.nodeid), failure):
            failures[failure.nodeid] = failure
    fallbacks: dict[str, set[str]] = {}
    for fallback in evidence.fallbacks:
        for nodeid in fallback.nodeids:
            fallbacks.setdefault(nodeid, set()).add(op_name(fallback.op))
    seen: dict[str, TestResult] = {}
    for test in evidence.tests:
        ops = frozenset(map(op_name, test.fallbacks)) | fallbacks.get(test.nodeid, set())
        flaky = test.reruns > 0 and test.outcome in PASSING
        outcome = Outcome.FAILED if flaky else test.outcome
        now = TestResult(test.nodeid, outcome, test.seconds, ops, failures.get(test.nodeid), flaky)
        before = seen.get(test.nodeid)
        # a second attempt that passes does not undo the first
        if before is None or BADNESS.index(now.outcome) >= BADNESS.index(before.outcome):
            seen[test.nodeid] = now
    for nodeid, failure in failures.items():
        if nodeid not in seen:
            seen[nodeid] = TestResult(nodeid, _outcome_of(failure), None, frozenset(fallbacks.get(nodeid, ())), failure)
    return seen


def _worse_failure(one: Failure | None, other: Failure) -> bool:
    return one is None or _KIND_RANK[other.kind] > _KIND_RANK[one.kind]


def _outcome_of(failure: Failure) -> Outcome:
    if failure.kind is Kind.CRASH:
        return Outcome.CRASHED
    if failure.kind is Kind.TIMEOUT:
        return Outcome.TIMEOUT
    return Outcome.FAILED if failure.phase == "call" else Outcome.ERROR


def op_name(op: str) -> str:
    """An op's name in one form, however a message or a person writes it: aten.mm for torch.ops.aten::mm.default."""
    return op.strip().removeprefix("torch.ops.").replace("::", ".").removesuffix(".default")


def predicate(member: Member, seen: TestResult) -> Answer:
    """Tell whether the member's predicate holds in this result; only a test that passed can have lost it."""
    if member.predicate == "falls-back":
        if op_name(member.op or "") in seen.fallbacks:
            return Answer.HOLDS
        return Answer.GONE if seen.outcome is Outcome.PASSED else Answer.UNKNOWN
    if member.predicate == "slower":
        if seen.outcome is not Outcome.PASSED or seen.seconds is None or member.seconds is None:
            return Answer.UNKNOWN
        return Answer.HOLDS if seen.seconds > member.seconds else Answer.GONE
    if seen.outcome in FAILING:
        return Answer.HOLDS
    return Answer.GONE if seen.outcome is Outcome.PASSED else Answer.UNKNOWN


def is_worse(before: Failure | None, after: Failure | None) -> bool:
    """The same test fails in a worse way: a crash for a mismatch, a structural mismatch for rounding noise."""
    if before is None or after is None:
        return False
    if _KIND_RANK[after.kind] != _KIND_RANK[before.kind]:
        return _KIND_RANK[after.kind] > _KIND_RANK[before.kind]
    ranks = [_SEVERITY_RANK.get(f.severity) if f.severity else None for f in (before, after)]
    return None not in ranks and ranks[1] > ranks[0]  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class MatrixChange:
    """Two runs of one matrix, test by test; each entry is a node id, `worse` and `vanished` with the words for it."""

    new: tuple[str, ...] = ()  # fails now and did not before
    worse: tuple[tuple[str, str], ...] = ()  # failed before, fails worse now
    vanished: tuple[tuple[str, str], ...] = ()  # had an outcome, now skipped, xfailed or none
    unclear: tuple[str, ...] = ()  # fails now, no outcome before
    gone: tuple[str, ...] = ()  # failed before, passes now
    still: tuple[str, ...] = ()


def compare_matrix(before: RunOutcomes, after: RunOutcomes) -> MatrixChange:
    """The matrix before against the matrix after, every node id of either."""
    found: dict[str, list[Any]] = {name: [] for name in ("new", "worse", "vanished", "unclear", "gone", "still")}
    for nodeid in dict.fromkeys((*before.nodeids, *after.nodeids)):
        was, now = before.of(nodeid), after.of(nodeid)
        kind = _transition(was, now, collected_before=before.knows(nodeid))
        if kind in {"worse", "vanished"}:
            found[kind].append((nodeid, f"{was.word} -> {now.word}"))
        elif kind:
            found[kind].append(nodeid)
    return MatrixChange(**{name: tuple(entries) for name, entries in found.items()})


def is_new_failure(was: Outcome, now: Outcome, *, collected_before: bool) -> bool:
    """Tell whether the test fails now and did not before. A test that was selected before and has no outcome there is unclear, not new."""
    if now not in FAILING or was in FAILING:
        return False
    return not (was is Outcome.MISSING and collected_before)


def new_failures(before: Evidence | None, after: Evidence | None) -> frozenset[str]:
    """The new failures of a run against an earlier one, as the gate counts them; none where one of the two is missing."""
    if before is None or after is None:
        return frozenset()
    return frozenset(compare_matrix(RunOutcomes(before), RunOutcomes(after)).new)


def _transition(was: TestResult, now: TestResult, *, collected_before: bool) -> str | None:
    if is_new_failure(was.outcome, now.outcome, collected_before=collected_before):
        return "new"
    if now.outcome in FAILING:
        if was.outcome in FAILING:
            return "worse" if is_worse(was.failure, now.failure) else "still"
        return "unclear"
    if now.outcome in NO_ANSWER:
        is_new = was.outcome is not Outcome.MISSING and was.outcome is not now.outcome
        return "vanished" if is_new else None
    return "gone" if was.outcome in FAILING else None


def flips(nodeid: str, sights: Iterable[RunOutcomes]) -> bool:
    """The test both passes and fails in these runs of one tree and one scope."""
    outcomes = {sight.of(nodeid).outcome for sight in sights}
    return bool(outcomes & FAILING) and bool(outcomes & PASSING)


def new_fallbacks(before: RunOutcomes, after: RunOutcomes, nodeids: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Ops that a passing test falls back for now and did not before."""
    found = {}
    for nodeid in nodeids:
        was, now = before.of(nodeid), after.of(nodeid)
        if now.outcome in PASSING and was.outcome is not Outcome.MISSING and now.fallbacks - was.fallbacks:
            found[nodeid] = now.fallbacks - was.fallbacks
    return found
