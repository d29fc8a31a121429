"""A verb that only records, in a session of 100 experiments: <= 0.35 s whole process, <= 600 bytes of answer."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from debug_spyre.session import events as ev
from debug_spyre.session.io.journal import Journal

COMMAND = Path(__file__).parents[2] / "scripts/debug-spyre"
REPEATS = 7


def session_of(experiments, checkout):
    stem = "debug-20261130-100000-bench"
    folder = checkout / ".claude/skills/debug-spyre/logs" / stem
    folder.mkdir(parents=True)
    members = tuple({"nodeid": f"tests/test_a.py::test_b[{n}]"} for n in range(40))
    made = [
        ev.SessionOpened(
            stem=stem,
            slug="bench",
            symptom="97 % wrong",
            members=members,
            checkout=str(checkout),
            probe=members[0]["nodeid"],
        )
    ]
    for n in range(1, experiments + 1):
        made += [
            ev.HypothesisAdded(number=n, text=f"idea {n}", test="debug-spyre run t"),
            ev.HypothesisStarted(number=n, command="debug-spyre run t"),
            ev.RunStarted(run=f"r{n}", verb="run", name=None, argv=("pytest",), output=f"r{n}.txt", hypothesis=n),
            ev.RunFinished(run=f"r{n}", status="failed", valid=True, seconds=2.0, exit=1, digest=("97 % wrong",)),
            ev.HypothesisConcluded(number=n, verdict="ruled-out", sentence="no", runs=(f"r{n}",)),
        ]
        (folder / f"r{n}.txt").write_text("output\n" * 50)
    Journal(folder).append_with(lambda _: made)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        checkout = Path(scratch)
        (checkout / ".git").mkdir()
        session_of(100, checkout)
        env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable}
        times, sizes = [], []
        bare = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            bare.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            done = subprocess.run(
                [COMMAND, "note", "finding", "x"], cwd=checkout, env=env, capture_output=True, check=True
            )
            times.append(time.perf_counter() - begin)
            sizes.append(len(done.stdout))
        median = statistics.median(times)
        print(
            f"note in a session of 100 experiments: {median:.3f} s (budget 0.35), {median / statistics.median(bare):.1f} x python -c pass"
        )
        print(f"answer: {max(sizes)} bytes (budget 600)")
