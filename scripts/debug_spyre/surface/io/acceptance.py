"""Runs the checks of a user's first real card, under the lock, and reads their answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import devices
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.jobs import JobSpec, run_job
from debug_spyre.session.io.workspace import logs_folder
from debug_spyre.vocabulary.errors import DebugSpyreError

SCRIPT = Path(__file__).parents[2] / "inside/debug_spyre_acceptance.py"
FIELDS = ("check", "assumed", "answer", "why", "seconds")
HELD, DIFFERS = "held", "differs"


def accept(checkout: Path, *, minutes: float) -> tuple[list[dict[str, Any]], Path]:
    """(one row a check, the run's output). A run that is cut off gives the rows that it came to.

    Raises:
        DebugSpyreError: the card was not to be had, or no check gave an answer.
    """
    chosen = choose(checkout)
    cards = os.pathsep.join(str(device) for device in devices())
    record = run_job(
        JobSpec(
            folder=logs_folder(checkout) / "acceptance",
            checkout=checkout,
            verb="doctor",
            name=None,
            argv=(*chosen.words, str(SCRIPT)),
            env={"DEBUG_SPYRE_ACCEPTANCE_DEVICES": cards},
            timeout=minutes * 60,
            wait=60.0,
        )
    )
    rows = rows_in(record.output)
    if not rows:
        raise DebugSpyreError(
            f"no check gave an answer: {record.status} (exit {record.exit})", next=f"read {record.output}"
        )
    return rows, Path(record.output)


def rows_in(output: Path) -> list[dict[str, Any]]:
    """The answers in a run's output."""
    rows = []
    for line in output.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith('{"check"'):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows += [row] if all(field in row for field in FIELDS) else []
    return rows


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """For people: a line a check, what differs with what was seen."""
    width = max(len(str(row["check"])) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{row['answer']:9s} {row['check']:{width}s}  {row['assumed']}")
        if row["answer"] != HELD:
            lines.append(f"{'':9s} {'':{width}s}  -> {row['why']}")
    counts = {word: sum(row["answer"] == word for row in rows) for word in (HELD, DIFFERS)}
    rest = len(rows) - sum(counts.values())
    return [*lines, f"{counts[HELD]} held, {counts[DIFFERS]} differ, {rest} not tried"]


def report_of(rows: list[dict[str, Any]], seen: Mapping[str, Any]) -> str:
    """What can be sent: versions and answers, before it is redacted."""
    versions = {name: seen.get(name) for name in ("torch", "python", "vllm")}
    package = {key: seen["torch_spyre"].get(key) for key in ("version", "revision", "state")}
    return (
        json.dumps({"schema": 1, "torch_spyre": package, **versions, "checks": rows}, indent=1, ensure_ascii=False)
        + "\n"
    )
