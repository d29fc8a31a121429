"""The evidence files that a session's runs left in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable

from debug_spyre.session.io.workspace import Folder
from debug_spyre.session.state import Run, Session
from debug_spyre.vocabulary.evidence import Evidence, evidence_from_json


def load_evidence(folder: Folder, runs: Iterable[Run]) -> dict[str, Evidence]:
    """Evidence by run id; a run whose file is missing or damaged is left out, so its answer is unknown."""
    found = {}
    for run in runs:
        if run.evidence is None:
            continue
        try:
            found[run.id] = evidence_from_json(json.loads((folder.path / run.evidence).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def all_evidence(folder: Folder, session: Session) -> dict[str, Evidence]:
    """Evidence of every finished run of the session."""
    return load_evidence(folder, session.runs.values())
