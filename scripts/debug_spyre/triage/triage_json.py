"""Clusters and triages as JSON (the contract's keys) and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from debug_spyre.vocabulary.evidence import (
    Cluster,
    Kind,
    Separator,
    Severity,
    Stage,
    Triage,
    evidence_to_json,
    failure_to_json,
    fallback_to_json,
)


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    """The form of the contract, plus severity, reason, hidden."""
    return {
        "id": cluster.id,
        "slug": cluster.slug,
        "nodeids": list(cluster.nodeids) or [None],  # an error of the session belongs to no test
        "kind": cluster.kind.value,
        "stage": cluster.stage.value if cluster.stage else None,
        "signature": cluster.signature,
        "why": cluster.why,
        "probe": cluster.probe,
        "separators": [
            {"parameter": s.parameter, "failing": list(s.failing), "passing": list(s.passing), "text": s.text}
            for s in cluster.separators
        ],
        "folded": list(cluster.folded),
        "severity": cluster.severity.value if cluster.severity else None,
        "reason": cluster.reason,
        "hidden": list(cluster.hidden),
    }


def cluster_from_json(data: dict[str, Any]) -> Cluster:
    """Inverse of cluster_to_json.

    Raises:
        KeyError, ValueError: a needed key is missing or a word is not one of ours.
    """
    return Cluster(
        id=data["id"],
        slug=data["slug"],
        nodeids=tuple(n for n in data["nodeids"] if n is not None),
        kind=Kind(data["kind"]),
        stage=Stage(data["stage"]) if data.get("stage") else None,
        signature=data["signature"],
        why=data.get("why") or "",
        probe=data.get("probe"),
        separators=tuple(
            Separator(s["parameter"], tuple(s["failing"]), tuple(s["passing"]), s["text"])
            for s in data.get("separators") or ()
        ),
        folded=tuple(data.get("folded") or ()),
        severity=Severity(data["severity"]) if data.get("severity") else None,
        reason=data.get("reason"),
        hidden=tuple(data.get("hidden") or ()),
    )


def triage_to_json(triage: Triage) -> dict[str, Any]:
    """What `triage --json` prints, without its schema number."""
    evidence = triage.evidence
    folded = {nodeid for cluster in triage.clusters for nodeid in cluster.folded}
    failures = [failure_to_json(f) for f in evidence.failures]
    for failure in failures:
        if failure["nodeid"] in folded:
            failure["tags"] = [*failure["tags"], "cascade"]
    return {
        "sources": list(evidence.sources),
        "counts": asdict(evidence.counts) if evidence.counts else None,
        "complete": evidence.complete,
        "failures": failures,
        "fallbacks": [fallback_to_json(f) for f in evidence.fallbacks],
        "trend": triage.trend,
        "clusters": [cluster_to_json(c) for c in triage.clusters],
        "unrecognised": [asdict(u) for u in evidence.unrecognised],
        "warnings": list(evidence.warnings),
        "collected": evidence.collected,
        "signal": evidence.signal,
    }


def triage_file(triage: Triage) -> dict[str, Any]:
    """What is kept as triage.json: the answer and the tests, so that a later triage can be compared with it."""
    return {"schema": 1, **triage_to_json(triage), "tests": evidence_to_json(triage.evidence)["tests"]}
