"""Small scripts run on the card in batches, each batch one job under the lock; answers are kept, so work is resumable."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card
from debug_spyre.fleet.io.lane import at_once, on_card
from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.host.fingerprint import backend_fingerprint
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, run_job
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError, Exit

WORKER = Path(__file__).resolve().parents[2] / "inside" / "debug_spyre_trial.py"
BATCH_SECONDS = 300.0
MOST_ISOLATED = 24  # scripts a job, each with torch to import
ISOLATED_SECONDS = 20.0
PROOFS = ("proof-", "control-")  # keys of fresh processes


class BudgetSpentError(DebugSpyreError):
    """The runs or minutes that the search may cost are used up; what was found so far stands."""


class StillRunningError(DebugSpyreError):
    """The caller may not wait longer; what was answered is kept and the same call goes on from there."""

    status = Exit.RUNNING


@dataclass(slots=True)
class Trials:
    """Evaluates scripts by text. `runs` and `seconds` are the budget of this call; kept answers cost nothing.

    Answers are kept until the search is over: a later search asks the card anew, since it may answer otherwise.
    `foreground` is how long the caller may wait.
    """

    folder: Folder
    checkout: Path
    runs: int
    seconds: float
    hypothesis: int | None = None
    foreground: float | None = None
    cards: tuple[Card, ...] = ()
    used: int = 0
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def store(self) -> Path:
        """Where answers are kept between calls."""
        return self.folder.path / "repro" / "trials.json"

    def forget(self) -> None:
        """The search is over: the next one starts from nothing."""
        self.answers.clear()
        self.store.unlink(missing_ok=True)

    def forget_proofs(self) -> None:
        """The search may go on, but what was proved is proved anew with what it then finds."""
        self.answers = {key: found for key, found in self.answers.items() if not key.startswith(PROOFS)}
        self._save()

    def load(self) -> None:
        """Take up the answers of a search that was not finished, if this is still the backend that gave them."""
        try:
            kept = json.loads(self.store.read_text(encoding="utf-8"))
            if kept["backend"] == self._backend():
                self.answers.update(kept["answers"])
        except (OSError, ValueError, KeyError, TypeError):
            return

    def _backend(self) -> str | None:
        packages = choose(self.checkout).packages
        return backend_fingerprint(packages) if packages else None

    def evaluate(self, texts: Sequence[str], *, isolated: bool = False) -> list[dict[str, Any]]:
        """One answer a script, in order; a script that killed its process is answered with `crash`.

        `isolated`: each in a process of its own; else they share one, which costs the card less.

        Raises:
            BudgetSpentError: the budget ended before all were answered.
        """
        keys = {text: _key(text, isolated=isolated) for text in texts}
        while pending := {text: key for text, key in keys.items() if key not in self.answers}:
            some = dict(itertools.islice(pending.items(), MOST_ISOLATED if isolated else None))
            self._run_batch(some, isolated=isolated)
        return [self.answers[keys[text]] for text in texts]

    def once(self, key: str, run: Callable[[], RunRecord]) -> dict[str, Any]:
        """One fresh process of a proof: its exit status, run id and status, kept like any answer of an unfinished search.

        Raises:
            StillRunningError: the caller may not wait longer.
        """
        if key not in self.answers:
            self._check_time()
            record = run()
            self.answers[key] = {"exit": record.exit, "run": record.id, "status": record.status.value}
            self._save()
        return self.answers[key]

    def _check_time(self) -> None:
        if self.foreground is not None and time.monotonic() - self.began > self.foreground:
            raise StillRunningError(
                f"the search goes on: {self.used} jobs so far, {len(self.answers)} answers kept",
                next="the same command again takes it up where it stopped",
            )

    def legal_groups(self, texts: Mapping[str, str]) -> list[list[int]]:
        """Which sets of places can change together (inside/debug_spyre_trial.py); computed on the meta device."""
        key = "groups-" + _key(json.dumps(texts, sort_keys=True))
        if key not in self.answers:
            found = self._job({"groups": {"texts": dict(texts)}})
            self.answers[key] = {"groups": found.get("groups", {}).get("groups", [])}
            self._save()
        return list(self.answers[key]["groups"])

    def answer_to(self, text: str) -> dict[str, Any] | None:
        """What a script showed in this search, if it was tried."""
        return self.answers.get(_key(text)) or self.answers.get(_key(text, isolated=True))

    def storages(self, text: str, names: Mapping[str, str], file: str) -> dict[str, Any]:
        """The saved tensors that a script needs: their numbers where they are few, else the file beside the script.

        Without it there is no script to prove: it is done even where the budget is spent.
        """
        key, path = "storages-" + _key(text), self.folder.path / "repro" / file
        kept = self.answers.get(key)
        if kept is None or ("file" in kept and not path.is_file()):
            request = {"text": text, "path": str(path), "file": file, "names": dict(names)}
            found = self._job({"storages": request}, must=True)
            if "storages" not in found:
                raise EnvironmentTroubleError(
                    f"the saved inputs could not be cut down: {found.get('tail') or found.get('status')}",
                    next="debug-spyre shadow NODEID   (saves them anew)",
                )
            self.answers[key] = kept = dict(found["storages"]["storages"])
            self._save()
        return kept

    def _run_batch(self, pending: Mapping[str, str], *, isolated: bool) -> None:
        wide = min(max(len(self.cards), 1), len(pending))
        rows = [{"id": key, "text": text} for text, key in pending.items()]

        def share(mine: list[dict[str, str]], card: Card | None) -> dict[str, Any]:
            request = {"trials": mine, "isolated": isolated}
            return self._job(request, seconds=BATCH_SECONDS + ISOLATED_SECONDS * len(mine) * isolated, card=card)

        made = at_once(self.cards, [partial(share, rows[n::wide]) for n in range(wide)])
        for found in made:
            self.answers.update({key: found[key] for key in pending.values() if key in found})
            if found.get("begun") in pending.values() and found["begun"] not in self.answers:
                self.answers[found["begun"]] = {"exit": None, "crash": found.get("status"), "error": None}
        found = made[0]
        if not any(key in self.answers for key in pending.values()):
            raise EnvironmentTroubleError(
                f"the trial process gave no answer: {found.get('tail') or found.get('status')}",
                next="debug-spyre doctor",
            )
        self._save()

    def _job(
        self, request: dict[str, Any], *, must: bool = False, seconds: float | None = None, card: Card | None = None
    ) -> dict[str, Any]:
        self._check_time()
        if not must and (self.used >= self.runs or time.monotonic() - self.began > self.seconds):
            raise BudgetSpentError(
                f"the budget of {self.runs} runs or {self.seconds / 60:g} minutes is spent",
                next="debug-spyre repro --runs 60 --minutes 30   (goes on where it stopped)",
            )
        self.used += 1
        place = self.folder.path / "repro"
        make_folder(place)
        mine = f"-{card.index}" if card and len(self.cards) > 1 else ""
        question, answers = place / f"request{mine}.json", place / f"answers{mine}.jsonl"
        write_atomically(question, json.dumps(request))
        answers.unlink(missing_ok=True)
        return self.ask(question, answers, seconds or BATCH_SECONDS, card or next(iter(self.cards), None))

    def ask(self, question: Path, answers: Path, seconds: float, card: Card | None = None) -> dict[str, Any]:
        """One job on the card: what stands in `answers` by id, and how the process ended."""
        chosen = choose(self.checkout)
        spec = JobSpec(
            folder=self.folder.path,
            checkout=self.checkout,
            verb="repro",
            name=None,
            argv=(*chosen.words, str(WORKER), str(question), str(answers)),
            hypothesis=self.hypothesis,
            timeout=seconds,
        )
        record = run_job(on_card(spec, card))
        found = _read(answers)
        found["status"] = f"{record.status.value}, exit {record.exit}"
        if not answers.exists():
            found["tail"] = record.output.read_text(encoding="utf-8", errors="replace")[-300:]
        return found

    def _save(self) -> None:
        make_folder(self.store.parent)
        write_atomically(self.store, json.dumps({"backend": self._backend(), "answers": self.answers}))


def _key(text: str, *, isolated: bool = False) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
    return f"alone-{digest}" if isolated else digest


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
