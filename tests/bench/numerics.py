"""compare of big tensors (budget 3 s for 16 M elements, linear) and shadow against the plain test (budget 5 times)."""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PLUGIN_REPO = ROOT / "tests/simulated_card/plugin_repo"
MILLION = 1 << 20
FAULTS = {
    "every 37th column near 65504": lambda a: a[:, 5::37].__setitem__(slice(None), 65504),
    "rolled by one row": lambda a: a.__setitem__(slice(None), np.roll(a, 1, 0)),
    "transposed": lambda a: a.__setitem__(slice(None), np.ascontiguousarray(a.T).reshape(a.shape)),
    "nothing but other values": lambda a: a.__setitem__(slice(None), a[::-1, ::-1] + 3),
}


def main():
    """Print the rows."""
    compare_rows()
    shadow_row()


def compare_rows():
    sys.path.insert(0, str(ROOT / "scripts"))
    from debug_spyre.numerics.comparison import compare
    from debug_spyre.numerics.formats import decode

    rng = np.random.default_rng(0)
    print(
        f"{'compare, fp16, all patterns (decoding included)':58s} {'elements':>9s} {'wall s':>7s} {'cpu s':>7s}  found"
    )
    for name, damage in FAULTS.items():
        for elements in (MILLION, 4 * MILLION, 16 * MILLION):
            side = int(elements**0.5)
            good = rng.standard_normal((side, side), dtype=np.float32).astype(np.float16)
            bad = good.copy()
            damage(bad)
            raw = [x.tobytes() for x in (bad, good)]
            walls, cpus = [], []
            for _ in range(3):
                wall, cpu = time.perf_counter(), time.process_time()
                a, e = (decode(r, "float16", (side, side)) for r in raw)
                found = compare(a, e)
                walls.append(time.perf_counter() - wall)
                cpus.append(time.process_time() - cpu)
            kinds = ", ".join(p.kind for p in found.patterns) or "no pattern"
            print(
                f"{name:58s} {elements // MILLION:>7d} M {statistics.median(walls):7.2f} {statistics.median(cpus):7.2f}  {kinds}"
            )


def shadow_row():
    tests = ["tests/test_rms_norm.py", "tests/test_linear.py"]
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "card").touch()
        base = {k: v for k, v in os.environ.items() if not k.startswith(("SPYRE_", "DEBUG_SPYRE"))}
        base |= {"SPYRE_SIM_DEVICE": str(folder / "card"), "PYTHONPATH": str(ROOT / "scripts/debug_spyre/inside")}
        shadow = {
            "DEBUG_SPYRE_RESULTS": str(folder / "results.jsonl"),
            "DEBUG_SPYRE_SHADOW": json.dumps({"root": str(PLUGIN_REPO)}),
        }
        plain = [_cpu(base, tests) for _ in range(3)]
        under = [_cpu(base | shadow, [*tests, "-p", "debug_spyre_shadow"]) for _ in range(3)]
    one, other = (statistics.median(x[0] for x in runs) for runs in (plain, under))
    cpu = statistics.median(x[1] for x in under) / statistics.median(x[1] for x in plain)
    print(
        f"shadow: {other:.1f} s against {one:.1f} s for the plain tests: {other / one:.2f} times (cpu: {cpu:.2f} times; budget 5)"
    )


def _cpu(env, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=PLUGIN_REPO,
        env=env,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
