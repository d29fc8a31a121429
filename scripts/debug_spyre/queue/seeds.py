"""A proposed hypothesis, the situation that the rules look at, and the hypotheses that only make sense where attention code takes part."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.vocabulary.evidence import Evidence, Failure, Fallback, Kind, Severity, Stage

_ATTENTION = re.compile(r"attn|attention|paged|kv[_-]?cache|sdpa|flash|softmax.*mask|\bkv=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One hypothesis of the attention set."""

    text: str
    verb: str
    sign: re.Pattern[str]


def _entry(text: str, verb: str, sign: str) -> Entry:
    return Entry(text, verb, re.compile(sign, re.IGNORECASE))


ATTENTION_SET = (
    _entry(
        "the KV cache on the card is not what the test wrote: seeded on the CPU only, or another slot",
        "shadow",
        r"cache|slot|page|block_table|zeros|copy",
    ),
    _entry(
        "the mask has the wrong shape, causal boundary or fill value (-65504 becomes -inf or wraps)",
        "shadow",
        r"mask|causal|6550[04]|-inf|nan",
    ),
    _entry(
        "page or slot indices arrive in another order or dtype than the gather and scatter expect",
        "shadow",
        r"index|gather|scatter|permut|int32|roll",
    ),
    _entry(
        "the length is outside the bucket that the module pads to: KV length or query chunk",
        "ladder",
        r"align|bucket|pad|length|recompil|period",
    ),
    _entry(
        "query heads share KV heads and the broadcast in the 4-D matmul is wrong (MQA, GQA)",
        "shadow",
        r"broadcast|expand|head|gqa|mqa|period",
    ),
    _entry(
        "the head size is no multiple of the 64-element stick, so rows are padded or cut",
        "ladder",
        r"head_size|head_dim|stick|multiple of 64|padded",
    ),
)


def attention_traces(nodeids: Iterable[str], failures: Iterable[Failure]) -> tuple[str, ...]:
    """Where attention code shows: node ids first, then frames."""
    found = [nodeid for nodeid in nodeids if _ATTENTION.search(nodeid)]
    for failure in failures:
        found += [
            frame for frame in (failure.innermost_frame, failure.backend_frame) if frame and _ATTENTION.search(frame)
        ]
    return tuple(dict.fromkeys(found))


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
