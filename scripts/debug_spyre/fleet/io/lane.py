"""One pytest process on its own card: started with that card's lock, device and cache, spoken to by two pipes, read as it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any, TypeVar

from debug_spyre.card import holders
from debug_spyre.card.holders import Card, card_environment, choose_cards
from debug_spyre.card.lock import is_held, lock_of, lock_path, read_holder
from debug_spyre.fleet.hosts import HostCard
from debug_spyre.fleet.verdicts import HARDWARE
from debug_spyre.host import processes
from debug_spyre.host.files import make_folder, read_ends
from debug_spyre.runs import pytest_words
from debug_spyre.runs.io.child import BUDGET, RESULTS
from debug_spyre.runs.io.finish_run import grace_seconds, release_seconds
from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec
from debug_spyre.runs.io.run_folder import RUNS
from debug_spyre.runs.io.series import SERIES_CARDS
from debug_spyre.vocabulary.errors import UsageError

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.fleet.io.spread import main; sys.exit(main(sys.argv[2:]))"
WHOLE = {"-x", "--exitfirst", "--maxfail", "--lf", "--last-failed", "--ff", "--failed-first", "--sw", "--stepwise"}


def over_cards(spec: JobSpec, text: str | None, *, series: bool = False) -> JobSpec:
    """The job over the cards that `--cards` means; unchanged where it was not given.

    `series`: a ready experiment, whose driver gives each of its processes a card.

    Raises:
        UsageError: words that fit no card, or pytest words that several processes can't follow together.
    """
    if text is None:
        return spec
    cards, notes = free_ones(choose_cards(text))
    devices = [card.device for card in cards]
    spec = replace(spec, cards=",".join(devices), notes=(*spec.notes, *notes))
    if series:
        return replace(spec, env={**spec.env, SERIES_CARDS: json.dumps(devices)})
    if len(cards) == 1:
        return replace(spec, env={**card_environment(cards, {**os.environ, **spec.env}), **spec.env})
    refused = [word.option for word in pytest_words.split(spec.pytest_args or ()) if word.option in WHOLE]
    if refused:
        raise UsageError(
            f"{refused[0]} stops or orders one process, and --cards {text} means {len(cards)} processes",
            next="take it out, or run on one card: --cards 1",
        )
    return _driven(spec, devices)


def over_these(spec: JobSpec, cards: Sequence[Card]) -> JobSpec:
    """The job over cards whose locks are held already; unchanged for fewer than two."""
    devices = [card.device for card in cards]
    return _driven(replace(spec, cards=",".join(devices)), devices) if len(cards) > 1 else spec


def over_cards_as_before(spec: JobSpec, before: str) -> JobSpec:
    """The job in the sequences that an earlier run of its folder had on its cards; unchanged where that had one process.

    On fewer cards the sequences follow one another, each still in a process of its own.
    """
    try:
        text = (spec.folder / RUNS / before / "series.json").read_text(encoding="utf-8")
        count = len(json.loads(text)["data"]["sequences"])
    except (OSError, ValueError, KeyError, TypeError):
        return spec
    cards, notes = free_ones(choose_cards("all"))
    devices = [card.device for card in cards[:count]]
    return _driven(replace(spec, cards=",".join(devices), notes=(*spec.notes, *notes)), devices)


def _driven(spec: JobSpec, devices: list[str]) -> JobSpec:
    options = {"cards": devices, "stall": spec.stall}
    driver = (sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), json.dumps(options), "--")
    return replace(spec, argv=(*driver, *spec.argv), stall=None)


def free_ones(cards: tuple[Card, ...]) -> tuple[tuple[Card, ...], list[str]]:
    """Those that nobody holds, and in words who holds the others; all of them where none is free: then the run waits."""
    free, notes = [], []
    for card in cards:
        path = lock_path(card.device)
        seen = holders.holders([card.device])
        if is_held(path):
            holder = read_holder(path)
            notes.append(
                f"{card.name} ({card.device}) is left out: locked by {holder.says() if holder else 'somebody'}"
            )
        elif seen.state is holders.CardState.HELD:
            notes.append(f"{card.name} ({card.device}) is left out: {seen.says()}, without our lock")
        else:
            free.append(card)
    return (tuple(free), notes) if free else (cards, [])


FILES = "DEBUG_SPYRE_FILES"
PLUGIN = "debug_spyre_files"
LANES = "lanes"


AnyCard = Card | HostCard


class LaneReader:
    """What a lane has said so far, read from its results file and sorted by test file."""

    def __init__(self, folder: Path, cards: Sequence[AnyCard]) -> None:
        make_folder(folder)
        self.folder, self.cards = folder, tuple(cards)
        self.results, self.output = folder / "results.jsonl", folder / "output.txt"
        self.lines: dict[str, list[str]] = {}  # by test file
        self.lost: str | None = None  # why its cards are gone, where they are: its files run elsewhere
        self.head: list[str] = []  # session_start and collection
        self.current: str | None = None  # the test that runs
        self.was_ended = False  # by us
        self.closed = False
        self.bad = False  # a report shows an error of the card
        self.alive_at = time.monotonic()
        self.told_quiet = False
        self._read = 0
        self._rest = b""

    def look(self) -> list[str]:
        """New lines of its results file, sorted in by test file."""
        try:
            with self.results.open("rb") as stream:
                stream.seek(self._read)
                data = stream.read()
        except OSError:
            return []
        self._read += len(data)
        *raw, self._rest = (self._rest + data).split(b"\n")
        lines = [line.decode("utf-8", "replace") for line in raw]
        for line in lines:
            self._take(line)
        if lines:
            self.alive_at, self.told_quiet = time.monotonic(), False
        return lines

    def _take(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        nodeid, kind = event.get("nodeid"), event.get("e")
        if not isinstance(nodeid, str) or event.get("phase") == "collect":
            self.head.append(line)
            return
        if kind == "tensors":  # they lie beside this lane's results: said relative to the run's folder
            for entry in [*event.get("pairs", ()), *event.get("others", ())]:
                entry["file"] = f"{LANES}/{self.folder.name}/{entry['file']}"
            line = json.dumps(event)
        self.lines.setdefault(nodeid.partition("::")[0], []).append(line)
        if kind == "start":
            self.current = nodeid
        elif kind == "report":
            if event.get("outcome") == "failed" and HARDWARE.search(line.replace('\\"', '"')):
                self.bad = True
            if event.get("phase") == "teardown":
                self.current = None

    @property
    def is_over(self) -> bool:
        """Nothing more will come."""
        return True

    @property
    def returncode(self) -> int:
        """The exit status of its process, negative for a signal; 0 where none is known."""
        return 0

    def answer(self, file: str | None) -> None:
        """Tell it the next file; a process that is gone hears nothing."""

    def messages(self) -> list[dict[str, Any]]:
        """What it said since the last look."""
        return []

    def end(self) -> None:
        """End it and whatever it left, and wait until its cards are free."""

    def close(self) -> str | None:
        """After its end; returns who still has a card, if anybody."""
        return None

    def failed(self, files: Sequence[str]) -> bool:
        """Some test of these files failed."""
        return any('"outcome": "failed"' in line for file in files for line in self.lines.get(file, ()))

    def death(self, *, hung: bool) -> str | None:
        """The line that says in which test the process ended, with the end of its output."""
        if self.current is None:
            return None
        tail = read_ends(self.output, tail=8192)[1].decode("utf-8", "replace")
        code = self.returncode
        how = (
            "no output and no result"
            if hung
            else f"the process ended by signal {-code}"
            if code < 0
            else f"exit {code}"
        )
        event = {"e": "died", "nodeid": self.current, "hung": hung, "exit": code, "text": f"{tail}\nE   {how}"}
        return json.dumps(event)


class LaneProcess(LaneReader):
    """A lane as a process of this host."""

    def __init__(self, folder: Path, cards: Sequence[Card], argv: Sequence[str], *, budget: int) -> None:
        super().__init__(folder, cards)
        self.message = b""
        self.mine = tuple(cards)
        self._start(argv, budget)

    @property
    def is_over(self) -> bool:
        """The process has ended."""
        return self.process.poll() is not None

    @property
    def returncode(self) -> int:
        """Its exit status, negative for a signal; 0 while it lives."""
        return self.process.returncode or 0

    def _start(self, argv: Sequence[str], budget: int) -> None:
        down, up = os.pipe(), os.pipe()
        descriptors, marks = lock_of([card.device for card in self.cards])
        env = {**os.environ, **card_environment(self.mine, os.environ), **marks}
        env |= {RESULTS: str(self.results), BUDGET: str(budget), FILES: f"{down[0]}:{up[1]}"}
        with self.output.open("ab") as stream:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=env, start_new_session=True,
                pass_fds=(*descriptors, down[0], up[1]),
            )  # fmt: skip
        os.close(down[0])
        os.close(up[1])
        os.set_blocking(up[0], False)
        self.incoming, self.outgoing = up[0], down[1]

    def answer(self, file: str | None) -> None:
        """Tell it the next file; a process that is gone hears nothing."""
        with suppress(OSError):
            os.write(self.outgoing, json.dumps({"file": file}).encode() + b"\n")

    def messages(self) -> list[dict[str, Any]]:
        """What it said since the last look."""
        with suppress(OSError):
            while data := os.read(self.incoming, 65536):
                self.message += data
        *lines, self.message = self.message.split(b"\n")
        return [json.loads(line) for line in lines if line]

    def end(self) -> None:
        """End it and whatever it left, and wait until its cards are free."""
        self.was_ended = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_seconds())
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.close()

    def close(self) -> str | None:
        """After its end: what it started and left on its cards is ended; returns who still has a card, if anybody."""
        if self.closed:
            return None
        self.closed = True
        for descriptor in (self.incoming, self.outgoing):
            with suppress(OSError):
                os.close(descriptor)
        devices = [card.device for card in self.cards]
        mine = f"{RESULTS}={self.results}".encode()

        def left() -> list[processes.Process]:
            return [p for found in processes.run_folders(lambda _p, entries: mine in entries).values() for p in found]

        processes.end(left, grace=grace_seconds())
        now = holders.wait_until_free(devices, seconds=release_seconds())
        return now.says() if now.state is holders.CardState.HELD else None


# -- independent runs that take turns on some cards: each on a card of its own, as many at once as there are cards

T = TypeVar("T")


def chosen_cards(text: str | None) -> tuple[tuple[Card, ...], list[str]]:
    """The cards that `--cards` means, without those that somebody holds, and who holds them; none where it was not given.

    Raises:
        UsageError: words that fit no card; EnvironmentTroubleError: no card is visible.
    """
    return ((), []) if text is None else free_ones(choose_cards(text))


def on_card(spec: JobSpec, card: Card | None) -> JobSpec:
    """The job on that card alone: its lock, its device, a compile cache of its own."""
    if card is None:
        return spec
    return replace(spec, cards=card.device, env={**spec.env, **card_environment([card], {**os.environ, **spec.env})})


def at_once(cards: Sequence[Card], tasks: Sequence[Callable[[Card | None], T]]) -> list[T]:
    """What the tasks return, in order; each is told its card. Without cards, or with one, they follow one another."""
    if len(cards) < 2:
        return [task(cards[0] if cards else None) for task in tasks]
    free: Queue[Card] = Queue()
    for card in cards:
        free.put(card)

    def run(task: Callable[[Card | None], T]) -> T:
        card = free.get()
        try:
            return task(card)
        finally:
            free.put(card)

    with ThreadPoolExecutor(len(cards)) as pool:
        return [future.result() for future in [pool.submit(run, task) for task in tasks]]
