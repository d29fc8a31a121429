"""`python -m torch_spyre.faults` prints the catalogue as a table; `draw NAME SEED` prints a fault with drawn parameters."""

import random
import sys

from torch_spyre import faults


def table():
    """The catalogue in Markdown."""
    lines = ["| fault | what goes wrong | parameters (default) |", "| --- | --- | --- |"]
    for name in sorted(faults.CATALOGUE):
        fault = faults.CATALOGUE[name]
        words = [f"`{p.name}` ({p.default})" + (f": {p.text}" if p.name != "op" else "") for p in fault.parameters]
        parameters = "; ".join(words).replace("|", "\\|")
        lines.append(f"| `{name}` | {fault.text} | {parameters} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["draw"]:
        print(faults.draw(sys.argv[2], random.Random(int(sys.argv[3]))))
    else:
        print(table())
