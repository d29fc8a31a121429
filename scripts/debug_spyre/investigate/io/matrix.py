"""The first two steps: the matrix as triage runs it, and the matrix again with every device op repeated on the CPU."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from debug_spyre.host.interpreter import choose
from debug_spyre.investigate.io.work import Work
from debug_spyre.investigate.ledger import Ledger, read_ledger
from debug_spyre.repro.io.suspects import with_death
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, run_job
from debug_spyre.runs.io.matrix_run import Matrix, keep
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.runs.io.records import load_record
from debug_spyre.runs.io.run_folder import RUNS, RunFolder
from debug_spyre.session.io.workspace import Folder
from debug_spyre.triage.io.logs_reader import grouped
from debug_spyre.vocabulary.errors import EnvironmentTroubleError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import FULL_MATRIX, RunStatus

SHADOW_RUN = "shadow-matrix"
SHADOW_STALL = 300.0


def run_matrix(work: Work, words: tuple[str, ...]) -> RunRecord:
    """The matrix, once; its triage is kept beside it."""

    def do() -> str:
        interpreter = choose(work.checkout)
        argv, env = pytest_command(work.checkout, words, name=FULL_MATRIX, interpreter=interpreter, verb="investigate")
        spec = JobSpec(
            folder=work.folder, checkout=work.checkout, verb="triage", name=FULL_MATRIX, argv=argv, pytest_args=words,
            env=env, python=str(interpreter.python),
        )  # fmt: skip
        record = run_job(spec)
        evidence = record.evidence or Evidence(sources=(str(record.output),), counts=None, complete=False)
        evidence = replace(evidence, warnings=tuple(dict.fromkeys((*evidence.warnings, *record.warnings))))
        keep(Matrix(Folder(work.folder), record, words), grouped(evidence, work.checkout))
        return record.id

    return record_of(work, str(work.once("matrix", do)))


def record_of(work: Work, run: str) -> RunRecord:
    """A run of the investigation's own folder."""
    return load_record(RunFolder(work.folder / RUNS / run))


def run_shadow(work: Work, words: tuple[str, ...], selected: tuple[str, ...] = ()) -> RunRecord:
    """The matrix in its order under the shadow; its ledger lies in the run's folder."""

    def do() -> str:
        settings = {"root": str(work.checkout), "ledger": True}
        argv, env = pytest_command(
            work.checkout, words, env={"DEBUG_SPYRE_SHADOW": json.dumps(settings)}, plugins=("debug_spyre_shadow",),
            known=selected, verb="investigate",
        )  # fmt: skip
        spec = JobSpec(
            folder=work.folder, checkout=work.checkout, verb="shadow", name=SHADOW_RUN, argv=argv, pytest_args=words,
            env=env, stall=SHADOW_STALL,
        )  # fmt: skip
        return run_job(spec).id

    return record_of(work, str(work.once("shadow", do)))


def ledger_of(record: RunRecord) -> tuple[Ledger, dict[str, Any] | None]:
    """The ledger, and the op in flight where the process did not end by itself.

    Raises:
        EnvironmentTroubleError: the run left neither.
    """
    died = with_death(record.folder, f"{record.status.value}, exit {record.exit}") if _has_died(record) else None
    try:
        report = json.loads((record.folder / "shadow.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = {}
    try:
        lines = (record.folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    if not report and not lines:
        raise EnvironmentTroubleError(
            f"{record.id} left no ledger (status {record.status.value}, exit {record.exit})",
            next=f"tail -40 {record.output}",
        )
    ledger = read_ledger(lines, dict(report.get("outcomes") or {}))
    fallbacks = dict.fromkeys(str(entry["op"]) for entry in report.get("fallbacks") or ())
    return replace(ledger, fallbacks=tuple(fallbacks)), (died or {}).get("suspect")


def _has_died(record: RunRecord) -> bool:
    return record.status not in {RunStatus.PASSED, RunStatus.FAILED} or record.exit not in {0, 1, 2, 5}
