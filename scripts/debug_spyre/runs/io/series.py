"""Several pytest processes in one job, one after the other under its lock: the driver of the ready experiments.

It runs as the job's command. The first process's results are the run's; the table goes to series.json.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Lock
from typing import TypeVar

from debug_spyre.card.holders import Card, card_environment, visible_cards
from debug_spyre.card.lock import lock_of
from debug_spyre.host.files import PRIVATE, make_folder, write_atomically
from debug_spyre.host.processes import RUN_FOLDER
from debug_spyre.runs import pytest_words, run_words
from debug_spyre.runs.io.child import BUDGET, RESULTS
from debug_spyre.runs.io.finish_run import tensor_budget
from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec
from debug_spyre.runs.io.progress_line import PARTS
from debug_spyre.runs.io.records import read_evidence
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.runs.run_words import Seen, Spoilers, seen_in, smallest
from debug_spyre.triage.io.logs_reader import read_run
from debug_spyre.vocabulary.errors import UsageError
from debug_spyre.vocabulary.evidence import Evidence, Outcome

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.runs.io.series import main; sys.exit(main(sys.argv[2:]))"
CACHE = "TORCHINDUCTOR_CACHE_DIR"
KERNELS = "SPYRE_KERNEL_CACHE_DIR"  # torch-spyre keeps compiled kernels below Inductor's cache, or here (2026-09)


def with_experiment(
    spec: JobSpec, *, repeat: int | None = None, isolate: bool = False, alone: bool = False, fresh_cache: bool = False
) -> JobSpec:
    """The job changed into the experiment: one job, one hold of the lock, several pytest processes one after another.

    Raises:
        UsageError: a number that makes no sense.
    """
    if fresh_cache:
        cache = spec.folder / "cache" / secrets.token_hex(4)
        spec = replace(
            spec,
            env={**spec.env, CACHE: str(cache), KERNELS: str(cache / "kernels")},
            notes=(*spec.notes, f"an empty compile cache: {cache}"),
        )
    if repeat is not None and repeat < 2:
        raise UsageError(f"--repeat {repeat} repeats nothing", next="debug-spyre run --repeat 5 ...")
    kind = "repeat" if repeat else "isolate" if isolate else "alone" if alone else None
    if kind is None:
        return spec
    driver = (sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), kind, str(repeat or 0), "--")
    return replace(spec, argv=(*driver, *spec.argv))


T = TypeVar("T")
SERIES_CARDS = "DEBUG_SPYRE_SERIES_CARDS"  # JSON list of device files: each process gets one of them
MOST_TRIES = 40  # processes for the spoilers of one test
MOST_HINTS = 4
MOST_LINES = 10
MOST_SECONDS = 1800.0  # for those of all tests


def main(words: Sequence[str]) -> int:
    """words: kind, number, --, the pytest command."""
    kind, number = words[0], int(words[1])
    series = Series(list(words[3:]), RunFolder(Path(os.environ[RUN_FOLDER])))
    lines, data, status = {"repeat": _repeat, "isolate": _isolate, "alone": _alone}[kind](series, number)
    series.report(kind, lines, data)
    return status


class Series:
    """Runs parts and keeps their results apart."""

    def __init__(self, argv: list[str], run: RunFolder) -> None:
        at = argv.index("pytest") + 1
        self.head, self.args, self.run = argv[:at], tuple(argv[at:]), run
        self.number = 0
        self.root: Path | None = None
        self.where: dict[str, Path] = {}  # results of the tests that ran alone
        self.counting = Lock()
        devices = json.loads(os.environ.get(SERIES_CARDS, "[]"))
        chosen = [card for card in visible_cards() if card.device in devices]
        self.cards: Queue[Card | None] = Queue()
        for card in chosen or (None,):
            self.cards.put(card)
        self.width = max(1, len(chosen))

    def part(
        self, nodeids: Sequence[str] | None = None, *, results: Path | None = None, extra: Sequence[str] = ()
    ) -> tuple[int, Evidence]:
        """One pytest process: the whole selection, or exactly these tests; on the next card that is free, where there are several."""
        card = self.cards.get()
        try:
            return self._part(card, nodeids, results, extra)
        finally:
            self.cards.put(card)

    def parts(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Independent tasks, as many at once as there are cards; what they return, in order."""
        if self.width == 1:
            return [task() for task in tasks]
        with ThreadPoolExecutor(self.width) as pool:
            return [future.result() for future in [pool.submit(task) for task in tasks]]

    def _part(
        self, card: Card | None, nodeids: Sequence[str] | None, results: Path | None, extra: Sequence[str]
    ) -> tuple[int, Evidence]:
        with self.counting:
            self.number += 1
            number = self.number
        folder = self.run.path / PARTS / str(number)
        make_folder(folder)
        where = results or folder / "results.jsonl"
        args = self.args if nodeids is None else pytest_words.with_nodeids(self.args, nodeids)
        what = "the whole selection" if nodeids is None else f"{len(nodeids)} tests" if len(nodeids) > 1 else nodeids[0]
        on = f" on {card.name}" if card else ""
        print(f"\n===== process {number}{on}: {what} =====", flush=True)
        descriptors, marks = lock_of([card.device]) if card else ((), {})
        env = {**os.environ, **(card_environment([card], os.environ) if card else {}), **marks}
        env |= {RESULTS: str(where), BUDGET: str(tensor_budget(self.run.owner))}
        output = (folder / "output.txt").open("wb") if self.width > 1 else nullcontext()
        with output as stream:  # of several at once each has its own; they follow one another in the run's output
            done = subprocess.run(
                [*self.head, *args, *extra],
                env=env,
                cwd=self.root if nodeids is not None else None,
                stdout=stream,
                stderr=subprocess.STDOUT if stream else None,
                pass_fds=descriptors,
                check=False,
            )
        if stream:
            with self.counting:
                print((folder / "output.txt").read_text(encoding="utf-8", errors="replace"), flush=True)
        evidence = read_run(where if where.exists() else None, Path(os.devnull), checkout=None)
        self.root = self.root or _root_of(where)
        if nodeids is not None and len(nodeids) == 1:
            self.where[nodeids[0]] = where
        return done.returncode, evidence

    def report(self, kind: str, lines: list[str], data: dict[str, object]) -> None:
        """The table, in the output and as series.json."""
        print("\n" + "\n".join(lines), flush=True)
        more = [f"... {len(lines) - MOST_LINES + 1} more lines at the end of the output"]
        shown = lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], *more]
        made = {"verb": f"run --{kind}", "lines": shown, "data": data}
        write_atomically(self.run.path / "series.json", json.dumps(made, ensure_ascii=False), mode=PRIVATE)


def _repeat(series: Series, number: int) -> tuple[list[str], dict[str, object], int]:
    results = [series.run.results, *[None] * (number - 1)]
    made = series.parts([partial(series.part, results=where) for where in results])
    runs = [seen_in(evidence) for _, evidence in made]
    worst = max(_as_a_shell_says(code) for code, _ in made)
    lines, data = run_words.repeated(runs)
    return lines, data, worst


def _isolate(series: Series, _number: int) -> tuple[list[str], dict[str, object], int]:
    _, listed = series.part(extra=("--collect-only", "-q"))
    merged = _Merged(series.run.results, listed.selected)
    alone: dict[str, Seen] = {}
    made = series.parts([partial(series.part, [nodeid]) for nodeid in listed.selected])
    for nodeid, (code, evidence) in zip(listed.selected, made, strict=True):
        merged.add(series.where[nodeid])
        alone[nodeid] = seen_in(evidence).get(nodeid) or Seen(Outcome.CRASHED if code else Outcome.MISSING)
    status = 5 if not alone else int(any(seen.fails for seen in alone.values()))
    merged.end(status)
    lines, data = run_words.isolated(alone, _seen_before(series.run, alone))
    return lines, data, status


def _alone(series: Series, _number: int) -> tuple[list[str], dict[str, object], int]:
    code, evidence = series.part(results=series.run.results)
    matrix = seen_in(evidence)
    order = [n for n in evidence.selected if n in matrix] or list(matrix)
    failing = [n for n in order if matrix[n].fails]
    alone = {}
    made = series.parts([partial(series.part, [nodeid]) for nodeid in failing])
    for nodeid, (_, by_itself) in zip(failing, made, strict=True):
        alone[nodeid] = seen_in(by_itself).get(nodeid) or Seen(Outcome.MISSING)
    deadline = time.monotonic() + MOST_SECONDS
    spoilers: dict[str, Spoilers] = {}
    for nodeid in (n for n in failing if not alone[n].fails):
        if time.monotonic() >= deadline:
            break
        before = order[: order.index(nodeid)]
        spoilers[nodeid] = _spoilers_of(series, nodeid, before, deadline, hints=[s.tests for s in spoilers.values()])
    lines, data = run_words.alone_against(matrix, alone, spoilers)
    return lines, data, _as_a_shell_says(code)


def _as_a_shell_says(code: int) -> int:
    """128+n for signal n: a crash must not look like one of pytest's own statuses (5: nothing was selected)."""
    return 128 - code if code < 0 else code


def _spoilers_of(
    series: Series, nodeid: str, before: Sequence[str], deadline: float, *, hints: Sequence[tuple[str, ...]] = ()
) -> Spoilers:
    """`hints`: what spoiled others; a process each tells whether it is the same here, which spares the whole search."""
    known: dict[tuple[str, ...], bool] = {}

    def spoils(tests: tuple[str, ...]) -> bool:
        if tests not in known:
            if time.monotonic() >= deadline:
                return False
            _, evidence = series.part([*tests, nodeid])
            seen = seen_in(evidence).get(nodeid)
            known[tests] = bool(seen and seen.fails)
        return known[tests]

    likely = [tests for tests in dict.fromkeys(reversed(hints)) if tests and set(tests) <= set(before)]
    wide = next((tests for tests in likely[:MOST_HINTS] if spoils(tests)), tuple(before))
    found = smallest(wide, spoils, budget=MOST_TRIES)
    late = time.monotonic() >= deadline
    return Spoilers(found.tests, found.shown, found.complete and not late, len(known))


def _seen_before(run: RunFolder, wanted: dict[str, Seen]) -> dict[str, Seen]:
    """What the newest earlier run of this folder that had more than one test showed of each."""
    found: dict[str, Seen] = {}
    for other in run_folders_of(run.owner):
        if other.id == run.id:
            continue
        evidence = read_evidence(other)
        if evidence is not None and len(evidence.tests) > 1:
            found.update({n: seen for n, seen in seen_in(evidence).items() if n in wanted})
    return found


def _root_of(results: Path) -> Path | None:
    """The rootdir that node ids are relative to."""
    try:
        with results.open(encoding="utf-8") as stream:
            return Path(json.loads(stream.readline())["rootdir"])
    except (OSError, ValueError, KeyError):
        return None


class _Merged:
    """One results file out of many processes: one session with all their tests."""

    def __init__(self, path: Path, selected: Sequence[str]) -> None:
        self.stream = path.open("a", encoding="utf-8", errors="replace")
        self.selected = list(selected)
        self.begun = False

    def add(self, part: Path) -> None:
        try:
            lines = part.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            kind = line[:40]
            if '"e": "session_start"' in kind:
                if not self.begun:
                    self.stream.write(line + "\n")
                    self.stream.write(json.dumps({"e": "collected", "ids": self.selected, "deselected": []}) + "\n")
                self.begun = True
            elif '"e": "collected"' not in kind and '"e": "session_finish"' not in kind:
                self.stream.write(self._located(line, part) + "\n")
        self.stream.flush()

    def _located(self, line: str, part: Path) -> str:
        """Kept tensors lie beside the part's results: say so relative to the run's folder."""
        if not line.startswith('{"e": "tensors"'):
            return line
        try:
            event = json.loads(line)
            for entry in [*event["pairs"], *event["others"]]:
                entry["file"] = f"parts/{part.parent.name}/{entry['file']}"
            return json.dumps(event)
        except (ValueError, KeyError, TypeError):
            return line

    def end(self, status: int) -> None:
        self.stream.write(json.dumps({"e": "session_finish", "exit": status, "at": time.time()}) + "\n")
        self.stream.close()
