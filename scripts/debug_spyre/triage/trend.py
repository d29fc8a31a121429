"""Two triages compared: clusters that are new, gone, or fail for another reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from debug_spyre.vocabulary.evidence import Cluster


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
