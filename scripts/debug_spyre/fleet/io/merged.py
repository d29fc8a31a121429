"""One results file out of the lanes' files: every test once, in the order of collection."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from debug_spyre.fleet.board import Unit
from debug_spyre.fleet.io.lane import LaneReader
from debug_spyre.fleet.verdicts import Attempt, Manner, Summary, counts, say
from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.runs.io.finding_runs import TRIAGE
from debug_spyre.runs.io.records import read_evidence
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of

MOST_RUNS = 12  # earlier runs that are asked for durations


def units_of(
    run: RunFolder, ids: Sequence[str], needs: Mapping[str, int], *, cards: int
) -> tuple[list[Unit], list[str]]:
    """What there is to run, and notes: files with the cards that they need, or the sequences of an earlier run of them."""
    before = sequences(run, set(needs))
    if before:
        units = [Unit(f"sequence {n}", tuple(s["files"]), len(s["cards"]), alone=True) for n, s in enumerate(before, 1)]
        return units, [f"the {len(units)} sequences of an earlier run of these files, repeated"]
    seconds = seconds_by_file(run, ids)
    units = [Unit(name, cards=count, seconds=seconds[name]) for name, count in needs.items()]
    return units, [f"{u.name} needs {u.cards} cards and gets {cards}" for u in units if u.cards > cards]


def seconds_by_file(run: RunFolder, ids: Sequence[str]) -> dict[str, float]:
    """Seconds of each file, by the newest run that had each of its tests; a test that none knows counts as a typical one."""
    known: dict[str, float] = {}
    for other in _earlier(run):
        evidence = read_evidence(other)
        for test in evidence.tests if evidence else ():
            if test.seconds is not None:
                known.setdefault(test.nodeid, test.seconds)
    typical = median(known.values()) if known else 1.0
    total: dict[str, float] = {}
    for nodeid in ids:
        file = nodeid.partition("::")[0]
        total[file] = total.get(file, 0.0) + known.get(nodeid, typical)
    return total


def sequences(run: RunFolder, files: set[str]) -> list[dict[str, Any]]:
    """The sequences of the newest spread run of this folder that had exactly these files."""
    for other in reversed(list(run_folders_of(run.owner))):
        if other.id == run.id:
            continue
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads((other.path / "series.json").read_text(encoding="utf-8"))["data"]["sequences"]
            if {file for sequence in found for file in sequence["files"]} == files:
                return [dict(sequence) for sequence in found]
    return []


def _earlier(run: RunFolder) -> list[RunFolder]:
    logs = run.owner.parent.parent if run.owner.parent.name == TRIAGE else run.owner.parent
    folders: list[Path] = [run.owner]
    with suppress(OSError):
        folders += sorted((p for p in (logs / TRIAGE).iterdir() if p.is_dir()), reverse=True)
    found = [other for folder in dict.fromkeys(folders) for other in reversed(list(run_folders_of(folder)))]
    return [other for other in found if other.path != run.path][:MOST_RUNS]


def write(
    where: Path,
    ids: Sequence[str],
    units: Mapping[str, Unit],
    *,
    attempts: Mapping[str, Sequence[Attempt]],
    lanes: Mapping[int, LaneReader],
    blamed: Collection[str],
    status: int,
) -> None:
    """Write the results file, once and at the end: what stands in it is never written over."""
    source = {
        file: lanes[counts(tried, blamed).lane]
        for name, tried in attempts.items()
        for file in (units[name].files or (name,))
    }
    heads = next((process.head for _, process in sorted(lanes.items()) if process.head), [])
    lines = [line for line in heads if '"e": "session_finish"' not in line[:40] and '"e": "collected"' not in line[:40]]
    lines.append(json.dumps({"e": "collected", "ids": list(ids), "deselected": _deselected(heads)}))
    for file in dict.fromkeys(nodeid.partition("::")[0] for nodeid in ids):
        if file in source:
            lines += source[file].lines.get(file, ())
    lines.append(json.dumps({"e": "session_finish", "exit": status, "at": time.time()}))
    descriptor = os.open(where, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
        stream.write("\n".join(lines) + "\n")


def status_of(
    attempts: Mapping[str, Sequence[Attempt]],
    codes: Sequence[int],
    lanes: Mapping[int, LaneReader],
    blamed: Collection[str],
) -> int:
    """As one process would have ended: a crash of the code as a shell says it, then failures, then pytest's own trouble."""
    for tried in attempts.values():
        chosen = counts(tried, blamed)
        if chosen.manner in {Manner.DIED, Manner.HUNG}:
            code = lanes[chosen.lane].returncode
            return 128 - code if code < 0 else code or 1
    if any(counts(tried, blamed).manner is not Manner.PASSED for tried in attempts.values()):
        return 1
    serious = [code for code in codes if code not in {0, 1}]
    if serious:
        return max(128 - code if code < 0 else code for code in serious)
    return 0


def sequences_of(
    units: Mapping[str, Unit],
    attempts: Mapping[str, Sequence[Attempt]],
    lanes: Mapping[int, LaneReader],
    blamed: Collection[str],
) -> list[dict[str, Any]]:
    """The files of each process whose results count, in the order in which it ran them."""
    by_lane: dict[int, list[str]] = {}
    for name, tried in attempts.items():
        by_lane.setdefault(counts(tried, blamed).lane, []).extend(units[name].files or (name,))
    return [
        {"cards": [card.index for card in lanes[number].cards], "files": [f for f in lanes[number].lines if f in files]}
        for number, files in sorted(by_lane.items())
    ]


def busy_seconds(card: str, lanes: Mapping[int, LaneReader]) -> float:
    """Seconds that the tests of this card's processes took."""
    total = 0.0
    for process in lanes.values():
        if any(c.name == card for c in process.cards):
            for lines in process.lines.values():
                for line in lines:
                    event = json.loads(line)
                    if event.get("e") == "report":
                        total += float(event.get("seconds") or 0.0)
    return total


def report(run: Path, summary: Summary, *, verb: str, more: Mapping[str, Any]) -> None:
    """What the matrix came to, in the output and as series.json."""
    lines = say(summary)
    print("\n" + "\n".join(lines), flush=True)
    made = {"verb": verb, "lines": lines, "data": {**summary.to_json(), **more}}
    write_atomically(run / "series.json", json.dumps(made, ensure_ascii=False), mode=PRIVATE)


def print_output(number: int, process: LaneReader) -> None:
    """The lane's output, under its name."""
    print(f"\n===== process {number} on {', '.join(card.name for card in process.cards)} =====", flush=True)
    try:
        with process.output.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
    except OSError:
        return
    sys.stdout.buffer.flush()


def _deselected(heads: Sequence[str]) -> list[str]:
    for line in heads:
        event = json.loads(line)
        if event.get("e") == "collected":
            return [str(i) for i in event.get("deselected") or ()]
    return []
