"""`make real`: our tests on the real torch_spyre, then the tree's and the plugin's own, counted by themselves.

python -m tests.real_card.prove [--python PY] [--plugin PATH] [--tree PATH] [--every N]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.real_card.environment import HOME, Unusable, default_work, real_package

ROOT = HOME.parents[1]
OWN = ROOT / "tests/real"
PLUGIN_TESTS = ("rms_norm", "silu_and_mul", "rotary", "vocab", "mlp", "attn", "fallback")
OUTSIDE = ("conv", "fp8", "pool")  # ops that the interpreter does not know: counted apart
LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*?)(?: - .*)?$")


def main():
    """Exit 0: what could be proved is proved."""
    parser = argparse.ArgumentParser(prog="make real", description=__doc__.splitlines()[0])
    parser.add_argument("--python", metavar="PY", help="a Python in which the real torch_spyre is installed")
    parser.add_argument("--plugin", type=Path, help="a checkout of spyre-inference: its op tests are run")
    parser.add_argument("--tree", type=Path, help="a checkout of torch-spyre: its own tests are run")
    parser.add_argument("--every", type=int, default=1, help="of the tree's tests only each Nth (default: all)")
    told = parser.parse_args()
    if not told.python:
        print(f"NOT PROVED ON THE REAL PACKAGE: {_count()} tests (make real PY=INTERPRETER)")
        return 0
    try:
        real = real_package(told.python, default_work())
    except Unusable as error:
        print(f"make real: {error}", file=sys.stderr)
        return 2
    print(f"the real torch_spyre at {real.package}, torch {real.said['torch_version']}, Python {real.said['python']}")
    status = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(OWN), "--timeout", "900"],
        cwd=ROOT, env=os.environ | {"REAL_TORCH_SPYRE": str(real.python)},
    ).returncode  # fmt: skip
    if told.tree:
        status = _others(real, told.tree, ["tests"], told.every) or status
    if told.plugin:
        files = [str(p.relative_to(told.plugin)) for p in sorted((told.plugin / "tests").rglob("test_*.py"))]
        wanted = [name for name in files if any(part in Path(name).name for part in PLUGIN_TESTS)]
        status = _others(real, told.plugin, wanted or ["tests"], 1) or status
    return status


def _count():
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", str(OWN)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"^(\d+) tests? collected", done.stdout, re.MULTILINE)
    return found[1] if found else "an unknown number of"


def _others(real, checkout, files, every):
    """Tests of another project as they are; 1 where one failed. A gap of ours counts as a failure, and is named."""
    work = Path(tempfile.mkdtemp(prefix="real-"))
    report = work / "report.txt"
    env = real.variables(
        work / "card", TORCHINDUCTOR_CACHE_DIR=work / "inductor", PYTHONPATH=HOME / "sampling", EVERY=every
    )
    words = [
        str(real.python),
        "-m",
        "pytest",
        "-p",
        "each_nth",
        "-p",
        "there_is_a_card",
        "-q",
        "-rA",
        "--tb=no",
        "--show-capture=no",
        *files,
    ]
    print(
        f"{checkout}: {len(files)} paths{f', one test in {every}' if every > 1 else ''}; the report is {report}",
        flush=True,
    )
    with report.open("w", encoding="utf-8") as stream:
        subprocess.run(words, cwd=checkout, env=env, stdout=stream, stderr=subprocess.STDOUT)
    rows = [found.groups() for found in map(LINE.match, report.read_text(errors="replace").splitlines()) if found]
    failed = [name for outcome, name in rows if outcome in {"FAILED", "ERROR"}]
    for label, chosen in (("", False), (" of " + ", ".join(OUTSIDE), True)):
        counts = Counter(o for o, name in rows if any(part in name.lower() for part in OUTSIDE) is chosen)
        ran = counts["PASSED"] + counts["FAILED"] + counts["ERROR"]
        share = f", {100 * counts['PASSED'] / ran:.1f} % of those that ran" if ran else ""
        print(f"  tests{label}: {', '.join(f'{n} {o.lower()}' for o, n in sorted(counts.items()))}{share}")
    for name in failed:
        print(f"  failed: {name}")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
