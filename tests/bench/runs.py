"""Runs: `run` against a bare `pytest | tee`, hand-over of the lock, what the plugin costs a test."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.runs.conftest import MAIN, ROOT, Place

ROUNDS = int(os.environ.get("DEBUG_SPYRE_BENCH_ROUNDS", "5"))
TESTS = (
    "import time\nimport pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_it(n): time.sleep({sleep})\n"
)


def main():
    """Print the rows."""
    with tempfile.TemporaryDirectory(prefix="debug-spyre-bench-") as folder:
        place = Place(Path(folder))
        for name, count, sleep in (("short", 20, 0.0), ("longer", 50, 0.2)):
            _run_against_bare(place, name, count, sleep)
        _hand_over(place)
        _plugin(place)


def _seconds(what):
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def _run_against_bare(place, name, count, sleep):
    place.write("test_it.py", TESTS.format(count=count, sleep=sleep))
    bare = f"{place.python} -m pytest -m 'not upstream' --tb=short test_it.py 2>&1 | tee out.txt >/dev/null"
    ours = [sys.executable, "-c", MAIN, "run", "test_it.py"]

    def plain():
        subprocess.run(["sh", "-c", bare], cwd=place.checkout, env=place.env, check=True)

    def through():
        subprocess.run(ours, cwd=place.checkout, env=place.env, check=True, capture_output=True)

    pairs = [(_seconds(plain), _seconds(through)) for _ in range(ROUNDS)]
    alone, run = (statistics.median(column) for column in zip(*pairs, strict=True))
    allowed = alone + 0.5 + 0.03 * alone
    verdict = "within" if run <= allowed else "OVER"
    print(
        f"run, {name}: {run:.2f} s against {alone:.2f} s bare: +{run - alone:.2f} s, x{run / alone:.2f} ({verdict} +0.5 s + 3 %)"
    )


def _hand_over(place):
    prelude = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); from debug_spyre.card import lock; import time\n"
    )
    holder = "h = lock.acquire(['x']); print('held', flush=True); sys.stdin.read(1); print(time.time()); h.release()"
    found = []
    for _ in range(ROUNDS * 2):
        first = subprocess.Popen([sys.executable, "-c", prelude + holder], env=place.env, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        first.stdout.readline()
        waiter = "print('waits', flush=True); h = lock.acquire(['x']); print(time.time())"
        second = subprocess.Popen(
            [sys.executable, "-c", prelude + waiter], env=place.env, text=True, stdout=subprocess.PIPE
        )
        second.stdout.readline()
        time.sleep(0.3)
        released = float(first.communicate("x")[0])
        found.append(float(second.communicate()[0]) - released)
    worst = max(found)
    print(
        f"lock hand-over: median {statistics.median(found):.2f} s, worst {worst:.2f} s ({'within' if worst <= 1 else 'OVER'} 1 s)"
    )


def _plugin(place):
    count = 1000
    place.write("test_many.py", TESTS.format(count=count, sleep=0).replace("time.sleep(0)", "pass"))
    base = [str(place.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_many.py"]
    inside = {
        "PYTHONPATH": str(ROOT / "scripts/debug_spyre/inside"),
        "DEBUG_SPYRE_RESULTS": str(place.checkout / "results.jsonl"),
    }

    def without():
        subprocess.run(base, cwd=place.checkout, env=place.env, check=True, capture_output=True)

    def recorded():
        words = [*base, "-p", "debug_spyre_recorder"]
        subprocess.run(words, cwd=place.checkout, env=place.env | inside, check=True, capture_output=True)

    pairs = [(_seconds(without), _seconds(recorded)) for _ in range(ROUNDS)]
    bare, own = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"plugin: {(own - bare) / count * 1e6:.0f} us a test ({own:.2f} s against {bare:.2f} s for {count}, x{own / bare:.2f})"
    )
