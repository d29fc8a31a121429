"""The matrix over cards and over hosts against the ideal schedule: `python -m tests.bench fleet`, or `python -m tests.bench.fleet TESTS` for fewer.

240 tests of 0.5 to 8 s that sleep, in files of four. The ideal is the longest-first schedule of the files' known durations on
as many cards, each card after one start of pytest as a plain run here needs it. What the two cores of a machine add by starting
a dozen processes at once is shown as start-up: the time until each process asks for its first file.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.fleet.conftest import CONFTEST, Dask
from tests.runs.conftest import Place

A_FILE = 4


def files_of(count: int) -> dict[str, list[float]]:
    """File name to the seconds of its tests."""
    drawn = random.Random(20)
    seconds = [0.5 * 16 ** drawn.random() for _ in range(count)]
    return {f"test_{n:03}.py": seconds[n * A_FILE : (n + 1) * A_FILE] for n in range(-(-count // A_FILE))}


def ideal(durations: list[float], starts: list[float]) -> float:
    """Seconds until the longest-first schedule is done, on cards that are ready after these seconds."""
    ends = list(starts)
    for seconds in sorted(durations, reverse=True):
        ends[ends.index(min(ends))] += seconds
    return max(ends)


def starts_of(place: Place, began: float) -> list[float]:
    """Seconds after the call at which each process began its first test."""
    found = []
    newest = max(place.logs.rglob("lanes"), key=lambda p: p.stat().st_mtime_ns)
    for path in newest.glob("*/results.jsonl"):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        found += (
            [next(e["at"] for e in events if e["e"] == "start") - began]
            if any(e["e"] == "start" for e in events)
            else []
        )
    return found


def made(folder: Path, files: dict[str, list[float]]) -> Place:
    """A checkout with these files on a host of eight cards."""
    place = Place(folder)
    devices = [folder / f"vfio {n}" for n in range(8)]
    for device in devices:
        device.touch()
    place.trace = folder / "trace"
    place.env |= {"DEBUG_SPYRE_DEVICES": os.pathsep.join(map(str, devices)), "HOST_TRACE": str(place.trace)}
    place.env |= {"DEBUG_SPYRE_CLUSTER_PYTHON": sys.executable}
    place.write("conftest.py", CONFTEST)
    for name, seconds in files.items():
        tests = [f"def test_{n}(card):\n    time.sleep({s})\n" for n, s in enumerate(seconds)]
        place.write(name, "import time\n\n" + "\n".join(tests))
    return place


def timed(place: Place, *words: str) -> float:
    """Seconds of a whole call, which has to pass."""
    began = time.monotonic()
    done = place.json("run", *words, ".", timeout=900)
    seconds = time.monotonic() - began
    assert done["status"] == "passed", done
    return seconds


def start_up(place: Place) -> float:
    """Seconds of a run of one test that does nothing."""
    place.write("nothing/test_nothing.py", "def test_nothing(card):\n    pass\n")
    found = []
    for _ in range(5):
        began = time.monotonic()
        assert place.call("run", "nothing").returncode == 0
        found.append(time.monotonic() - began)
    return median(found)


def measured(what: str, place: Place, durations: list[float], start: float, cards: int, words: tuple[str, ...]) -> None:
    """Run it and print its line: against the ideal with one plain start-up a card, and with the start-ups that there were."""
    began = time.time()
    seconds = timed(place, *words)
    best = ideal(durations, [start] * cards)
    starts = starts_of(place, began)
    own = ideal(durations, starts)
    print(
        f"{what:34} {seconds:6.1f} s; ideal {best:5.1f} s: {seconds / best:.3f} times; "
        f"with the start-ups as they were ({min(starts):.1f} to {max(starts):.1f} s) {own:5.1f} s: {seconds / own:.3f} times",
        flush=True,
    )


def main(count: int = 240) -> None:
    """All measurements."""
    files = files_of(count)
    durations = [sum(seconds) for seconds in files.values()]
    with tempfile.TemporaryDirectory() as name:
        place = made(Path(name), files)
        start = start_up(place)
        cores, load = os.cpu_count(), os.getloadavg()[0]
        print(
            f"{count} tests in {len(files)} files, {sum(durations):.0f} s; {cores} cores, load {load:.1f}; a plain start {start:.1f} s"
        )
        for known in ("durations unknown", "known"):
            measured(f"--cards 8, {known}", place, durations, start, 8, ("--cards", "8"))
        folder = Path(name) / "cluster"
        folder.mkdir()
        dask = Dask(place, folder).scheduler()
        try:
            for worker in ("ann", "bob", "cy"):
                dask.worker(worker)
            dask.ready(3)
            words = ("--hosts", dask.address, "--ship-approved")
            measured("--hosts, 3 workers of 4, known", place, durations, start, 12, words)
        finally:
            dask.end()
    with tempfile.TemporaryDirectory() as name:
        place = made(Path(name), files_of(8))
        pairs = [(timed(place), timed(place, "--cards", "1")) for _ in range(3)]
        plain, one = (median(column) for column in zip(*pairs, strict=True))
        print(f"plain run {plain:.2f} s, --cards 1 {one:.2f} s: {(one / plain - 1) * 100:+.1f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 240)
