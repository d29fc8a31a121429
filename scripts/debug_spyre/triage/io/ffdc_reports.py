"""Finds the first-failure reports that a run's own processes wrote: by pid and by time, never just the newest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from debug_spyre.host.files import PRIVATE, make_folder, write_atomically
from debug_spyre.host.spyre_variables import compile_cache
from debug_spyre.triage.ffdc import NAME, Report, parse

_LARGEST = 4 << 20
_MOST = 200
_SLACK = 2.0  # seconds that clocks and file systems may differ


def reports_of(results: Path) -> tuple[Report, ...]:
    """The reports of the run whose results file this is, oldest first; none where nothing is known of its processes."""
    pids, since = _processes(results)
    if not pids:
        return ()
    folder = reports_folder(_environment(results.parent / "job.json"))
    found = []
    for path in _files(folder):
        match = NAME.search(path.name)
        if match is None or int(match["pid"]) not in pids:
            continue
        try:
            if path.stat().st_mtime + _SLACK < since or path.stat().st_size > _LARGEST:
                continue
            report = parse(json.loads(path.read_text(encoding="utf-8", errors="replace")), str(path))
        except (OSError, ValueError):
            continue
        if report is not None:
            found.append(report)
    return tuple(found)


def keep_reports(reports: Sequence[Report], folder: Path) -> tuple[Path, ...]:
    """Copy the reports into the run's own folder (`ffdc/`): others clear the compiler's cache."""
    kept = []
    for report in reports:
        target = folder / "ffdc" / Path(report.path).name
        make_folder(target.parent)
        write_atomically(target, Path(report.path).read_bytes(), mode=PRIVATE)
        kept.append(target)
    return tuple(kept)


def reports_folder(env: Mapping[str, str]) -> Path:
    """Where torch-spyre puts its reports: below inductor's cache folder."""
    return compile_cache(env) / "torch-spyre" / "ffdc_reports"


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=lambda p: p.name.split("_")[-3:])[-_MOST:]
    except OSError:
        return []


def _processes(results: Path) -> tuple[set[int], float]:
    """Pids of the run's sessions and when the first began."""
    pids: set[int] = set()
    since = 0.0
    try:
        with results.open("rb") as stream:
            for raw in stream:
                if b'"session_start"' not in raw:
                    continue
                data = json.loads(raw)
                if isinstance(data, dict) and data.get("e") == "session_start" and isinstance(data.get("pid"), int):
                    pids.add(data["pid"])
                    at = data.get("at")
                    since = min(since or float("inf"), at) if isinstance(at, int | float) else since
    except (OSError, ValueError):
        pass
    return pids, since


def _environment(job: Path) -> dict[str, str]:
    try:
        overrides = json.loads(job.read_text(encoding="utf-8")).get("env") or {}
    except (OSError, ValueError, AttributeError):
        overrides = {}
    return {**os.environ, **{str(k): str(v) for k, v in dict(overrides).items()}}
