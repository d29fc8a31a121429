"""One results file out of the lanes' files: every test once, in the order of collection."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from debug_spyre.fleet.board import Unit
from debug_spyre.fleet.io.lane import LaneProcess
from debug_spyre.fleet.spread_words import Summary, say
from debug_spyre.fleet.verdicts import Attempt, Manner, counts
from debug_spyre.host.files import PRIVATE, write_atomically


def write(
    where: Path,
    ids: Sequence[str],
    units: Mapping[str, Unit],
    *,
    attempts: Mapping[str, Sequence[Attempt]],
    lanes: Mapping[int, LaneProcess],
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
    lanes: Mapping[int, LaneProcess],
    blamed: Collection[str],
) -> int:
    """As one process would have ended: a crash of the code as a shell says it, then failures, then pytest's own trouble."""
    for tried in attempts.values():
        chosen = counts(tried, blamed)
        if chosen.manner in {Manner.DIED, Manner.HUNG}:
            code = lanes[chosen.lane].process.returncode
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
    lanes: Mapping[int, LaneProcess],
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


def busy_seconds(card: str, lanes: Mapping[int, LaneProcess]) -> float:
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


def report(run: Path, summary: Summary) -> None:
    """What the matrix came to, in the output and as series.json."""
    lines = say(summary)
    print("\n" + "\n".join(lines), flush=True)
    made = {"verb": "run --cards", "lines": lines, "data": summary.to_json()}
    write_atomically(run / "series.json", json.dumps(made, ensure_ascii=False), mode=PRIVATE)


def print_output(number: int, process: LaneProcess) -> None:
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
