"""The driver of a bisection: the command of one job without a card, whose runs are runs of their own under their cards' locks.

What is known stands in bisect.json after every step, so a driver that was killed is followed by one that goes on.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import CACHE, Card, card_environment, visible_cards
from debug_spyre.fleet.bisect_record import Record, Seen
from debug_spyre.fleet.io.revisions import REQUEST, REVISIONS, VERB, Revisions, keep, load, ops_changed
from debug_spyre.host.files import write_atomically
from debug_spyre.host.interpreter import Interpreter
from debug_spyre.runs.io.finish_run import recover
from debug_spyre.runs.io.jobs import JobSpec, run_job
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.runs.io.records import RunRecord, load_record
from debug_spyre.runs.io.run_folder import RUNS, RunFolder
from debug_spyre.triage.signature import signature
from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError, Exit, RefusedError
from debug_spyre.vocabulary.words import RunStatus

TYPICAL_PRICE, MOST_PRICE = 10.0, 60.0  # of a build, in runs
MOST_LOST = 3  # runs of a revision that come to nothing, before the search gives up


def main(words: Sequence[str]) -> int:
    """`words`: the request's file. 0: all was said that can be said; what, stands in bisect.json."""
    folder = Path(words[0]).parent
    try:
        Bisection(folder).run()
    except DebugSpyreError as error:
        print(error.what, *error.details, sep="\n", flush=True)
        keep(folder, {"refused": error.what, "next": error.next})
        return int(Exit.USAGE)
    return 0


class Bisection:
    """The record, the builds and the runs that go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.request: dict[str, Any] = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
        self.checkout = Path(self.request["checkout"])
        self.revisions = Revisions(
            folder / REVISIONS, Path(self.request["clone"]), tuple(self.request["build"]), Path(self.request["python"])
        )
        self.record = load(folder)
        devices = self.request["cards"]
        self.cards: list[Card | None] = [card for card in visible_cards() if card.device in devices] or [None]
        self.changed = threading.Condition()
        self.under_way: list[str] = []
        self.busy: set[str] = set()
        self.trouble: BaseException | None = None
        self.lost = 0
        self.build_seconds: list[float] = []
        self.run_seconds: list[float] = []

    def run(self) -> None:
        """Until the commit is known, or no run tells more.

        Raises:
            DebugSpyreError: an end can't be built or shows no fault, the runs are used up, or something is wrong with the host.
        """
        recover(self.folder)
        self.revisions.prepare()
        self._take_up()
        threads = [threading.Thread(target=self._work, args=(card,), daemon=True) for card in self.cards]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.trouble is not None:
            raise self.trouble
        self._conclude()

    def _take_up(self) -> None:
        """Runs that an earlier driver began: what they came to, or nothing."""
        runs = []
        for seen in self.record.runs:
            keys = (
                seen.keys
                if seen.is_over
                else self._keys(load_record(RunFolder(self.folder / RUNS / seen.run)), seen.revision)
            )
            if keys is not None:
                runs.append(replace(seen, keys=keys))
        self._put(replace(self.record, runs=tuple(runs)))

    def _work(self, card: Card | None) -> None:
        while True:
            with self.changed:
                try:
                    revision = self._next()
                except BaseException as error:  # noqa: BLE001  the main thread raises it
                    self.trouble = self.trouble or error
                    revision = None
                if revision is None:
                    self.changed.notify_all()
                    return
            try:
                if self._is_built(revision):
                    self._run(revision, card)
            except BaseException as error:  # noqa: BLE001  the main thread raises it
                self.trouble = self.trouble or error
            with self.changed:
                if revision in self.under_way:
                    self.under_way.remove(revision)
                self.changed.notify_all()

    def _next(self) -> str | None:
        """The next run, waited for where it depends on those that go on; None ends the thread."""
        while self.trouble is None:
            built = {r for r in (self.record.good, *self.record.history.revisions) if self.revisions.is_made(r)}
            revision = self.record.next_run(built, self.under_way, self.busy, self._price())
            if revision is not None and revision not in self.busy:
                self.under_way.append(revision)
                if revision not in built:
                    self.busy.add(revision)
                return revision
            if not self.under_way:
                return None
            self.changed.wait()
        return None

    def _is_built(self, revision: str) -> bool:
        fresh = not self.revisions.is_made(revision)
        if fresh:
            print(f"build {revision[:12]}", flush=True)
        try:
            built = self.revisions.made(revision)
        finally:
            with self.changed:
                self.busy.discard(revision)
                self.changed.notify_all()
        with self.changed:
            if fresh:
                self.build_seconds.append(built.seconds)
            if built.trouble is None:
                return True
            print(f"{revision[:12]} is left out: {built.trouble}", flush=True)
            if revision in {self.record.bad, self.record.good}:
                which = "bad" if revision == self.record.bad else "good"
                raise EnvironmentTroubleError(
                    f"the {which} revision {revision[:12]} can't be built: {built.trouble}",
                    details=(f"  its output: {self.revisions.place(revision) / 'build.txt'}",),
                    next="debug-spyre bisect --build COMMAND ... (cwd: the source; environment: $VIRTUAL_ENV)",
                )
            self._put(replace(self.record, unbuilt={**self.record.unbuilt, revision: built.trouble}))
        return False

    def _run(self, revision: str, card: Card | None) -> None:
        """One run at that revision, under the card's lock."""
        spec = self._spec(revision, card)
        mine: list[Seen] = []

        def started(run: RunFolder) -> None:
            with self.changed:
                mine.append(Seen(revision, run.id))
                self._put(replace(self.record, runs=(*self.record.runs, mine[0])))

        record = run_job(spec, started=started)
        with self.changed:
            keys = self._keys(record, revision)
            rest = tuple(seen for seen in self.record.runs if seen is not mine[0])
            if keys is None:
                self._put(replace(self.record, runs=rest))
                self.lost += 1
                if self.lost >= MOST_LOST:
                    raise RefusedError(
                        f"{self.lost} runs came to nothing; the last, {record.id}: "
                        f"{next(iter(record.warnings), record.status.value)}"
                    )
                return
            self.run_seconds.append(record.seconds)
            self._put(replace(self.record, runs=(*rest, replace(mine[0], keys=keys))))
            on = f" on {card.name}" if card else ""
            print(f"{record.id} {revision[:12]}{on}: {'passes' if not keys else keys[0]}", flush=True)

    def _spec(self, revision: str, card: Card | None) -> JobSpec:
        place, words = self.revisions.place(revision), [str(word) for word in self.request["words"]]
        python = place / "env/bin/python"
        cache = {CACHE: str(place / "cache")}
        env = {**cache, **(card_environment([card], {**os.environ, **cache}) if card else {})}
        env |= {"VIRTUAL_ENV": str(place / "env"), "PYTHONNOUSERSITE": "1"}
        pytest_args = None if self.request["script"] else tuple(words)
        if pytest_args is not None:
            chosen = Interpreter((str(python),), python, f"torch-spyre {revision[:12]}")
            argv, env = pytest_command(self.checkout, words, env=env, interpreter=chosen, verb=VERB)
        else:
            argv = (str(python), *words)
        return JobSpec(
            folder=self.folder,
            checkout=self.checkout,
            verb=VERB,
            name=f"{revision[:12]}",
            argv=argv,
            pytest_args=pytest_args,
            env=env,
            timeout=self.request["timeout"],
            cards=card.device if card else None,
            cwd=self.checkout if pytest_args is not None else Path(self.request["cwd"]),
            python=str(python),
            expect_change=("torch-spyre",),
        )

    def _keys(self, record: RunRecord, revision: str) -> tuple[str, ...] | None:
        """What the run's failures are called, the same at every revision; none: it passed; None: it says nothing."""
        if record.status is RunStatus.PASSED:
            return ()
        if record.status in {RunStatus.TIMEOUT, RunStatus.STALLED}:
            return (record.status.value,)
        if not record.valid or record.status not in {RunStatus.FAILED, RunStatus.KILLED, RunStatus.ERROR}:
            return None
        failures = record.evidence.failures if record.evidence else ()
        keys = dict.fromkeys(signature(failure).replace(revision[:12], "REVISION") for failure in failures)
        return tuple(keys) if keys and record.exit != 125 else (f"exit {record.exit}",)

    def _price(self) -> float:
        if not self.build_seconds or not self.run_seconds:
            return TYPICAL_PRICE
        build, run = (sum(s) / len(s) for s in (self.build_seconds, self.run_seconds))
        return min(build / max(run, 0.5), MOST_PRICE)

    def _put(self, record: Record) -> None:
        self.record = record
        keep(self.folder, record.to_json())

    def _conclude(self) -> None:
        """The answer, checked by git's own bisect; only the two builds that it names are kept."""
        said, log = self.revisions.replay(self.record.bad, self.record.good, self.record.sides())
        write_atomically(self.folder / "bisect.log", log)
        after = self.record.groups[0][0][-1]
        before = [revision for word, revision in self.record.sides() if word == "good"][-1:] or [self.record.good]
        ops = ops_changed(self.revisions, before[0], after, self.checkout)
        self.revisions.remove_but([before[0], after])
        keep(self.folder, {"git": said.strip().splitlines()[:40], "ops": ops, "over": time.time()})
