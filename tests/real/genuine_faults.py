"""Genuine failures of the real package through shadow and repro, and healthy calls that nobody may blame.

python -m tests.real.genuine_faults PY [FAILURES [HEALTHY]]     (40 and 400; prints each and a table of counts)

genuine_calls.py finds the calls over the package's own op list and judges them without debug-spyre. Right: shadow names the op, and its
error is the call's. Where the package answers otherwise in a fresh process (what ran before counts), that process is asked, by plain pytest.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.real.conftest import Bench
from tests.real_card import environment

CALLS = Path(__file__).with_name("genuine_calls.py")
AT_ONCE, DIFFERENT, TIMES = (
    100,
    6,
    1,
)  # calls a process; how many of the failures are wrong values; processes of a proof
TEST = """
import calls, pytest
@pytest.mark.parametrize("number", {numbers})
def test_call(number):
    calls.again({folder!r}, number)
"""


def overloads(answer):
    """The registered overloads of `op --all --json` that torch doesn't split into others, as aten::add.Tensor."""
    for op in answer["ops"]:
        for overload, how in op["overloads"].items():
            if how["eager"] != "composite":
                yield op["name"].replace(".", "::", 1) + ("" if overload == "default" else f".{overload}")


def judged_calls(bench, folder, most):
    """What genuine_calls.py says of the first `most` calls over the op list."""
    folder.mkdir()
    python = [str(bench.package.python), str(CALLS)]
    env = bench.env | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    names = "\n".join(overloads(bench.json("op", "--all")))
    done = subprocess.run([*python, "find", str(folder)], input=names, capture_output=True, text=True, env=env)
    count = min(int(done.stdout.split()[-1]), most)
    for first in range(0, count, AT_ONCE):
        words = [*python, "judge", str(folder), str(first), str(min(first + AT_ONCE, count))]
        subprocess.run(words, capture_output=True, env=bench.env, timeout=1800)
    return rows_of(folder)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


def chosen(rows, failures):
    """One call for each op and error, refusals before wrong values; every so many of them."""
    kinds = {}
    for row in rows:
        if row["what"] != "healthy":
            kinds.setdefault((row["what"] == "differs", row["op"], (row["error"] or "").splitlines()[0][:90]), row)
    refused, wrong = ([row for key, row in kinds.items() if key[0] is differs] for differs in (False, True))
    wrong = wrong[: min(DIFFERENT, failures // 4)]
    return spread(refused, failures - len(wrong)) + wrong


def spread(rows, most):
    return [rows[n * len(rows) // most] for n in range(min(most, len(rows)))]


def laid_out(bench, folder, rows):
    """A checkout whose tests are these calls."""
    shutil.copy(CALLS, bench.checkout / "calls.py")
    bench.write("test_calls.py", TEST.format(numbers=[row["call"] for row in rows], folder=str(folder)))


def blamed(bench, numbers):
    """Ops that shadow blames over healthy calls, and how many it saw pass."""
    told = bench.json("shadow", *(f"test_calls.py::test_call[{n}]" for n in numbers))
    outcomes = Counter(told["outcomes"].values())
    return told["suspect"], outcomes["passed"]


def said_alone(bench, node):
    """The error lines of plain pytest in a fresh process."""
    words = [str(bench.package.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", node]
    done = subprocess.run(words, cwd=bench.checkout, env=bench.env, capture_output=True, text=True, timeout=600)
    return "\n".join(line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E "))


def plain(text):
    """Words to compare errors by: without their class and addresses."""
    return " ".join((text or "").replace("InductorError: ", "").replace("LoweringException: ", "").split())


def failing(bench, row):
    """{op, error, repro}: each `right`, or what is said in its place."""
    node = f"test_calls.py::test_call[{row['call']}]"
    told = bench.json("shadow", node)
    suspect = told.get("suspect") or {}
    op = "right" if suspect.get("op") == row["op"] else f"{suspect.get('op')} for {row['op']}"
    words = plain(suspect.get("error"))[:70]
    if row["what"] == "differs":
        error = "right" if suspect.get("off") else f"no wrong values: {words}"
    else:
        right = bool(words) and (words in plain(row["error"]) or words in plain(said_alone(bench, node)))
        error = "right" if right else f"{words!r} for {plain(row['error'])[:90]!r}"
    done = bench.call("repro", "--no-shrink", "--times", TIMES, "--json", timeout=1200)
    proved = json.loads(done.stdout) if done.stdout else {"verified": False, "stamp": done.stderr.strip()[-200:]}
    return {
        "op": op,
        "error": error,
        "repro": proved.get("stamp"),
        "verified": proved.get("verified"),
        "tier": proved.get("tier"),
    }


def all_failing(bench, folder, rows):
    """A session over all of them; yields (row, what `failing` says)."""
    laid_out(bench, folder, rows)
    bench.call("triage", "test_calls.py", timeout=1800)
    bench.call("open", "genuine", "--cluster", "c1")
    for row in rows:
        yield row, failing(bench, row)


def main(python, failures="40", healthy="400", known=None):
    """Find, judge, ask; print each and the counts."""
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="genuine-"))
    bench = Bench(work, environment.real_package(python, environment.default_work()), work / "inductor")
    folder = Path(known) if known else work / "calls"
    rows = rows_of(folder) if known else judged_calls(bench, folder, 100_000)
    print(
        f"{len(rows)} calls: {dict(Counter(r['what'] for r in rows))}; in {time.monotonic() - began:.0f} s", flush=True
    )
    fine = spread([r for r in rows if r["what"] == "healthy"], int(healthy))
    if fine:
        laid_out(bench, folder, fine)
        suspect, passed = blamed(bench, [r["call"] for r in fine])
        print(
            f"healthy: {len(fine)} calls, {passed} pass under shadow, blamed: {suspect and suspect['op']}", flush=True
        )
    counts = Counter()
    for row, said in all_failing(bench, folder, chosen(rows, int(failures))):
        counts.update(
            [key for key in ("op", "error") if said[key] == "right"] + ["verified"] * bool(said["verified"]) + ["all"]
        )
        print(
            f"{row['call']} {row['op']} ({row['what']}: {(row['error'] or '').splitlines()[0][:100]}): {said}",
            flush=True,
        )
    print(
        f"of {counts['all']} failures: op right {counts['op']}, error right {counts['error']}, verified {counts['verified']}"
    )
    print(f"{time.monotonic() - began:.0f} s; kept in {work}")


if __name__ == "__main__":
    main(*sys.argv[1:])
