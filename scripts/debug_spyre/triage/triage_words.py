"""A triage in words, as JSON and as Markdown, most useful cluster first, with what to type next; and two triages compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from debug_spyre.triage.digest import say_fallback
from debug_spyre.triage.session_text import say_counts
from debug_spyre.vocabulary.codec import from_json, to_json
from debug_spyre.vocabulary.evidence import Cluster, Counts, Evidence, Triage
from debug_spyre.vocabulary.safe_text import clean


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    """The form of the contract, plus severity, reason, hidden. An error of the session belongs to no test: [null]."""
    return {**to_json(cluster), "nodeids": list(cluster.nodeids) or [None]}


def cluster_from_json(data: dict[str, Any]) -> Cluster:
    """Inverse of cluster_to_json.

    Raises:
        FormError: a needed key is missing, or a word is not one of ours.
    """
    return from_json(Cluster, {**data, "nodeids": [n for n in data["nodeids"] if n is not None]})


def triage_to_json(triage: Triage) -> dict[str, Any]:
    """What `triage --json` prints, without its schema number."""
    data: dict[str, Any] = to_json(triage.evidence)
    del data["tests"], data["selected"]
    folded = {nodeid for cluster in triage.clusters for nodeid in cluster.folded}
    for failure in data["failures"]:
        if failure["nodeid"] in folded:
            failure["tags"].append("cascade")
    return {**data, "trend": triage.trend, "clusters": [cluster_to_json(c) for c in triage.clusters]}


def triage_file(triage: Triage) -> dict[str, Any]:
    """What is kept as triage.json: the answer and the tests, so that a later triage can be compared with it."""
    return {"schema": 1, **triage_to_json(triage), "tests": to_json(triage.evidence.tests)}


def trend(now: Sequence[Cluster], before: Sequence[Cluster]) -> dict[str, Any]:
    """`new`, `gone` and `changed` (the same tests failing for another reason is a change)."""
    old_by_test = {n: c for c in before for n in c.nodeids}
    old_signatures = {c.signature for c in before}
    new, changed = [], []
    matched: set[str] = {c.signature for c in now if c.signature in old_signatures}
    for cluster in now:
        if cluster.signature in old_signatures:
            continue
        earlier = sorted({old_by_test[n].signature for n in cluster.nodeids if n in old_by_test})
        if earlier:
            matched.update(earlier)
            changed.append(
                {"slug": cluster.slug, "nodeids": list(cluster.nodeids), "was": earlier, "now": cluster.signature}
            )
        else:
            new.append({"slug": cluster.slug, "nodeids": list(cluster.nodeids), "signature": cluster.signature})
    gone = [
        {"slug": c.slug, "nodeids": list(c.nodeids), "signature": c.signature}
        for c in before
        if c.signature not in matched
    ]
    return {"new": new, "gone": gone, "changed": changed}


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
    again = {f.nodeid for f in evidence.failures if "flake" in f.tags} - failing
    if again:
        end += f", {len(again)} passed only when run again"
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
        yield f"... {number_of(len(new) - MOST_FALLBACKS, 'more fallback')}"
    if accepted:
        yield f"{number_of(accepted, 'more fallback')} that the checkout itself accepts"


def _trend(triage: Triage) -> Iterator[str]:
    if triage.trend is None:
        return
    for word in ("new", "changed", "gone"):
        for entry in triage.trend[word][:MOST_CLUSTERS]:
            yield f"{word}: {entry['slug']} ({number_of(len(entry['nodeids']), 'test')})"
    if not any(triage.trend.values()):
        yield "trend: the same clusters as before"


MOST = 40


def markdown(triage: Triage, *, next_command: str = "") -> str:
    """Headline, a table of clusters, why and their members, fallbacks, trend, and what to type next."""
    evidence = triage.evidence
    lines = ["## Triage", "", escape(headline(evidence, len(triage.clusters))), ""]
    lines += [f"> {escape(text)}" for text in evidence.warnings[:8]]
    if triage.clusters:
        lines += ["", "| | cluster | tests | kind | stage | why |", "| --- | --- | ---: | --- | --- | --- |"]
    for cluster in triage.clusters[:MOST]:
        stage = cluster.stage.value if cluster.stage else "unknown"
        kind = f"{cluster.kind.value}, {cluster.severity.value}" if cluster.severity else cluster.kind.value
        cells = (cluster.id, cluster.slug, str(len(cluster.nodeids)), kind, stage, cluster.why)
        lines.append("| " + " | ".join(escape(c) for c in cells) + " |")
    if len(triage.clusters) > MOST:
        lines += ["", f"... {number_of(len(triage.clusters) - MOST, 'more cluster')}"]
    for cluster in triage.clusters[:MOST]:
        lines += ["", f"<details><summary>{escape(cluster.id)} {escape(cluster.slug)}</summary>", ""]
        if cluster.reason:
            lines.append(f"- because: {escape(cluster.reason)}")
        lines += [f"- {escape(s.text)}" for s in cluster.separators]
        if cluster.hidden:
            lines.append(f"- hidden by xfail: {len(cluster.hidden)} ({code(cluster.hidden[0])})")
        if cluster.folded:
            lines.append(f"- folded: {len(cluster.folded)} that follow from it")
        if cluster.probe:
            lines.append(f"- probe: {code(cluster.probe)}")
        lines += [f"- {code(nodeid)}" for nodeid in cluster.nodeids[:MOST]]
        if len(cluster.nodeids) > MOST:
            lines.append(f"- ... {len(cluster.nodeids) - MOST} more")
        lines += ["", "</details>"]
    if evidence.fallbacks:
        lines += ["", "**Fallbacks**", ""]
        lines += [f"- {escape(say_fallback(f))}" for f in evidence.fallbacks[:MOST]]
        if len(evidence.fallbacks) > MOST:
            lines.append(f"- ... {number_of(len(evidence.fallbacks) - MOST, 'more fallback')}")
    if triage.trend is not None:
        lines += ["", "**Trend**", ""]
        for word in ("new", "changed", "gone"):
            lines += [
                f"- {word}: {escape(e['slug'])} ({number_of(len(e['nodeids']), 'test')})"
                for e in triage.trend[word][:MOST]
            ]
        if not any(triage.trend.values()):
            lines.append("- the same clusters as before")
    if evidence.unrecognised:
        lines += ["", f"No rule knows {number_of(len(evidence.unrecognised), 'failure')}, for example:", ""]
        lines += [f"- {code(f'{u.source}:{u.line}')}: {escape(u.text[:120])}" for u in evidence.unrecognised[:3]]
    if next_command:
        lines += ["", f"next: {code(next_command)}"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text as Markdown shows it, without a way to mark it up."""
    text = " ".join(clean(text).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|#!~":
        text = text.replace(mark, f"\\{mark}")
    return text


def code(text: str) -> str:
    """Text as inline code, whatever backticks it holds."""
    text = " ".join(clean(text).split()).replace("|", "¦")
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"
