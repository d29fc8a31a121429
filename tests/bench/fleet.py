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


def ideal(durations: list[float], cards: int) -> float:
    """Seconds of the longest-first schedule, and never below the mean load."""
    ends = [0.0] * cards
    for seconds in sorted(durations, reverse=True):
        ends[ends.index(min(ends))] += seconds
    return max(ends)


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


def row(what: str, seconds: float, best: float, start: float) -> None:
    """One line of the table."""
    print(
        f"{what:28} {seconds:7.1f} s   ideal {best:6.1f} s + {start:.1f} s start = {seconds / (best + start):.3f} times",
        flush=True,
    )


def main(count: int = 240) -> None:
    """All measurements."""
    files = files_of(count)
    durations = [sum(seconds) for seconds in files.values()]
    with tempfile.TemporaryDirectory() as name:
        place = made(Path(name), files)
        start = start_up(place)
        print(
            f"{count} tests in {len(files)} files, {sum(durations):.0f} s; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        row("--cards 8", timed(place, "--cards", "8"), ideal(durations, 8), start)
        series = json.loads(next(place.logs.rglob("series.json")).read_text())
        print(f"  {series['lines'][0]}")
    with tempfile.TemporaryDirectory() as name:
        place = made(Path(name), files)
        place.trace = Path(name) / "trace"
        folder = Path(name) / "cluster"
        folder.mkdir()
        dask = Dask(place, folder).scheduler()
        try:
            for worker in ("ann", "bob", "cy"):
                dask.worker(worker)
            dask.ready(3)
            words = ("--hosts", dask.address, "--ship-approved")
            row("--hosts, 3 workers of 4", timed(place, *words), ideal(durations, 12), start)
            series = json.loads(next(place.logs.rglob("series.json")).read_text())
            print(f"  {series['lines'][0]}")
        finally:
            dask.end()
    with tempfile.TemporaryDirectory() as name:
        place = made(Path(name), files_of(8))
        pairs = [(timed(place), timed(place, "--cards", "1")) for _ in range(3)]
        plain, one = (median(column) for column in zip(*pairs, strict=True))
        print(f"plain run {plain:.2f} s, --cards 1 {one:.2f} s: {(one / plain - 1) * 100:+.1f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 240)
