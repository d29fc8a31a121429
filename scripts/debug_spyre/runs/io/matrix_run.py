"""Running the matrix for a triage: one job under the card's lock in a folder of its own, what is kept of it, and an earlier triage to compare with."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.files import write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.finding_runs import find_run, new_triage_folder
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, follow, foreground_seconds, run_job
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.runs.io.records import read_evidence
from debug_spyre.runs.io.run_folder import run_folders_of
from debug_spyre.session.io.workspace import Folder, find_checkout, logs_folder
from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.triage.io.triages import TRIAGE_FILE, find_triage
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.triage_words import cluster_from_json, triage_file
from debug_spyre.vocabulary.errors import BadInputError, DebugSpyreError, UsageError
from debug_spyre.vocabulary.evidence import Cluster, Evidence, Triage, evidence_from_json
from debug_spyre.vocabulary.words import FULL_MATRIX

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


@dataclass(frozen=True, slots=True)
class Matrix:
    """One run of a matrix, as far as it got."""

    folder: Folder
    record: RunRecord
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait and to follow."""

    foreground: float | None = None
    wait: float | None = None
    timeout: float | None = None
    stall: float | None = None
    reap: bool = False


def run_matrix(
    words: Sequence[str], limits: Limits, spread: Callable[[JobSpec], JobSpec] = lambda spec: spec
) -> Matrix:
    """Run pytest with these words once; `spread` may change the job into one over several cards.

    Raises:
        UsageError: a word is refused; CardBusyError: the card was not to be had; EnvironmentTroubleError: no run began.
    """
    checkout = find_checkout()
    interpreter = choose(checkout)
    argv, env = pytest_command(checkout, words, name=FULL_MATRIX, interpreter=interpreter, verb="triage")
    folder = new_triage_folder(logs_folder(checkout))
    spec = JobSpec(
        folder=folder.path,
        checkout=checkout,
        verb="triage",
        name=FULL_MATRIX,
        argv=argv,
        pytest_args=tuple(words),
        env=env,
        timeout=limits.timeout,
        stall=limits.stall,
        wait=limits.wait,
        reap=limits.reap,
        python=str(interpreter.python),
        notes=(f"python: {interpreter.why}",),
    )
    record = run_job(spread(spec), foreground=foreground_seconds(limits.foreground))
    return Matrix(folder, record, tuple(words))


def last_matrix(limits: Limits) -> Matrix:
    """The newest matrix of this checkout, followed to its end (or for the seconds given).

    Raises:
        UsageError: there is none.
    """
    base = logs_folder(find_checkout()) / "triage"
    folders = sorted((p for p in base.iterdir() if p.is_dir()), reverse=True) if base.is_dir() else []
    for path in folders:
        for run in reversed(list(run_folders_of(path))):
            if not run.job_file.is_file():  # its caller was killed before it was written
                continue
            job = run.job()
            if job.verb == "triage":
                record = follow(run, foreground=foreground_seconds(limits.foreground))
                return Matrix(Folder(path), record, job.pytest_args or ())
    raise UsageError("no matrix was run in this checkout yet", next="debug-spyre triage tests")


def keep(matrix: Matrix, triage: Triage) -> dict[str, Any]:
    """Write triage.json beside the run, for `open` to take; returns what it says."""
    data = {
        **triage_file(triage),
        "folder": str(matrix.folder.path),
        "run": matrix.record.id,
        "pytest_args": list(matrix.words),
    }
    text = json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace")
    write_atomically(matrix.folder.path / TRIAGE_FILE, text)
    return data
