"""The driver of a matrix over several cards. It runs as a job's command, under the locks of all its cards.

One pytest process a card, a test file at a time; what the processes say is merged in the order of collection.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card, visible_cards
from debug_spyre.fleet import board as moves
from debug_spyre.fleet.board import Board, Lane, Unit
from debug_spyre.fleet.io import merged
from debug_spyre.fleet.io.lane import LANES, PLUGIN, AnyCard, LaneProcess, LaneReader
from debug_spyre.fleet.verdicts import Attempt, Manner, Summary, after_attempt, without_card
from debug_spyre.host.files import make_folder
from debug_spyre.host.processes import RUN_FOLDER
from debug_spyre.runs.io.finish_run import quiet_seconds, tensor_budget
from debug_spyre.runs.io.run_folder import LIVE, RunFolder
from debug_spyre.runs.outcome import clock

POLL_SECONDS = 0.02
VERB = "run --cards"


def main(words: Sequence[str]) -> int:
    """words: the options as JSON, --, the pytest command."""
    options = json.loads(words[0])
    wanted = set(options["cards"])
    cards = [card for card in visible_cards() if card.device in wanted]
    spread = Spread(RunFolder(Path(os.environ[RUN_FOLDER])), list(words[2:]), cards, stall=options.get("stall"))
    spread.run()
    return spread.finish()


class Spread:
    """Keeps the board, the processes and what was tried."""

    verb = VERB

    def __init__(self, run: RunFolder, argv: list[str], cards: Sequence[AnyCard], *, stall: float | None) -> None:
        at = argv.index("pytest") + 1
        self.argv = [*argv[:at], "-p", PLUGIN, *argv[at:]]
        self.run_folder, self.stall = run, stall
        self.cards: dict[str, AnyCard] = {card.name: card for card in cards}
        self.board = Board(tuple(self.cards))
        self.processes: dict[int, LaneReader] = {}
        self.pending: dict[int, list[str]] = {}  # files of the unit that a lane is in
        self.units: dict[str, Unit] = {}
        self.attempts: dict[str, list[Attempt]] = {}
        self.settled: set[str] = set()
        self.ids: list[str] = []
        self.waiting: set[int] = set()  # lanes that asked before it was known what there is to run
        self.codes: list[int] = []
        self.notes: list[str] = []
        self.finished: dict[int, LaneReader] = {}
        self.began = time.monotonic()
        make_folder(run.path / LANES)
        self.live = (run.path / LIVE).open("a", encoding="utf-8", errors="replace")
        self.budget = tensor_budget(run.owner)

    def run(self) -> None:
        """Until nothing waits and nothing runs."""
        for card in self.board.cards:  # a process on each card at once: the first that has collected says what there is
            lane = Lane(self.board.number + 1, (card,))
            self.board = replace(self.board, lanes=(*self.board.lanes, lane), number=lane.number)
            self._start(lane)
        while self.board.lanes or self.board.waiting:
            busy = False
            for number in list(self.processes):
                busy = self._look(number) or busy
            if self.ids:
                self.board, lanes = moves.open_lanes(self.board)
                for lane in lanes:
                    self._start(lane)
            self._tend()
            if not self.board.lanes and self.board.waiting:
                self._give_up()
            if not busy:
                time.sleep(POLL_SECONDS)

    def _tend(self) -> None:
        """What else is to be done between two looks: nothing on one host."""

    def _start(self, lane: Lane) -> None:
        folder = self.run_folder.path / LANES / str(lane.number)
        self.processes[lane.number] = self._process(folder, [self.cards[name] for name in lane.cards])
        print(f"process {lane.number} on {', '.join(lane.cards)}", flush=True)

    def _process(self, folder: Path, cards: Sequence[AnyCard]) -> LaneReader:
        return LaneProcess(
            folder, [card for card in cards if isinstance(card, Card)], self.argv, budget=self.budget // len(self.cards)
        )

    def _look(self, number: int) -> bool:
        process = self.processes[number]
        lines = process.look()
        for line in lines:
            if '"e": "session_finish"' not in line[:40] and (number == 1 or '"nodeid"' in line[:60]):
                self.live.write(line + "\n")
        if lines:
            self.live.flush()
        ended = process.is_over
        messages = process.messages()
        for message in messages:
            self._hear(number, message)
        if ended and number in self.processes:
            process.look()
            self._ended(number, hung=False)
        elif number in self.processes:
            self._watch(number, process)
        return bool(lines or messages or ended)

    def _hear(self, number: int, message: dict[str, Any]) -> None:
        if "files" in message and not self.ids:
            self._learn(message)
            for early in sorted(self.waiting):
                self._answer(early)
            self.waiting.clear()
        elif message.get("ask"):
            if self.ids:
                self._answer(number)
            else:
                self.waiting.add(number)
        elif "done" in message:
            self._file_done(number, str(message["done"]))

    def _learn(self, message: dict[str, Any]) -> None:
        """What there is to run: files with the cards that they need, or the sequences of an earlier run of them."""
        self.ids = [str(i) for i in message["ids"]]
        needs = {str(name): int(cards) for name, cards in message["files"]}
        units, notes = merged.units_of(self.run_folder, self.ids, needs, cards=self.board.most)
        self.notes += notes
        self.units = {unit.name: unit for unit in units}
        self.board = moves.add(self.board, *(unit for unit in units if unit.name not in self.attempts))

    def _answer(self, number: int) -> None:
        process = self.processes.get(number)
        if process is None:
            return
        if not self.pending.get(number):
            self.board, unit = moves.ask(self.board, number)
            self.pending[number] = list(unit.files or (unit.name,)) if unit else []
        files = self.pending[number]
        process.answer(files.pop(0) if files else None)

    def _file_done(self, number: int, file: str) -> None:
        process = self.processes[number]
        process.look()
        unit = next((u for u in self.board.lane(number).open if file == (u.files or (u.name,))[-1]), None)
        if process.bad:
            process.end()
            self._ended(number, hung=False, hardware=True)
            return
        if unit is None:
            return
        self.board = moves.done(self.board, number, unit.name)
        failed = process.failed(unit.files or (unit.name,))
        self._tried(unit, number, Manner.FAILED if failed else Manner.PASSED)

    def _watch(self, number: int, process: LaneReader) -> None:
        quiet = time.monotonic() - process.alive_at
        where = f" in {process.current}" if process.current else ""
        if self.stall is not None and quiet >= self.stall and self.board.lane(number).open:
            print(
                f"{', '.join(c.name for c in process.cards)}: ended after {clock(quiet)} of silence{where}", flush=True
            )
            process.end()
            self._ended(number, hung=True)
        elif quiet >= quiet_seconds() and not process.told_quiet:
            process.told_quiet = True
            print(f"{process.cards[0].name}: no result for {clock(quiet)}{where}", flush=True)

    def _ended(self, number: int, *, hung: bool, hardware: bool = False) -> None:
        process = self.processes.pop(number)
        lane = self.board.lane(number)
        held = process.close()
        self.board, left = moves.ended(self.board, number)
        self.waiting.discard(number)
        self.pending.pop(number, None)
        # its card was taken out, or is gone: the files run elsewhere
        taken_back = (process.was_ended or process.lost is not None) and not hung and not hardware
        self.codes.append(0 if left or taken_back else process.returncode)
        current = (process.current or "").partition("::")[0]
        begun = next((u for u in left if current in (u.files or (u.name,))), None)
        if begun is None and left and (hung or hardware):
            begun = left[0]
        if taken_back:
            begun = None
        back = [unit for unit in left if unit is not begun]
        self.board = moves.add(self.board, *back)
        if begun is not None:
            line = process.death(hung=hung)
            if line:
                process.lines.setdefault(current, []).append(line)
            manner = Manner.HUNG if hung else Manner.HARDWARE if hardware else Manner.DIED
            self._tried(begun, number, manner, cards=lane.cards)
        if held:
            self._take_out(lane.cards[0], f"still {held} after its process ended")
        for card in lane.cards if process.lost is not None else ():
            self.board = moves.lose(self.board, card)
        self.finished[number] = process

    def _tried(self, unit: Unit, number: int, manner: Manner, *, cards: tuple[str, ...] = ()) -> None:
        """An attempt has ended: what follows from it."""
        name = unit.name
        cards = cards or self.board.lane(number).cards
        attempts = self.attempts.setdefault(name, [])
        attempts.append(Attempt(number, cards, manner))
        self.board, why = after_attempt(self.board, self.attempts, unit)
        if why:
            self._take_out(attempts[0].cards[0], why)

    def _take_out(self, card: str, why: str) -> None:
        """The card is to blame: its failing files run elsewhere."""
        if card in self.board.out or card not in self.board.cards:
            return
        print(f"{card} is taken out: {why}", flush=True)
        self.board = without_card(self.board, self.attempts, self.units, card, why)
        for lane in self.board.lanes:
            if card in lane.cards and lane.number in self.processes:
                self.processes[lane.number].end()

    def _give_up(self) -> None:
        """Nothing can run what waits: a check that no card can take is dropped, and a file without a card is named."""
        stuck = [unit for unit in self.board.waiting if unit.name not in self.attempts]
        self.notes += [f"{unit.name} could not run: no card is left" for unit in stuck if not self.board.cards]
        held = self.board.held_back
        self.board = replace(self.board, waiting=tuple(stuck) if self.board.cards else (), held_back=frozenset())
        if not held and stuck and self.board.cards:
            raise RuntimeError(f"no move is left, and {len(stuck)} files wait")

    def finish(self) -> int:
        """Merge, report, and return the status."""
        self.live.close()
        ended = self.finished
        status = self._status()
        merged.write(
            self.run_folder.results,
            self.ids,
            self.units,
            attempts=self.attempts,
            lanes=ended,
            blamed=self.board.out,
            status=status,
        )
        for number, process in sorted(ended.items()):
            merged.print_output(number, process)
        busy = {name: merged.busy_seconds(name, ended) for name in self.cards}
        devices = {name: card.device for name, card in self.cards.items()}
        sequences = merged.sequences_of(self.units, self.attempts, ended, self.board.out)
        seconds = time.monotonic() - self.began
        made = Summary(
            tuple(devices), devices, sequences, self.attempts, self.board.out, tuple(self.notes), seconds, busy
        )
        merged.report(self.run_folder.path, made, verb=self.verb, more=self._more())
        return status

    def _status(self) -> int:
        """As one process would have ended."""
        return merged.status_of(self.attempts, self.codes, self.finished, self.board.out)

    def _more(self) -> dict[str, Any]:
        """What the report says beyond the cards."""
        return {}
