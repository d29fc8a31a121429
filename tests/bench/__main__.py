"""All budgets of the design, measured here: `make bench`. Ratios and medians count; seconds are for orientation.

Each module beside this one has a `main()` that prints its rows. `python -m tests.bench NAME` runs one of them.
"""

import importlib
import platform
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted):
    names = sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_"))
    unknown = set(wanted) - set(names)
    if unknown:
        print(f"no such benchmark: {sorted(unknown)}; there are {names}", file=sys.stderr)
        return 64
    print(f"Python {platform.python_version()} on {platform.machine()}")
    for name in wanted or names:
        print(f"\n== {name}")
        importlib.import_module(f"tests.bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
