"""The driver of a matrix over the hosts of a Dask cluster, under a Python that has Dask; and a look at such a cluster.

Dask carries words and files, gives out the cards as its resource, and tells which workers live. Which file runs next is the
board's to say, as on one host: each lane is a task that runs one job of ours under its host's lock.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from debug_spyre.fleet import board as moves
from debug_spyre.fleet.board import Unit
from debug_spyre.fleet.hosts import RESOURCE, START, Facts, Host, HostCard, cards_of, hosts_of, versions_differ
from debug_spyre.fleet.io import on_host
from debug_spyre.fleet.io.lane import LANES, AnyCard, LaneReader
from debug_spyre.fleet.io.on_host import MOST_BYTES
from debug_spyre.fleet.io.shipping import digest, package_archive
from debug_spyre.fleet.io.spread import Spread
from debug_spyre.fleet.verdicts import Attempt, Manner
from debug_spyre.host.files import make_folder
from debug_spyre.host.processes import RUN_FOLDER
from debug_spyre.runs.io.run_folder import RUNS, RunFolder
from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError, Exit

CONNECT_SECONDS = 10.0
PART_BYTES = 8 << 20
EXCHANGE_SECONDS = 0.05
SILENT_SECONDS = 60.0  # a worker that does not answer for so long counts as lost
ROLL_SECONDS = 0.5
GONE = "its worker is gone"
RECORD = "record.jsonl"  # below lanes: which lanes there were, and what was tried; another driver goes on from it


def main(words: Sequence[str]) -> int:
    """words: the options as JSON, then --, the pytest command; without a command the hosts are looked at only."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options: dict[str, Any] = json.loads(words[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(Exit.SIGNALLED) + signal.SIGTERM))
    try:
        with Cluster(options) as cluster:
            if len(words) == 1:
                sys.stdout.write(json.dumps({"answers": cluster.answers}) + "\n")
                return 0
            cluster.send(f"runs/{options['token']}", "tree", Path(options["archive"]).read_bytes())
            spread = HostSpread(RunFolder(Path(os.environ[RUN_FOLDER])), list(words[2:]), cluster)
            spread.run()
            return spread.finish()
    except DebugSpyreError as error:
        sys.stdout.write(json.dumps({"error": error.what, "next": error.next}) + "\n")
        return int(error.status)


def call(
    name: str, source: str, function: str, args: tuple[Any, ...], more: dict[str, Any], *, dask_worker: Any = None
) -> Any:
    """A function of on_host inside a worker's process. The module is made there once: its lanes outlive the call."""
    import sys
    import types

    module = sys.modules.get(name)
    if module is None:
        module = types.ModuleType(name)
        sys.modules[name] = module
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102  our own source, sent by our driver
    if dask_worker is not None:  # Dask gives it to what is run on a worker, not to a task
        module.STORE = f"{dask_worker.local_directory}/debug-spyre"  # type: ignore[attr-defined]
    return getattr(module, function)(*args, **more)


async def call_and_wait(
    name: str, source: str, function: str, args: tuple[Any, ...], more: dict[str, Any], *, dask_worker: Any = None
) -> Any:
    """The same for a function that waits for a process, so that the worker goes on meanwhile."""
    return await call(name, source, function, args, more, dask_worker=dask_worker)


class Cluster:
    """A connection to the scheduler, with the hosts that were found fit."""

    def __init__(self, options: dict[str, Any]) -> None:
        import cloudpickle
        from distributed import Client

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        self.options, self.address = options, str(options["address"])
        source = Path(on_host.__file__).read_text(encoding="utf-8")
        self.module = (f"_debug_spyre_{digest(source.encode())}", source)
        self.package = package_archive()
        self.package_name = f"package-{digest(self.package)}"
        try:
            self.client = Client(self.address, timeout=CONNECT_SECONDS, set_as_default=False, name="debug-spyre")
        except Exception as error:  # whatever Dask, the network or TLS says: nobody is reached
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise EnvironmentTroubleError(
                f"no Dask scheduler answers at {self.address} within {CONNECT_SECONDS:g} s: {words[0][:160]}",
                next="dask scheduler; then --hosts with the address that it prints (with TLS: Dask's own configuration)",
            ) from error

    def __enter__(self) -> Self:
        try:
            self.hosts, self.notes = self._fit()
        except BaseException:
            self.client.close(timeout=2)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.client.close(timeout=2)

    def _fit(self) -> tuple[list[Host], list[str]]:
        """The hosts, each looked at by its own interpreter; workers that were looked at a moment ago are not asked again.

        Raises:
            EnvironmentTroubleError: versions differ, or no worker is fit.
        """
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        self.answers: dict[str, dict[str, Any]] = self.options.get("answers") or {}
        offering = [worker for worker, known in workers.items() if known["resources"].get(RESOURCE)]
        if self.answers.keys() != workers.keys():
            self._compare_versions(workers)
            self.answers = {w: {k: known[k] for k in ("name", "resources")} for w, known in workers.items()}
            self._ask(offering)
        elif offering:
            self.send(self.package_name, "scripts", self.package, workers=offering)
        return hosts_of(self.answers, Facts.from_json(self.options["here"]), address=self.address)

    def _compare_versions(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        told = self.client.get_versions(check=False)
        names = {worker: f"worker {known['name']}" for worker, known in workers.items()}
        versions = {"here": told["client"]["packages"], "the scheduler": told["scheduler"]["packages"]}
        versions |= {names[w]: v["packages"] for w, v in told["workers"].items() if w in names and v}
        versions_differ(versions)

    def _ask(self, offering: Sequence[str]) -> None:
        """Each worker that offers cards for its facts."""
        if not offering:
            return
        self.send(self.package_name, "scripts", self.package, workers=offering)
        found = self.run("facts", self.options["python"], self.package_name, workers=offering, wait=True)
        for worker in offering:
            told = found.get(worker)
            self.answers[worker] |= told if isinstance(told, dict) else {"trouble": f"{told!r:.200}"}
            self.answers[worker]["host"] = (self.answers[worker].get("facts") or {}).get("host")

    def run(self, function: str, *args: Any, workers: Sequence[str], wait: bool = False, **more: Any) -> dict[str, Any]:
        """What the function answers on each of these workers; a worker that is lost is missing, or has its error.

        `wait`: the function waits for a process of its own.
        """
        answers: dict[str, Any] = self.client.run(
            call_and_wait if wait else call,
            *self.module,
            function,
            args,
            more,
            workers=list(workers),
            on_error="return",
        )
        return answers

    def send(self, place: str, name: str, archive: bytes, *, workers: Sequence[str] | None = None) -> None:
        """Lay an archive out on the hosts, in parts.

        Raises:
            EnvironmentTroubleError: one can't take it.
        """
        left = list(workers if workers is not None else [host.worker for host in self.hosts])
        for offset in range(0, max(len(archive), 1), PART_BYTES):
            part, last = archive[offset : offset + PART_BYTES], offset + PART_BYTES >= len(archive)
            there = self.run("receive", place, name, offset, part, workers=left, last=last)
            for worker in list(left):
                if isinstance(there.get(worker), bool):
                    if there[worker]:
                        left.remove(worker)  # it has all of it
                    continue
                raise EnvironmentTroubleError(
                    f"worker {worker} can't take the files: {there.get(worker)!r:.160}", next=START
                )

    def hold(self, lane: HostLane, order: Mapping[str, Any]) -> Any:
        """The task that has the lane's cards: Dask's answer to come."""
        args = (lane.key, f"runs/{self.options['token']}", self.package_name, dict(order))
        return self.client.submit(
            call, *self.module, "hold", args, {}, key=lane.key, pure=False, retries=0, workers=[lane.worker],
            resources={RESOURCE: len(lane.cards)}, allow_other_workers=False,
        )  # fmt: skip


class HostLane(LaneReader):
    """A lane on another host: what it writes there comes back and lies here as if it had run here."""

    def __init__(self, folder: Path, cards: Sequence[HostCard], *, key: str, here: str, there: str) -> None:
        super().__init__(folder, cards)
        self.key, self.worker = key, cards[0].worker
        self.paths = (there.encode(), here.encode())  # the tree's
        self.future: Any = None
        self.began = False
        self.over: dict[str, Any] | None = None
        self.released = False
        self._changing = threading.Lock()  # between the worker's thread and the driver's
        self._send: list[dict[str, Any]] = []
        self._said: list[dict[str, Any]] = []
        self._end: dict[str, Any] | None = None
        self._ending = False
        self._at = {"results": 0, "output": 0}
        self._line = {"results": b"", "output": b""}
        self._ready: list[dict[str, Any]] = []
        self._wanted: list[str] = []  # kept tensors that have not come yet
        self._file_at = 0

    # the worker's thread

    def wish(self) -> dict[str, Any]:
        """What the next exchange asks for."""
        with self._changing:
            send, self._send = self._send, []
            file = (self._wanted[0], self._file_at) if self._wanted else None
        return {**self._at, "send": send, "end": self._ending, "release": self.released, "file": file}

    def take(self, answer: Mapping[str, Any]) -> None:
        """What the exchange brought: into files first, words after."""
        self.began = self.began or bool(answer["began"])
        for name, path in (("results", self.results), ("output", self.output)):
            data: bytes = answer[name]
            self._at[name] += len(data)
            *lines, self._line[name] = (self._line[name] + data).split(b"\n")
            if answer.get("end") and self._line[name]:
                lines, self._line[name] = [*lines, self._line[name]], b""
            kept = [line.replace(*self.paths) for line in lines if b'"e": "conditions"' not in line[:40]]
            if kept:  # the files that were loaded lie on another host: nothing here can be said of them
                with path.open("ab") as stream:
                    stream.write(b"\n".join(kept) + b"\n")
        if "file" in answer:
            self._take_file(answer["file"])
        with self._changing:
            self._said += answer.get("said") or ()
            self._end = answer.get("end") or self._end

    def _take_file(self, data: bytes) -> None:
        with self._changing:
            path = self.folder / self._wanted[0]
            make_folder(path.parent)
            with path.open("ab") as stream:
                stream.write(data)
            self._file_at += len(data)
            if len(data) < MOST_BYTES:
                self._wanted.pop(0)
                self._file_at = 0

    # the driver's thread

    def look(self) -> list[str]:
        """New lines of its results, and the words that came with them."""
        with self._changing:
            self._ready += self._said
            self._said = []
            self.over = self._end
        return super().look()

    def _take(self, line: str) -> None:
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and event.get("e") == "tensors":
                names = [str(e["file"]) for e in (*event.get("pairs", ()), *event.get("others", ()))]
                safe = [name for name in names if not name.startswith("/") and ".." not in name.split("/")]
                with self._changing:
                    self._wanted += [name for name in dict.fromkeys(safe) if name not in self._wanted]
        super()._take(line)

    def messages(self) -> list[dict[str, Any]]:
        """What it said; what it kept has come before."""
        if self._wanted:
            return []
        ready, self._ready = self._ready, []
        return ready

    @property
    def is_over(self) -> bool:
        """It has ended and all of it is here, or nothing more will come."""
        return self.lost is not None or (self.over is not None and not self._wanted)

    @property
    def returncode(self) -> int:
        """As pytest ended."""
        return int((self.over or {}).get("exit") or 0)

    def answer(self, file: str | None) -> None:
        """Tell it the next file."""
        with self._changing:
            self._send.append({"file": file})

    def end(self) -> None:
        """End it and wait until its cards are free."""
        self.was_ended = self._ending = True
        deadline = time.monotonic() + SILENT_SECONDS
        while not self.is_over and self.began and time.monotonic() < deadline:
            self.look()
            time.sleep(EXCHANGE_SECONDS)
        self.close()

    def close(self) -> str | None:
        """Its cards go back to Dask; returns who still has one on that host, if anybody."""
        if self.closed:
            return None
        self.closed = self._ending = self.released = True
        if self.future is not None and not self.began:
            self.future.cancel()
        held = (self.over or {}).get("holders")
        return f"held by {'; '.join(held)}" if held else None


class Link(threading.Thread):
    """The exchange with one worker, for all its lanes at once."""

    def __init__(self, cluster: Cluster, worker: str) -> None:
        super().__init__(daemon=True, name=worker)
        self.cluster, self.worker = cluster, worker
        self.lanes: list[HostLane] = []
        self.stopped = False
        self.heard_at = time.monotonic()
        self.broken: str | None = None

    def run(self) -> None:
        """Until the worker is lost, or the driver has done."""
        while not self.stopped:
            lanes = list(self.lanes)
            released = [lane for lane in lanes if lane.released]
            try:
                answers = self.cluster.run("exchange", {lane.key: lane.wish() for lane in lanes}, workers=[self.worker])
                there = answers[self.worker]
                if isinstance(there, BaseException):
                    raise there
                for lane in lanes:
                    if lane.key in there and not lane.closed:
                        lane.take(there[lane.key])
            except Exception as error:  # noqa: BLE001  whatever it is, this worker can't be spoken to
                self.broken = GONE if isinstance(error, (KeyError, OSError)) else f"{error!r:.100}"
                return
            self.heard_at = time.monotonic()
            self.lanes = [lane for lane in self.lanes if lane not in released]
            time.sleep(EXCHANGE_SECONDS)


class Roll(threading.Thread):
    """Which workers the scheduler knows: an exchange with one that is gone would be tried for Dask's whole connect timeout."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True, name="roll")
        self.cluster = cluster
        self.there: frozenset[str] | None = None  # None: not known now
        self.stopped = False

    def run(self) -> None:
        """Ask until the driver has done."""
        while not self.stopped:
            try:
                self.there = frozenset(self.cluster.client.scheduler_info(n_workers=-1)["workers"])
            except Exception:  # noqa: BLE001  the exchanges tell that nobody is reached
                self.there = None
            time.sleep(ROLL_SECONDS)


class HostSpread(Spread):
    """The matrix, with lanes on other hosts."""

    verb = "run --hosts"

    def __init__(self, run: RunFolder, argv: list[str], cluster: Cluster) -> None:
        options = cluster.options
        cards = cards_of(cluster.hosts, options.get("most"))
        super().__init__(run, argv, cards, stall=options.get("stall"))
        self.board = replace(self.board, hosts={card.name: card.host for card in cards})
        self.cluster, self.options, self.notes = cluster, options, list(cluster.notes)
        self.links = {card.worker: Link(cluster, card.worker) for card in cards}
        self.roll = Roll(cluster)
        self.trees = cluster.run("where", f"runs/{options['token']}/tree", workers=list(self.links))
        self.went: dict[str, str] = {}  # worker -> why it was lost
        self.warned: list[str] = []
        self.incomplete = False
        self.record = (run.path / LANES / RECORD).open("a", encoding="utf-8")
        for earlier in options.get("resume") or ():
            self._take_up(RunFolder(run.owner / RUNS / str(earlier)))

    def run(self) -> None:
        """Until nothing waits and nothing runs; however it ends, no lane is left."""
        for thread in (self.roll, *self.links.values()):
            thread.start()
        try:
            super().run()
        finally:
            for process in self.processes.values():
                process.close()
            with suppress(Exception):
                self._let_go()

    def _let_go(self) -> None:
        living = [worker for worker in self.links if worker not in self.went]
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and any(self.links[w].lanes and self.links[w].is_alive() for w in living):
            time.sleep(EXCHANGE_SECONDS)
        self.roll.stopped = True
        for link in self.links.values():
            link.stopped = True
        for worker in living:
            self.links[worker].join(SILENT_SECONDS)
        if living:
            self.cluster.run("forget", f"runs/{self.options['token']}", workers=living)

    def _process(self, folder: Path, cards: Sequence[AnyCard]) -> LaneReader:
        mine = [card for card in cards if isinstance(card, HostCard)]
        key = f"debug-spyre-{self.options['token']}-{self.run_folder.id}-{folder.name}"
        there = str(self.trees.get(mine[0].worker))
        lane = HostLane(folder, mine, key=key, here=self.options["checkout"], there=there)
        at = self.argv.index("pytest") - 1
        order = {
            "number": int(folder.name), "devices": [card.device for card in mine], "argv": self.argv[at:],
            "pytest_args": self.options["pytest_args"], "env": self.options["env"], "python": self.options["python"],
        }  # fmt: skip
        self._note({"lane": int(folder.name), "cards": [asdict(card) for card in mine]})
        lane.future = self.cluster.hold(lane, order)
        self.links[lane.worker].lanes = [*self.links[lane.worker].lanes, lane]
        return lane

    def _note(self, entry: Mapping[str, Any]) -> None:
        self.record.write(json.dumps(entry) + "\n")
        self.record.flush()

    def _tend(self) -> None:
        """Workers that were lost take their lanes with them; a lane that never got its cards is not waited for."""
        now = time.monotonic()
        for worker, link in self.links.items():
            why = link.broken or ("silent" if now - link.heard_at > SILENT_SECONDS else None)
            if self.roll.there is not None and worker not in self.roll.there:
                why = GONE
            if why is not None and worker not in self.went:
                self._lose(worker, why)
        idle = bool(self.ids) and not self.board.waiting
        if idle and not any(lane.open or lane.reserved for lane in self.board.lanes):
            for number, process in list(self.processes.items()):
                if isinstance(process, HostLane) and number not in self.waiting and not process.head:
                    process.end()
                    self._ended(number, hung=False)

    def _lose(self, worker: str, why: str) -> None:
        host = next(h for h in self.cluster.hosts if h.worker == worker)
        self.went[worker] = f"{host.name} was lost ({why})"
        print(f"{self.went[worker]}: its files run elsewhere", flush=True)
        for process in self.processes.values():
            if isinstance(process, HostLane) and process.worker == worker:
                process.lost = self.went[worker]
        for card in [name for name, card in self.cards.items() if isinstance(card, HostCard) and card.worker == worker]:
            self.board = moves.lose(self.board, card)

    def _ended(self, number: int, *, hung: bool, hardware: bool = False) -> None:
        process = self.processes[number]
        if isinstance(process, HostLane):
            over = process.over or {}
            if "refused" in over:
                process.lost = f"{process.cards[0].name}: {over['refused']}"
                self.notes.append(process.lost)
            elif over and not over.get("valid", True) and not process.was_ended:
                self.notes.append(f"{process.cards[0].name}: its results are not valid ({over.get('status')})")
                self.codes.append(int(Exit.INVALID))
            self.warned += [f"{process.cards[0].name}: {line}" for line in over.get("warnings") or ()]
        super()._ended(number, hung=hung, hardware=hardware)

    def _tried(self, unit: Unit, number: int, manner: Manner, *, cards: tuple[str, ...] = ()) -> None:
        super()._tried(unit, number, manner, cards=cards)
        attempt = self.attempts[unit.name][-1]
        self._note({"unit": unit.name, "lane": number, "cards": list(attempt.cards), "manner": manner.value})

    def _take_up(self, earlier: RunFolder) -> None:
        """What a driver that died had done: its lanes, and the files that passed or failed on them."""
        lines = (earlier.path / LANES / RECORD).read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines if line.endswith("}")]
        lanes = {int(e["lane"]): [HostCard(**card) for card in e["cards"]] for e in entries if "unit" not in e}
        for entry in entries:
            if "unit" not in entry or entry["manner"] not in {Manner.PASSED, Manner.FAILED}:
                continue
            number = int(entry["lane"])
            if number not in self.finished:
                folder = self.run_folder.path / LANES / str(number)
                shutil.copytree(earlier.path / LANES / str(number), folder, copy_function=os.link)
                reader = LaneReader(folder, lanes[number])
                self.live.writelines(line + "\n" for line in reader.look() if '"nodeid"' in line[:60])
                self.finished[number] = reader
                self._note({"lane": number, "cards": [asdict(card) for card in lanes[number]]})
            attempt = Attempt(number, tuple(entry["cards"]), Manner(entry["manner"]))
            self.attempts.setdefault(entry["unit"], []).append(attempt)
            self._note(entry)
        self.board = replace(self.board, number=max([self.board.number, *lanes]))
        self.notes.append(f"{len(self.attempts)} files were done by {earlier.id}, whose driver died")

    def finish(self) -> int:
        """Merge, report, and return the status. The archive stays where a driver has to go on."""
        left = [name for name in self.units if name not in self.attempts]
        if left or (not self.ids and self.went):
            words = f"{len(left)} files did not run" if self.ids else "nothing ran"
            self.notes.insert(0, f"{words}: no host is left; with hosts again: debug-spyre wait {self.run_folder.id}")
            self.incomplete = True
        status = super().finish()
        if not self.incomplete:
            Path(self.options["archive"]).unlink(missing_ok=True)
        return status

    def _status(self) -> int:
        return int(Exit.ENVIRONMENT) if self.incomplete else super()._status()

    def _more(self) -> dict[str, Any]:
        facts = [
            {"name": h.name, "worker": h.worker, "lost": h.worker in self.went, **asdict(h.facts)}
            for h in self.cluster.hosts
        ]
        return {"hosts": facts, "warnings": self.warned, "address": self.cluster.address}
