"""`make real`: our tests on the real torch_spyre, then the tree's and the plugin's own, counted by themselves.

python -m tests.real_card.prove [--python PY] [--plugin PATH] [--tree PATH] [--every N]
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.real_card.environment import HOME, Unusable, default_work, real_package
from tests.real_card.others import BAD, run_others, told

ROOT = HOME.parents[1]
OWN = ROOT / "tests/real"
PLUGIN_TESTS = ("rms_norm", "silu_and_mul", "rotary", "vocab", "mlp", "attn", "fallback")


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
    """1 where one failed, or none ran. A gap of ours counts as a failure, and is named."""
    rows = run_others(real, checkout, files, every)
    print("\n".join(told(rows)))
    return 1 if not rows or any(outcome in BAD for outcome, _, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
