"""A scripted investigation in the real client: what the agent types, what it reads, in how many calls, with how many prompts.

Words, not seconds. The client comes from npm (a line says so where it can't be had); the model is a script on loopback.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.agent import client_kit as kit

ROOT = Path(__file__).parents[2]


def investigate(folder, binary):
    """One investigation, from doctor to close, in the client's default mode."""
    top = kit.make_checkout(folder / "checkout")
    env = {
        "DEBUG_SPYRE_PYTHON": sys.executable,
        "DEBUG_SPYRE_DEVICES": str(folder / "device"),
        "SPYRE_SIM_DEVICE": str(folder / "device"),
        "DEBUG_SPYRE_LOCK_DIR": str(folder / "locks"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    command = [str(ROOT / "scripts/debug-spyre"), "install", str(top)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **env})
    client = kit.Client(binary, folder / "home", top)
    return client.run("/debug-spyre tests/test_reduce.py fails", kit.investigation(top, "debug-spyre"), env=env)


def main():
    try:
        binary = kit.find_client()
    except kit.NoClientError as error:
        print(f"not measured: the client can't be had here ({error})")
        return
    with tempfile.TemporaryDirectory() as folder:
        outcome = investigate(Path(folder), binary)
    done = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"one investigation in the client {done}, default mode")
    for name, value in kit.figures(outcome).items():
        print(f"{name:8s} {value:8,d}   budget {kit.BUDGET[name]:,d}")
    verbs = [given.get("command", "").split(" <<")[0] for _, tool, given in outcome.calls if tool == "Bash"]
    longest = max(
        zip((len(outcome.result(n)) for n in range(len(outcome.calls))), outcome.calls, strict=True), key=lambda p: p[0]
    )
    print(
        f"longest answer {longest[0]:,d} characters: {longest[1][2].get('command') or longest[1][2].get('file_path')}"
    )
    print(f"commands of ours: {sum('debug-spyre' in verb for verb in verbs)} of {len(verbs)}")
