"""Finds what a run's own processes left: first-failure reports by pid and time, never just the newest; and wrappers of its kernels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from debug_spyre.host.files import PRIVATE, make_folder, read_ends, write_atomically
from debug_spyre.host.spyre_variables import compile_cache
from debug_spyre.triage.ffdc import NAME, Origin, Report, kernels_in, origins, parse, said
from debug_spyre.vocabulary.evidence import Evidence

MOST_KERNELS, MOST_WRAPPERS, LARGEST = 8, 600, 4 << 20
EDGE = 200_000


def kernel_lines(evidence: Evidence, output: Path, env: Mapping[str, str]) -> list[str]:
    """A line for each kernel that a failure or the end of the output names: its ops, and the source lines that called them."""
    words = [text for failure in evidence.failures for text in (failure.message, failure.cause) if text]
    if evidence.failures:
        _, tail, _ = read_ends(output, head=0, tail=EDGE)
        words.append(tail.decode("utf-8", "replace"))
    wanted = kernels_in("\n".join(words))[:MOST_KERNELS]
    found = _origins(compile_cache(env), wanted) if wanted else {}
    return [said(name, found[name]) for name in wanted if found.get(name)]


def _origins(cache: Path, wanted: list[str]) -> dict[str, list[tuple[Origin, ...]]]:
    """The newest wrappers first: of two graphs with a kernel of one name the failing one was compiled last."""
    wrappers = []
    for path in cache.glob("??/*.py"):
        with suppress(OSError):
            seen = path.stat()
            wrappers += [(seen.st_mtime, path)] if seen.st_size <= LARGEST else []
    found: dict[str, list[tuple[Origin, ...]]] = {}
    for _, path in sorted(wrappers, reverse=True)[:MOST_WRAPPERS]:
        with suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            if any(name in text for name in wanted):
                for name, ops in origins(text).items():
                    if name in wanted and ops and ops not in found.setdefault(name, []):
                        found[name].append(ops)
    return found


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
