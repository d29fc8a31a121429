"""An earlier triage to compare with: a run of the session, a kept triage, or a file of any form that triage reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from debug_spyre.runs.io.finding_runs import find_run
from debug_spyre.runs.io.records import read_evidence
from debug_spyre.session.io.workspace import find_checkout, logs_folder
from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.triage.io.triages import TRIAGE_FILE, find_triage
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.triage_json import cluster_from_json
from debug_spyre.vocabulary.errors import BadInputError, DebugSpyreError
from debug_spyre.vocabulary.evidence import Cluster, Evidence, evidence_from_json

_LARGEST_JSON = 64 << 20


def earlier_clusters(name: str, *, rules: Sequence[Rule] = RULES) -> tuple[Cluster, ...]:
    """The clusters of what `name` means.

    Raises:
        BadInputError: nothing of that name can be read.
    """
    path = Path(name)
    if path.is_dir() and (path / TRIAGE_FILE).is_file():
        path = path / TRIAGE_FILE
    if path.is_file():
        return _of_file(path, rules)
    try:
        if name[:1] == "r" and name[1:].isdigit():
            evidence = read_evidence(find_run(name)[0])
            if evidence is not None:
                return group(evidence)
        kept = find_triage(logs_folder(find_checkout()), name)
        return tuple(cluster_from_json(c) for c in kept.clusters)
    except (DebugSpyreError, KeyError, ValueError):
        pass
    raise BadInputError(
        f"{name!r} is neither a file nor a run nor a triage that can be read",
        next="triage --against FILE, r3, or a folder below logs/triage",
    )


def _of_file(path: Path, rules: Sequence[Rule]) -> tuple[Cluster, ...]:
    found = _of_json(path)
    if isinstance(found, Evidence):
        return group(found)
    return found if found is not None else group(read_logs([path], checkout=None, rules=rules))


def _of_json(path: Path) -> tuple[Cluster, ...] | Evidence | None:
    """Clusters or evidence, where the file is one JSON object of ours."""
    try:
        if path.stat().st_size > _LARGEST_JSON:
            return None
        with path.open("rb") as stream:
            if not stream.read(64).lstrip().startswith(b"{"):
                return None
        data = json.loads(path.read_text(encoding="utf-8"))
        if "clusters" in data:
            return tuple(cluster_from_json(c) for c in data["clusters"])
        return evidence_from_json(data) if "sources" in data else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
