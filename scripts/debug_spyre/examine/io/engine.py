"""Talks to the engine in the target's Python (inside/debug_spyre_engine.py): one job on the card, asked through two files."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card
from debug_spyre.examine.features import JsonCall
from debug_spyre.examine.search import Answer, Verdict
from debug_spyre.fleet.io.lane import on_card
from debug_spyre.host.files import PRIVATE, make_folder
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, follow, submit
from debug_spyre.runs.io.run_folder import RunFolder
from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError, Exit

ENGINE = Path(__file__).resolve().parents[2] / "inside" / "debug_spyre_engine.py"
DEAD = {"verdict": Answer.UNCOMPARED, "error": "the engine ended", "out": []}


class TimeIsUpError(DebugSpyreError):
    """No more calls may be asked; those that were answered are kept."""

    status = Exit.RUNNING


@dataclass(slots=True)
class Engine:
    """One engine process as a run of `folder` (a session's). Answers are kept in `place`, so they outlive it."""

    folder: Path
    checkout: Path
    place: Path
    hypothesis: int | None = None
    verb: str = "investigate"
    run: RunFolder | None = None
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: int = 0
    read: int = 0
    alive: int = -1
    wait: float | None = None  # for the card, as JobSpec has it
    deadline: float | None = None  # no call is asked after it
    record: RunRecord | None = None
    card: Card | None = None  # it alone; else all that the environment shows
    is_same: Callable[[str], bool] = lambda _said: True  # a refusal in other words is another fault: no evidence

    def start(self) -> RunFolder:
        """Submit the job; an engine of an earlier call leaves its answers behind."""
        make_folder(self.place)
        for number in range(1, 1000):
            where = self.place / str(number)
            if not where.exists():
                break
            self._take_up(where)
        make_folder(where)
        self.place = where
        self.alive = os.open(where / "alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        fcntl.flock(self.alive, fcntl.LOCK_EX)  # ours as long as we live: an engine without a master ends
        spec = JobSpec(
            folder=self.folder,
            checkout=self.checkout,
            verb=self.verb,
            name=None,
            argv=(*choose(self.checkout).words, str(ENGINE), str(where)),
            hypothesis=self.hypothesis,
            wait=self.wait,
        )
        self.run = submit(on_card(spec, self.card))
        return self.run

    def _take_up(self, where: Path) -> None:
        """Answers of an engine that was ended: the same question has the same id."""
        try:
            for line in (where / "answers.jsonl").read_text(encoding="utf-8").splitlines():
                data = json.loads(line)
                self.answers[data["key"]] = data
        except (OSError, ValueError, KeyError):
            return

    def ask(self, asks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """One answer each, in order. {"died": how} where the call ended its process.

        Raises:
            EnvironmentTroubleError: the engine ended without answering.
        """
        keyed = [{**ask, "key": json.dumps(ask, sort_keys=True)} for ask in asks]
        new = list({a["key"]: a for a in keyed if a["key"] not in self.answers}.values())
        if new:
            if self.deadline is not None and time.monotonic() > self.deadline:
                raise TimeIsUpError("the time is up", next="the same command again goes on where it stopped")
            if self.run is None:
                self.start()
            ids = {}
            with (self.place / "asks.jsonl").open("a", encoding="utf-8") as stream:
                for one in new:
                    self.asked += 1
                    ids[self.asked] = one["key"]
                    stream.write(json.dumps({**one, "id": self.asked}) + "\n")
            self._collect(ids)
        return [self.answers[a["key"]] for a in keyed]

    def _collect(self, ids: dict[int, str]) -> None:
        path = self.place / "answers.jsonl"
        missing = set(ids)
        while missing:
            lines = self._new_lines(path)
            for data in lines:
                self.answers[ids[data["id"]]] = data
                missing.discard(data["id"])
            if lines:
                continue
            if self.run is None or not self.run.has_live_supervisor():
                output = self.run.owner / self.run.job().output if self.run else self.place
                raise EnvironmentTroubleError(
                    f"the engine ended with {len(missing)} calls unanswered: {output}", next=f"tail -40 {output}"
                )
            time.sleep(0.02)

    def _new_lines(self, path: Path) -> list[dict[str, Any]]:
        try:
            with path.open("rb") as stream:
                stream.seek(self.read)
                text = stream.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self.read += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def close(self) -> RunRecord | None:
        """End it; its record."""
        if self.run is None:
            return None
        with (self.place / "asks.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"kind": "end"}) + "\n")
        record = follow(self.run)
        os.close(self.alive)
        self.run, self.record = None, record
        return record

    def points(
        self,
        calls: Sequence[JsonCall],
        *,
        isolated: bool = False,
        before: Sequence[JsonCall] = (),
        pattern: bool = False,
    ) -> list[dict[str, Any]]:
        """The calls made and judged. `before`: these run first in the same process."""
        base: dict[str, Any] = {"kind": "point", "isolated": isolated or bool(before)}
        if before:
            base["before"] = list(before)
        if pattern:
            base["pattern"] = True
        return self.ask([{**base, "call": call} for call in calls])

    def verdicts(
        self, calls: Sequence[JsonCall], *, only_shapes: bool = False, isolated: bool = False
    ) -> list[Verdict]:
        """The same as the search wants it."""
        if only_shapes:
            found = self.ask([{"kind": "shape", "call": call} for call in calls])
            return [
                Verdict(Answer.ILLEGAL) if f.get("out") is None else Verdict(Answer.SHAPE, tuple(f["out"]))
                for f in found
            ]
        return [self._judged(f) for f in self.points(calls, isolated=isolated)]

    def _judged(self, found: dict[str, Any]) -> Verdict:
        verdict = verdict_of(found)
        if verdict.answer is Answer.REFUSED and not self.is_same(verdict.said or ""):
            return replace(verdict, answer=Answer.UNCOMPARED)
        return verdict


def verdict_of(found: dict[str, Any]) -> Verdict:
    """An answer of the engine; a call that ended its process was refused in the hardest way."""
    if "died" in found:
        return Verdict(Answer.REFUSED, (), str(found["died"]))
    said = found.get("pattern") or found.get("error")
    return Verdict(Answer(found["verdict"]), tuple(found.get("out") or ()), said)
