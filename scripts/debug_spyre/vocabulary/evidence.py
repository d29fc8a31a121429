"""The evidence of runs and logs: failures, fallbacks, outcomes. The contract between readers, clusters, gate and page.

Absent knowledge is None, never a guess. Keys of the JSON forms are stable: add, never rename.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar

from debug_spyre.vocabulary.codec import from_json, to_json
from debug_spyre.vocabulary.conditions import Conditions


class Kind(StrEnum):
    """What sort of failure it is."""

    MISMATCH = "mismatch"
    COMPILE = "compile"
    EXCEPTION = "exception"
    CRASH = "crash"
    TIMEOUT = "timeout"


class Stage(StrEnum):
    """Where in the pipeline the cause seems to lie."""

    FALLBACK = "fallback"
    DISPATCH = "dispatch"
    DYNAMO = "dynamo"
    LOWERING = "lowering"
    LAYOUT = "layout"
    CODEGEN = "codegen"
    RUNTIME = "runtime"
    NUMERICS = "numerics"
    ENVIRONMENT = "environment"
    TEST_BUG = "test-bug"


class Severity(StrEnum):
    """How bad a mismatch is, judged with a reason."""

    STRUCTURAL = "structural"
    ACCUMULATION = "accumulation"
    SPECIAL = "special"
    INCONCLUSIVE = "inconclusive"


class Outcome(StrEnum):
    """What became of one test. MISSING: selected or expected, but no outcome was seen."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failing test (or session-level error: `nodeid` None) with the numbers that the log gives."""

    nodeid: str | None
    phase: str  # setup, call, teardown, collect, session
    kind: Kind
    stage: Stage | None = None
    tags: tuple[str, ...] = ()  # device-error card-busy fallback-as-error special-values cascade flake ...
    severity: Severity | None = None
    reason: str | None = None  # why this severity and stage, in words
    error_class: str | None = None
    inner_class: str | None = None  # the class that a wrapper (InductorError, ...) wraps
    message: str | None = None
    mismatched: int | None = None
    total: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    innermost_frame: str | None = None  # file:line
    backend_frame: str | None = None  # last frame inside torch_spyre or the plugin's source
    source: str | None = None  # the file that this was read from
    line: int | None = None  # line in `source`
    rule: str | None = None  # id of the classification rule that matched
    pattern: str | None = None  # compare's pattern in words, where tensors were kept
    key: str | None = None  # what tells two causes that the same rule matched apart
    cause: str | None = None  # the decisive text: of the innermost error, or of what was captured beside it


@dataclass(frozen=True, slots=True)
class Fallback:
    """One op that went to the CPU with a FallbackWarning, at one place, in some tests."""

    op: str
    file: str | None
    line: int | None
    nodeids: tuple[str, ...] = ()
    accepted: str | None = None  # file:line where the checkout itself accepts it


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts line of a pytest session."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0

    def plus(self, other: Counts) -> Counts:
        """The counts of two sessions together."""
        return Counts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)})


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """One of several sessions in the sources: where it begins, the file it ran first, how it ended."""

    source: str | None
    line: int
    name: str | None
    counts: Counts | None
    exit: int | None = None


@dataclass(frozen=True, slots=True)
class TestRecord:
    """What became of one test, and how long it took (seconds, None where the source does not say)."""

    __test__: ClassVar = False  # pytest takes every class called Test... for a test

    nodeid: str
    outcome: Outcome
    seconds: float | None = None
    compile_mode: str | None = None  # "NONE", "STOCK_TORCH_COMPILE", "None" ... where a vLLM config was active
    fallbacks: tuple[str, ...] = ()  # the set of ops, sorted
    reruns: int = 0  # calls before this outcome that failed and were repeated in the same process


@dataclass(frozen=True, slots=True)
class Work:
    """What one test had done where: [what, file:line, times] of CPU ops and transfers outside tests; device ops by name."""

    nodeid: str
    device: dict[str, int] = field(default_factory=dict)
    cpu: tuple[tuple[str, str, int], ...] = ()
    moved: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Unrecognised:
    """A failure text that no rule knows: listed, never hidden."""

    source: str | None
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that one run or a set of logs shows. `complete` is False where a log ends without its summary."""

    sources: tuple[str, ...]
    counts: Counts | None
    complete: bool
    failures: tuple[Failure, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    tests: tuple[TestRecord, ...] = ()  # every test whose outcome the source gives, in the run's order
    unrecognised: tuple[Unrecognised, ...] = ()
    warnings: tuple[str, ...] = ()
    collected: int | None = None
    selected: tuple[str, ...] = ()  # collected node ids in order, where known
    signal: int | None = None
    seen: Counts | None = None  # without a counts line: the outcomes that the text shows so far
    sessions: tuple[SessionCounts, ...] = ()  # where there are several: the counts are their sum
    work: tuple[Work, ...] = ()  # of a run that counted it
    conditions: Conditions | None = None  # of a run of ours: what its process told of itself


@dataclass(frozen=True, slots=True)
class Separator:
    """A parameter whose values tell the failing tests from the passing ones."""

    parameter: str
    failing: tuple[str, ...]
    passing: tuple[str, ...]
    text: str  # "all 12 failing have hidden >= 256; 0 of 20 passing do"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Failing tests that look like one root cause, and why they were grouped."""

    id: str  # c1, c2, ...
    slug: str
    nodeids: tuple[str, ...]
    kind: Kind
    stage: Stage | None
    signature: str  # normalised, versioned: "v2|mismatch|..."
    why: str  # in words
    probe: str | None
    separators: tuple[Separator, ...] = ()
    folded: tuple[str, ...] = ()  # cascades folded under this cluster's first failure
    severity: Severity | None = None
    reason: str | None = None
    hidden: tuple[str, ...] = ()  # xfailed tests that hide the same failure


@dataclass(frozen=True, slots=True)
class Triage:
    """Evidence with its clusters, the one to start with first."""

    evidence: Evidence
    clusters: tuple[Cluster, ...]
    trend: dict[str, Any] | None = field(default=None)


def failure_to_json(failure: Failure) -> dict[str, Any]:
    """The form of contracts.md, plus rule and pattern."""
    return typing.cast("dict[str, Any]", to_json(failure))


def fallback_to_json(fallback: Fallback) -> dict[str, Any]:
    """The form of contracts.md."""
    return typing.cast("dict[str, Any]", to_json(fallback))


def evidence_to_json(evidence: Evidence) -> dict[str, Any]:
    """The whole evidence of a run as kept in its folder (`evidence.json`)."""
    return {"schema": 1, **to_json(evidence)}


def evidence_from_json(data: dict[str, Any]) -> Evidence:
    """Inverse of evidence_to_json; unknown keys are ignored.

    Raises:
        FormError: a needed key is missing, or a word is not one of ours.
    """
    return from_json(Evidence, data)
