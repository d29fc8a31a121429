"""Small scripts run on the card in batches, each batch one job under the lock; answers are kept, so work is resumable."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_spyre.core.errors import DebugSpyreError, EnvironmentTroubleError
from debug_spyre.edge.files import make_folder, write_atomically
from debug_spyre.edge.interpreter import choose
from debug_spyre.edge.jobs import JobSpec, run_job
from debug_spyre.edge.workspace import Folder

WORKER = Path(__file__).resolve().parents[1] / "inside" / "debug_spyre_trial.py"
BATCH_SECONDS = 300.0


class BudgetSpentError(DebugSpyreError):
    """The runs or minutes that the search may cost are used up; what was found so far stands."""


@dataclass(slots=True)
class Trials:
    """Evaluates scripts by text. `runs` and `seconds` are the budget of this call; kept answers cost nothing."""

    folder: Folder
    checkout: Path
    runs: int
    seconds: float
    hypothesis: int | None = None
    used: int = 0
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def store(self) -> Path:
        """Where answers are kept between calls."""
        return self.folder.path / "repro" / "trials.json"

    def load(self) -> None:
        """Take up the answers of an earlier call."""
        try:
            kept = json.loads(self.store.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if isinstance(kept, dict):
            self.answers.update(kept)

    def evaluate(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """One answer a script, in order; a script that killed its process is answered with `crash`.

        Raises:
            BudgetSpentError: the budget ended before all were answered.
        """
        pending = [t for t in dict.fromkeys(texts) if _key(t) not in self.answers]
        while pending:
            self._run_batch(pending)
            pending = [t for t in pending if _key(t) not in self.answers]
        return [self.answers[_key(t)] for t in texts]

    def legal_groups(self, texts: Mapping[str, str]) -> list[list[int]]:
        """Which sets of places can change together (inside/debug_spyre_trial.py); computed on the meta device."""
        key = "groups-" + _key(json.dumps(texts, sort_keys=True))
        if key not in self.answers:
            found = self._job({"groups": {"texts": dict(texts)}})
            self.answers[key] = {"groups": found.get("groups", {}).get("groups", [])}
            self._save()
        return list(self.answers[key]["groups"])

    def _run_batch(self, pending: list[str]) -> None:
        found = self._job({"trials": [{"id": _key(t), "text": t} for t in pending]})
        for text in pending:
            key = _key(text)
            if key in found:
                self.answers[key] = found[key]
            elif found.get("begun") == key:
                self.answers[key] = {"exit": None, "crash": found.get("status"), "error": None}
        if not any(_key(t) in self.answers for t in pending):
            raise EnvironmentTroubleError(
                f"the trial process gave no answer: {found.get('tail') or found.get('status')}",
                next="debug-spyre doctor",
            )
        self._save()

    def _job(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.used >= self.runs or time.monotonic() - self.began > self.seconds:
            raise BudgetSpentError(
                f"the budget of {self.runs} runs or {self.seconds / 60:g} minutes is spent",
                next="debug-spyre repro --runs 60 --minutes 30   (goes on where it stopped)",
            )
        self.used += 1
        place = self.folder.path / "repro"
        make_folder(place)
        question, answers = place / "request.json", place / "answers.jsonl"
        write_atomically(question, json.dumps(request))
        answers.unlink(missing_ok=True)
        chosen = choose(self.checkout)
        spec = JobSpec(
            folder=self.folder.path,
            checkout=self.checkout,
            verb="repro",
            name=None,
            argv=(*chosen.words, str(WORKER), str(question), str(answers)),
            hypothesis=self.hypothesis,
            timeout=BATCH_SECONDS,
        )
        record = run_job(spec)
        found = _read(answers)
        found["status"] = f"{record.status.value}, exit {record.exit}"
        if not answers.exists():
            found["tail"] = record.output.read_text(encoding="utf-8", errors="replace")[-300:]
        return found

    def _save(self) -> None:
        write_atomically(self.store, json.dumps(self.answers))


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if "begun" in data:
            found["begun"] = data["begun"]
        else:
            found[data["id"]] = data
    return found
