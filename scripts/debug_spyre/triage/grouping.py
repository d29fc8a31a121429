"""Clusters: failures that look like one cause, with why, a probe, separators; consequences folded under their cause.

Deterministic: neither the order of the failures nor that of the tests changes clusters or their ids.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from debug_spyre.triage.nodeids import base_and_parameters, family, numbers_of
from debug_spyre.triage.separators import separators
from debug_spyre.triage.signature import function, normalise, signature, slug, why
from debug_spyre.vocabulary.evidence import (
    Cluster,
    Evidence,
    Failure,
    Kind,
    Outcome,
    Separator,
    Severity,
    Stage,
    TestRecord,
)


def choose_probe(nodeids: Sequence[str], tests: Sequence[TestRecord]) -> str | None:
    """The failing test to use as quick check: the narrowest."""
    if not nodeids:
        return None
    seconds = {t.nodeid: t.seconds for t in tests if t.seconds is not None}

    def cost(nodeid: str) -> tuple[float, float, int, str]:
        size = 1.0
        for number in numbers_of(nodeid):
            size *= max(number, 1.0)
        return (size, seconds.get(nodeid, float("inf")), len(nodeid), nodeid)

    return min(nodeids, key=cost)


_RAISED = frozenset({Kind.EXCEPTION, Kind.COMPILE, Kind.MISMATCH})
_HEAD = re.compile(r"assert\b|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: |:?$)")
_LONG = 12  # characters of a message that tell one cause from another


def is_cut(failure: Failure) -> bool:
    """Only the beginning of its message is there, or nothing."""
    return is_brief(failure) and (_is_silent(failure) or (failure.message or "...").endswith("..."))


def is_brief(failure: Failure) -> bool:
    """At most one line of its message is there, and no frame."""
    if failure.kind in {Kind.CRASH, Kind.TIMEOUT} or failure.nodeid is None or failure.severity is not None:
        return False
    message = failure.message or ""
    return _is_silent(failure) or ("\n" not in message and (failure.innermost_frame is None or message.endswith("...")))


def _is_silent(failure: Failure) -> bool:
    """Its text was cut off before the error."""
    return (
        failure.kind is Kind.EXCEPTION and failure.rule is None and (failure.error_class is None or not failure.message)
    )


def join_cut(found: Mapping[str, list[Failure]]) -> dict[str, list[Failure]]:
    """Clusters by signature; a part of a text goes where exactly one whole one of its family, or of its text, is."""
    every = [(key, f) for key, members in found.items() for f in members]
    whole = [(key, f) for key, f in every if not is_brief(f)]
    torn = _torn(found)
    homes = [(_of_chain(f, key, whole, is_torn=f in torn), f) for key, f in whole]
    known = {key for key, _ in whole}
    joined: dict[str, list[Failure]] = {key: [] for key in found}
    for key, failure in homes:
        joined[key].append(failure)
    waiting = []
    for key, failure in ((key, f) for key, f in every if is_brief(f)):
        home = key if key in known else _home(failure, homes)
        if home is None:
            waiting.append((key, failure))
        else:
            joined[home].append(failure)
    alone: list[tuple[str, Failure]] = []  # the longest texts first: a shorter one may be their beginning
    for key, failure in sorted(waiting, key=lambda w: (-len(_start(w[1])), w[1].nodeid or "")):
        home = (_home(failure, alone) if is_cut(failure) else None) or key
        alone.append((home, failure))
        joined[home].append(failure)
    return {key: members for key, members in joined.items() if members}


def _torn(found: Mapping[str, list[Failure]]) -> list[Failure]:
    """The last text of each source: its end may be missing."""
    last: dict[str | None, Failure] = {}
    for failure in (f for members in found.values() for f in members):
        if failure.source not in last or (failure.line or 0) > (last[failure.source].line or 0):
            last[failure.source] = failure
    return list(last.values())


def _of_chain(failure: Failure, key: str, whole: list[tuple[str, Failure]], *, is_torn: bool) -> str:
    """A failure that shows some exceptions of a chain belongs to the one cluster that shows more of it."""
    own = _heads(failure)
    if not own or failure.kind not in _RAISED:
        return key
    more = {
        k
        for k, f in whole
        if k != key
        and f.kind in _RAISED
        and _is_family(f, failure)
        and _is_part(own, _heads(f), is_torn=is_torn)
        and _may_join(f, failure)
    }
    return more.pop() if len(more) == 1 else key


def _is_part(part: Sequence[str], chain: Sequence[str], *, is_torn: bool) -> bool:
    """The chain goes on where the part ends, or begins before it; of a torn part the last line may lack its end."""
    size = len(part)
    for at in range(len(chain) - size + 1):
        *before, last = chain[at : at + size]
        if before == list(part[:-1]) and (last == part[-1] if not is_torn else last.startswith(part[-1])):
            return len(chain) > size or last != part[-1]
    return False


def _may_join(one: Failure, other: Failure) -> bool:
    return None in {one.severity, other.severity} or one.severity is other.severity


@lru_cache(maxsize=4096)
def _heads_of(message: str) -> tuple[str, ...]:
    return tuple(normalise(line) for line in message.split("\n") if _HEAD.match(line))


def _heads(failure: Failure) -> tuple[str, ...]:
    """The first line of each exception of a chain."""
    return _heads_of(failure.message or "")


def _is_family(one: Failure, other: Failure) -> bool:
    """Of one family of functions; of a test that is named without its file the name alone counts."""
    if one.phase != other.phase:
        return False
    first, second = (family(function(f.nodeid)) for f in (one, other))
    if "::" in first and "::" in second:
        return first == second
    first, second = first.replace(".", "::"), second.replace(".", "::")
    return f"::{first}".endswith(f"::{second}") or f"::{second}".endswith(f"::{first}")


def _start(failure: Failure) -> str:
    return "" if _is_silent(failure) else normalise((failure.message or "").removesuffix("...").rstrip())


def _home(failure: Failure, others: list[tuple[str, Failure]]) -> str | None:
    start = _start(failure)
    alike = [(key, f) for key, f in others if not start or _says(f, start, is_whole=not is_cut(failure))]
    own = {key for key, f in alike if _is_family(f, failure)}
    if own:
        return own.pop() if len(own) == 1 else None
    if len(start.partition(": ")[2]) < _LONG:
        return None
    elsewhere = {key for key, _ in alike}
    return elsewhere.pop() if len(elsewhere) == 1 else None


def _says(failure: Failure, start: str, *, is_whole: bool) -> bool:
    """A line of its message, one of each exception of a chain, is this text or begins with it."""
    lines = (normalise(line) for line in (failure.message or "").split("\n"))
    return any(line == start if is_whole else line.startswith(start) for line in lines)


_SIZES = (" >= ", " <= ", " multiple of ", " = 1;")
_FIRST_TAGS = frozenset({"device-error"})
_OF_THE_PROCESS = frozenset({"runtime", "ras", "device-memory"})
_FOLLOWS = frozenset({"card-busy", "device-error"})


def group(evidence: Evidence, *, names: Mapping[str, Sequence[str]] | None = None) -> tuple[Cluster, ...]:
    """The clusters of a run's or log's failures, the one to start with first.

    `names` gives the parameters of a test function their names, where its source was at hand.
    """
    by_signature = _by_signature(evidence)
    folded = _fold(evidence, by_signature)
    found = [
        _cluster(key, members, folded.get(key, ()), evidence, names or {}) for key, members in by_signature.items()
    ]
    every = sum(len(c.nodeids) for c in found)
    place = _places(evidence)

    def first(cluster: Cluster) -> int:
        return min((place.get(n, len(place)) for n in cluster.nodeids), default=len(place))

    found.sort(key=lambda c: (_rank(c, every), -len(c.nodeids), first(c), c.signature))
    named = _with_own_slugs(_with_hidden(found, evidence))
    return tuple(replace(c, id=f"c{place}") for place, c in enumerate(named, start=1))


def _by_signature(evidence: Evidence) -> dict[str, list[Failure]]:
    """Exact signatures; tensors that show no pattern speak neither for nor against the one pattern of the others."""
    found: dict[str, list[Failure]] = defaultdict(list)
    patterns: dict[str, set[str]] = defaultdict(set)
    for failure in _one_each(evidence.failures):
        key = signature(failure)
        found[key].append(failure)
        if failure.pattern:
            patterns[signature(replace(failure, pattern=None))].add(key)
    for plain, keys in patterns.items():
        if len(keys) == 1 and plain in found:
            found[next(iter(keys))] += found.pop(plain)
    return join_cut(found)


def _with_own_slugs(clusters: list[Cluster]) -> list[Cluster]:
    """No two clusters have one name."""
    used: set[str] = set()
    named = []
    for cluster in clusters:
        name, number = cluster.slug, 1
        while name in used:
            number += 1
            name = f"{cluster.slug[:56]}-{number}"
        used.add(name)
        named.append(replace(cluster, slug=name))
    return named


def _one_each(failures: Iterable[Failure]) -> list[Failure]:
    """One failure a test: of its call where it has one. Errors that belong to no test are each their own."""
    chosen: dict[str | tuple[str | None, str | None], Failure] = {}
    for failure in sorted(failures, key=lambda f: (f.phase != "call", f.source or "", f.line or 0, f.message or "")):
        chosen.setdefault(failure.nodeid or (failure.source, failure.message), failure)
    return sorted(chosen.values(), key=lambda f: f.nodeid or "")


def _fold(evidence: Evidence, by_signature: dict[str, list[Failure]]) -> dict[str, list[Failure]]:
    """After a crash or a device error the device errors that follow are its consequences."""
    place = _places(evidence)

    def when(failure: Failure) -> tuple[str, int, int]:
        return (failure.source or "", place.get(failure.nodeid or "", -1), failure.line or 0)

    begins = [f for f in evidence.failures if f.kind in {Kind.CRASH, Kind.TIMEOUT} or _FIRST_TAGS & set(f.tags)]
    if not begins:
        return {}
    first = min(begins, key=lambda f: (_is_left_behind(f), when(f), f.nodeid or ""))
    key = signature(first)
    into: dict[str, list[Failure]] = {key: []}
    for other in list(by_signature):
        members = by_signature[other]
        if other != key and all(_follows(f, first, when) for f in members):
            into[key] += members
            del by_signature[other]
    return into


def _places(evidence: Evidence) -> dict[str, int]:
    """Where in the run each test stands, where that is told."""
    return {t.nodeid: n for n, t in enumerate(evidence.tests)} if _tells_order(evidence) else {}


def _tells_order(evidence: Evidence) -> bool:
    """The tests are listed in the order in which they ran: passing ones are among them."""
    return any(t.outcome is Outcome.PASSED for t in evidence.tests)


def _follows(failure: Failure, first: Failure, when: Callable[[Failure], tuple[str, int, int]]) -> bool:
    if failure.source != first.source or not _FOLLOWS & set(failure.tags):
        return False
    return _is_left_behind(failure) or when(failure) >= when(first)


def _is_left_behind(failure: Failure) -> bool:
    """The state that an earlier fault left, not a fault of its own."""
    return "device-error" in failure.tags and "ErrorState" in (failure.cause or failure.message or "")


def _cluster(
    key: str, members: list[Failure], folded: Iterable[Failure], evidence: Evidence, names: Mapping[str, Sequence[str]]
) -> Cluster:
    members = sorted(members, key=lambda f: (is_cut(f), f.nodeid or ""))
    own = sorted(f.nodeid for f in members if f.nodeid is not None)
    consequences = sorted(f.nodeid for f in folded if f.nodeid is not None)
    stage = _stage(members)
    grade = Counter(f.severity for f in members if f.severity).most_common(1)
    first = _first_in_time(own, members, evidence)
    told_apart = separators(own, evidence.tests, names)
    stage, because = _refined(stage, _reason(members), members, told_apart, evidence)
    return Cluster(
        id="",
        slug=slug(members),
        nodeids=(*own, *consequences),
        kind=_kind(members),
        stage=stage,
        signature=key,
        why=why(members, consequences, first=first),
        probe=first or choose_probe(own, evidence.tests),
        separators=told_apart,
        folded=tuple(consequences),
        severity=grade[0][0] if grade else None,
        reason=because,
    )


def _kind(members: Sequence[Failure]) -> Kind:
    counted = Counter(f.kind for f in members if not is_cut(f))
    return counted.most_common(1)[0][0] if counted else members[0].kind


def _first_in_time(own: Sequence[str], members: Sequence[Failure], evidence: Evidence) -> str | None:
    """The test that failed first, where what failed is the process's own state: the others may only follow from it."""
    place = _places(evidence) if len(own) > 1 and all(f.rule in _OF_THE_PROCESS for f in members) else {}
    return min((n for n in own if n in place), key=place.__getitem__, default=None)


def _reason(members: Sequence[Failure]) -> str | None:
    """Why, as the most telling member shows it: one with a pattern says more than one with a larger difference."""

    def telling(failure: Failure) -> tuple[bool, bool, float, str]:
        structural = failure.severity is Severity.STRUCTURAL
        return structural, bool(failure.pattern), failure.max_abs or 0.0, failure.nodeid or ""

    chosen = max(members, key=telling)
    if chosen.pattern and chosen.reason and chosen.pattern not in chosen.reason:
        return f"{chosen.reason}: {chosen.pattern}"
    return chosen.reason


def _refined(
    stage: Stage | None, reason: str | None, members: list[Failure], told: Sequence[Separator], evidence: Evidence
) -> tuple[Stage | None, str | None]:
    """What the passing tests add: a fallback that only these have; sizes that alone decide are no matter of rounding."""
    if members[0].kind is not Kind.MISMATCH or stage is Stage.TEST_BUG:
        return stage, reason
    own = {f.nodeid for f in members}
    passed = {t.nodeid for t in evidence.tests if t.outcome is Outcome.PASSED} if evidence.fallbacks else set()
    for fallback in evidence.fallbacks:
        if own <= set(fallback.nodeids) and passed.isdisjoint(fallback.nodeids):
            return (
                Stage.FALLBACK,
                f"{reason or 'values differ'}; all {len(own)} fall back on {fallback.op}, no passing test does",
            )
    decisive = next((s for s in told if any(mark in s.text for mark in _SIZES)), None)
    if decisive is not None and stage is Stage.NUMERICS and members[0].severity is Severity.STRUCTURAL:
        return Stage.CODEGEN, f"{reason}; the size decides: {decisive.text}"
    return stage, reason


def _stage(members: list[Failure]) -> Stage | None:
    counted = Counter(f.stage for f in members if f.stage)
    if not counted:
        return None
    most = max(counted.values())
    return min((s for s, n in counted.items() if n == most), key=lambda s: s.value)


def _rank(cluster: Cluster, every: int) -> int:
    """Crashes first, then surroundings that spoil most of the run; test bugs last."""
    if cluster.kind is Kind.CRASH or cluster.folded:
        return 0
    if cluster.stage is Stage.ENVIRONMENT:
        return 1 if 2 * len(cluster.nodeids) >= every else 4
    if cluster.stage is Stage.TEST_BUG:
        return 5
    if cluster.severity in {Severity.ACCUMULATION, Severity.INCONCLUSIVE}:
        return 3
    return 2


def _with_hidden(clusters: list[Cluster], evidence: Evidence) -> list[Cluster]:
    """Expected failures of a cluster's own function hide the same failure; each is named once."""
    expected = [t.nodeid for t in evidence.tests if t.outcome is Outcome.XFAILED]
    if not expected:
        return clusters
    by_function: dict[str, list[str]] = defaultdict(list)
    for nodeid in expected:
        by_function[base_and_parameters(nodeid)[0]].append(nodeid)
    taken: set[str] = set()
    named = []
    for cluster in clusters:
        functions = {function(n) for n in cluster.nodeids}
        hidden = sorted(n for f in functions for n in by_function.get(f, ()) if n not in taken)
        taken.update(hidden)
        named.append(replace(cluster, hidden=tuple(hidden)))
    return named
