"""Clusters and triages as JSON (the contract's keys) and back."""

from __future__ import annotations

from typing import Any

from debug_spyre.vocabulary.codec import from_json, to_json
from debug_spyre.vocabulary.evidence import Cluster, Triage


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
