"""The ops that a run's evidence names: what fell back, and in how many tests."""

from __future__ import annotations

import json
from pathlib import Path

from debug_spyre.session.io.workspace import find_session, logs_folder
from debug_spyre.surface.names import names_in
from debug_spyre.vocabulary.errors import BadInputError, UsageError
from debug_spyre.vocabulary.evidence import Evidence, evidence_from_json


def fallen_ops(run: str, checkout: Path | None, *, session: str | None = None) -> dict[str, int]:
    """Op (as the warning wrote it) and number of tests, of a run id, a run's folder, or an evidence.json.

    Raises:
        BadInputError: the evidence can't be read; UsageError: no such run.
    """
    file = _file_of(run, checkout, session)
    if is_log(file):
        return names_in(file.read_text(encoding="utf-8", errors="replace"))
    evidence = _evidence(file)
    counts = {fallback.op: len(fallback.nodeids) for fallback in evidence.fallbacks}
    for test in evidence.tests:
        for op in test.fallbacks:
            counts.setdefault(op, 1)
    return counts


def is_log(path: Path) -> bool:
    """A text and no evidence.json."""
    try:
        with path.open("rb") as stream:
            head = stream.read(64).lstrip()
    except OSError:
        return False
    return bool(head) and not head.startswith((b"{", b"["))


def _file_of(run: str, checkout: Path | None, session: str | None) -> Path:
    path = Path(run)
    if path.is_file():
        return path
    if path.is_dir():
        found = [path / "evidence.json", *sorted(path.glob("runs/*/evidence.json"))]
        existing = [p for p in found if p.is_file()]
        if existing:
            return existing[-1]
        raise BadInputError(f"{path} holds no evidence.json", next="debug-spyre status")
    if checkout is None:
        raise UsageError(f"no run {run!r}: this is no checkout", next="cd into the checkout")
    folder = find_session(logs_folder(checkout), stem=session)
    file = folder.path / "runs" / run / "evidence.json"
    if not file.is_file():
        there = sorted(p.parent.name for p in folder.path.glob("runs/*/evidence.json"))
        raise UsageError(
            f"{folder.stem} has no evidence of run {run!r}; it has {', '.join(there) or 'none'}",
            next="debug-spyre status",
        )
    return file


def _evidence(path: Path) -> Evidence:
    try:
        return evidence_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path} can't be read as evidence: {error}", next="debug-spyre op NAME") from error
