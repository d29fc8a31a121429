"""A proposed hypothesis, and the situation that the rules in `seed_rules` look at."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.vocabulary.evidence import Evidence, Failure, Fallback, Kind, Severity, Stage


@dataclass(frozen=True, slots=True)
class Seed:
    """One proposed row. `rule` names the rule that proposes it."""

    rule: str
    text: str
    test: str
    test_class: str
    cost_seconds: float | None
    confidence: str
    reason: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What the rules look at: the cluster's failures and fallbacks, alone and in the matrix."""

    evidence: Evidence  # of the baseline, and of the matrix where there is no baseline yet
    probe: str
    members: tuple[str, ...]
    cluster: Mapping[str, Any] = field(default_factory=dict)
    matrix: Evidence | None = None
    seconds: float | None = None  # what the probe itself takes
    tensors: tuple[tuple[str, str], ...] = ()  # (actual, expected) as `compare` takes them, of the probe
    startup: float = 0.0  # what a pytest session takes besides

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The members' failures, the probe's first."""
        everything = (*self.evidence.failures, *(self.matrix.failures if self.matrix else ()))
        wanted = set(self.members) | {self.probe}
        own = [f for f in everything if f.nodeid in wanted or f.nodeid is None]
        return tuple(sorted(own, key=lambda f: f.nodeid != self.probe))

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """Fallbacks seen in the members, one for each op and place."""
        wanted = set(self.members) | {self.probe}
        everything = (*self.evidence.fallbacks, *(self.matrix.fallbacks if self.matrix else ()))
        own = [f for f in everything if not f.nodeids or wanted & set(f.nodeids)]
        return tuple({(f.op, f.file, f.line): f for f in own}.values())

    def has(self, kind: Kind) -> bool:
        """Some member fails in this way."""
        return any(f.kind is kind for f in self.failures) or self.cluster.get("kind") == kind

    def at(self, stage: Stage) -> bool:
        """Some member fails at this stage."""
        return any(f.stage is stage for f in self.failures) or self.cluster.get("stage") == stage

    def is_severe(self, severity: Severity) -> bool:
        """Some member's mismatch is of this severity."""
        return any(f.severity is severity for f in self.failures) or self.cluster.get("severity") == severity

    def quote(self, pattern: re.Pattern[str]) -> str | None:
        """The word in the failures' messages that the pattern finds."""
        for failure in self.failures:
            found = pattern.search(failure.message or "")
            if found:
                return f"{failure.error_class or failure.kind}: …{found[0]}…"
        return None

    def run(self, *words: str) -> str:
        """A run of the probe alone."""
        return " ".join(("debug-spyre run", *words, shlex.quote(self.probe)))

    def verb(self, name: str, *words: str) -> str:
        """Another verb on the probe."""
        return " ".join(("debug-spyre", name, *words, shlex.quote(self.probe)))

    def cost(self, times: float = 1.0) -> float | None:
        """What so many runs of the probe take."""
        return None if self.seconds is None else round(self.startup + self.seconds * times, 1)
