"""What earlier runs say of the same files: how long they took, and in which sequences they ran on the cards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from debug_spyre.fleet.board import Unit
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
