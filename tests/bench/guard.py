"""The guard's whole process beside a bare Python: at most 1.5 times, and 80 ms."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
CODE = "import sys; sys.path.insert(0, sys.argv[1]); import guard; guard.main()"  # as the hooks run it
REPEATS = 31
COMMANDS = {
    "ls": "ls -la tests",
    "our own": "debug-spyre hypothesis conclude 1 ruled-out 'the CPU shows the same' --run r3",
    "long": "cd tests && for f in a b c; do timeout 60 uv run pytest \"$f\" -m 'not upstream' 2>&1 | tee x.txt; done",
    "save, 20 kB": "debug-spyre save repro.py <<'EOF'\n" + "x = torch.ones(2)\n" * 1200 + "EOF",
}


def seconds(argv, text):
    began = time.perf_counter()
    subprocess.run(argv, input=text, capture_output=True, check=True)
    return time.perf_counter() - began


def main():
    with tempfile.TemporaryDirectory() as folder:
        events = {
            name: json.dumps(
                {
                    "hook_event_name": "PreToolUse",
                    "tool_name": "Bash",
                    "tool_input": {"command": command},
                    "cwd": folder,
                }
            ).encode()
            for name, command in COMMANDS.items()
        }
        bare, ours = [], {name: [] for name in events}
        for _ in range(REPEATS):  # in turns, so that a busy moment hits all of them
            bare.append(seconds([sys.executable, "-IS", "-c", "pass"], b""))
            for name, event in events.items():
                ours[name].append(seconds([sys.executable, "-IS", "-c", CODE, str(SCRIPTS)], event))
    base = statistics.median(bare)
    print(f"python3 -IS -c pass            {base * 1000:6.1f} ms")
    for name, times in ours.items():
        middle = statistics.median(times)
        print(f"guard, {name:22s}  {middle * 1000:6.1f} ms   ratio {middle / base:4.1f}   budget 1.5 and 80 ms")
