"""A triage in words: one short block a cluster, the most useful first, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator

from debug_spyre.triage.digest import say_fallback
from debug_spyre.triage.session_list import say_counts
from debug_spyre.vocabulary.evidence import Cluster, Counts, Evidence, Triage
from debug_spyre.vocabulary.safe_text import clean

MOST_CLUSTERS = 12
MOST_FALLBACKS = 6
MOST_WARNINGS = 6


def say(triage: Triage, *, next_command: str) -> list[str]:
    """The answer for people and agents."""
    evidence = triage.evidence
    lines = [headline(evidence, len(triage.clusters))]
    lines += [f"note: {text}" for text in evidence.warnings[:MOST_WARNINGS]]
    for cluster in triage.clusters[:MOST_CLUSTERS]:
        lines += _block(cluster)
    if len(triage.clusters) > MOST_CLUSTERS:
        more = number_of(len(triage.clusters) - MOST_CLUSTERS, "more cluster")
        lines.append(f"... {more}: --json lists them all")
    lines += _fallbacks(evidence)
    if evidence.unrecognised:
        lines.append(f"no rule knows {number_of(len(evidence.unrecognised), 'failure')}, for example:")
        lines += [f"  {u.source}:{u.line}: {u.text[:120]}" for u in evidence.unrecognised[:3]]
    lines += _trend(triage)
    if next_command:
        lines.append(f"next: {next_command}")
    return [clean(line) for line in lines]


def headline(evidence: Evidence, clusters: int) -> str:
    """Counts and size in one line."""
    counts, failing = evidence.counts, {f.nodeid for f in evidence.failures if "flake" not in f.tags}
    if counts is None:
        said = f"{say_counts(evidence.seen)} so far" if evidence.seen else "no outcome"
    else:
        said = say_counts(counts)
    end = "" if evidence.complete else " (the text ends without a summary)"
    bad = (counts or evidence.seen or Counts()).failed + (counts or evidence.seen or Counts()).errors
    if bad and not failing:
        end += ", none of the failing tests is named"
    elif counts is not None and len(failing) > bad:
        end += f", {len(failing) - bad} more that no counts include"
    return f"{said}{end}: {number_of(clusters, 'cluster')}"


def number_of(count: int, thing: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _block(cluster: Cluster) -> Iterator[str]:
    stage = cluster.stage.value if cluster.stage else "stage unknown"
    grade = f", {cluster.severity.value}" if cluster.severity else ""
    size = number_of(len(cluster.nodeids), "test") if cluster.nodeids else "no test"
    yield f"{cluster.id} {cluster.slug}  [{size}, {cluster.kind.value}, {stage}{grade}]"
    yield f"   {cluster.why}"
    if cluster.reason and cluster.reason not in cluster.why:
        yield f"   because: {cluster.reason}"
    for separator in cluster.separators[:2]:
        yield f"   {separator.text}"
    if cluster.hidden:
        yield f"   hidden by xfail: {len(cluster.hidden)} ({cluster.hidden[0]})"
    if cluster.folded:
        yield f"   folded: {len(cluster.folded)} that follow from it"
    if cluster.probe:
        yield f"   probe: {cluster.probe}"


def _fallbacks(evidence: Evidence) -> Iterator[str]:
    new = [f for f in evidence.fallbacks if f.accepted is None]
    accepted = len(evidence.fallbacks) - len(new)
    for fallback in new[:MOST_FALLBACKS]:
        yield say_fallback(fallback)
    if len(new) > MOST_FALLBACKS:
        yield f"... {len(new) - MOST_FALLBACKS} more fallbacks"
    if accepted:
        yield f"{accepted} more fallbacks that the checkout itself accepts"


def _trend(triage: Triage) -> Iterator[str]:
    if triage.trend is None:
        return
    for word in ("new", "changed", "gone"):
        for entry in triage.trend[word][:MOST_CLUSTERS]:
            yield f"{word}: {entry['slug']} ({number_of(len(entry['nodeids']), 'test')})"
    if not any(triage.trend.values()):
        yield "trend: the same clusters as before"
