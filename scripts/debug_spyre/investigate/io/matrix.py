"""An investigation on disk (its folder, the steps that are done, the minutes left) and its first two steps: the matrix, twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card
from debug_spyre.examine.dossier import Dossier, dossier_to
from debug_spyre.fleet.io.lane import over_these
from debug_spyre.host.files import write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.investigate.causes import Ledger, read_ledger
from debug_spyre.repro.io.suspects import with_death
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, run_job
from debug_spyre.runs.io.matrix_run import Matrix, keep
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.runs.io.records import load_record
from debug_spyre.runs.io.run_folder import RUNS, RunFolder
from debug_spyre.session.io.workspace import Folder
from debug_spyre.triage.io.logs_reader import grouped
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, RefusedError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import FULL_MATRIX, RunStatus

STATE, DOSSIER = "investigation.json", "dossier.json"
Redraw = Callable[[Path], None]


@dataclass(slots=True)
class Work:
    """`known` is what each step gave, by key; a step that is known is not done again."""

    folder: Path
    checkout: Path
    minutes: float
    redraw: Redraw
    cards: tuple[Card, ...] = ()  # independent runs go to these; none: one after another
    known: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    before: float = 0.0  # seconds that earlier calls took

    def load(self) -> None:
        """Take up what was done."""
        try:
            data = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        self.known.update(data["known"])
        self.before = float(data["seconds"])

    @property
    def seconds(self) -> float:
        """What it has taken so far, earlier calls included."""
        return self.before + time.monotonic() - self.began

    def has_time(self, text: str) -> bool:
        """Whether another step may begin; where not, it is named as left out. A resumed call has its own minutes."""
        if time.monotonic() - self.began < self.minutes * 60:
            return True
        if text not in self.left_out:
            self.left_out.append(text)
        return False

    def once(self, key: str, do: Callable[[], Any]) -> Any:
        """What the step gives: done now, or known."""
        if key not in self.known:
            self.known[key] = do()
            self.save()
        return self.known[key]

    def check_under(self, now: dict[str, Any]) -> None:
        """Steps of one tree and one backend only: what was found on another is not gone on with.

        Raises:
            RefusedError: tree, backend or the card's variables are others than at the first step.
        """
        before = self.once("under", lambda: now)
        changed = [name for name, value in now.items() if before.get(name) != value]
        if changed:
            raise RefusedError(
                f"{' and '.join(changed)} changed since this investigation began, so its steps can't go on",
                next="debug-spyre investigate, with the same tests: a new one",
            )

    def save(self) -> None:
        """The steps so far, replaced at once."""
        write_atomically(self.folder / STATE, json.dumps({"known": self.known, "seconds": round(self.seconds, 1)}))

    def say(self, text: str) -> None:
        """One line of progress, in the job's output."""
        print(f"[{self.seconds:5.0f} s] {text}", flush=True)

    def write(self, dossier: Dossier) -> None:
        """The dossier as it stands."""
        write_atomically(self.folder / DOSSIER, json.dumps(dossier_to(dossier), ensure_ascii=False))


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
        record = run_job(over_these(spec, work.cards))
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
